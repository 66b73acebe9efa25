"""Gaussians on a GPU: all harmonics of a Gaussian in one tensor, so that no step copies them together.

A render wants the coefficients side by side; 3DGS moves the first one at another rate than the rest, which is why they
are kept apart elsewhere. Here one parameter holds them, and its optimizer knows both rates.
"""

import torch
from torch import Tensor

from fujinsplat.compat.gsplat_strategy import SightAdam
from fujinsplat.compat.optim import Adam
from fujinsplat.splat.displays import Display, LinearDisplay
from fujinsplat.splat.model import NAMES, Gaussians


class JoinedGaussians(Gaussians):
    """`parameters`: as of `Gaussians`, with `sh [N, K, 3]` in place of `sh0` and `shN`. For training alone."""

    def __init__(self, parameters: dict[str, Tensor], display: Display | None = None):
        values = {name: value for name, value in parameters.items() if not name.startswith("sh")}
        joined = parameters.get("sh")
        values["sh"] = torch.cat([parameters["sh0"], parameters["shN"]], 1) if joined is None else joined
        self.parameters = {name: torch.nn.Parameter(value.detach()) for name, value in values.items()}
        self.display = display or LinearDisplay()
        self.medium, self.medium_kind = {}, ""

    @property
    def sh_degree(self) -> int:
        return round(self.parameters["sh"].shape[1] ** 0.5) - 1

    def activated(self, sh_degree: int | None = None) -> dict:
        p = self.parameters
        return {
            "means": p["means"],
            "quats": p["quats"],
            "scales": p["scales"].exp(),
            "opacities": p["opacities"].sigmoid(),
            "sh": p["sh"],
            "sh_degree": self.sh_degree if sh_degree is None else min(sh_degree, self.sh_degree),
        }

    def plain(self) -> Gaussians:
        """As they are stored."""
        p = {name: value.detach() for name, value in self.parameters.items()}
        sh = p.pop("sh")
        values = {**p, "sh0": sh[:, :1].contiguous(), "shN": sh[:, 1:].contiguous()}
        return Gaussians({name: values[name] for name in NAMES}, self.display)


@torch.no_grad()
def _further(parameter: Tensor, step: Tensor, rate: float, seen: Tensor | None) -> None:
    """Take the first coefficient `rate` further along Adam's `step [N, 3]`."""
    parameter[:, 0].sub_(step * rate if seen is None else step * (rate * seen[:, None]))


class JointAdam(Adam):
    """Adam of `sh [N, K, 3]`, the first coefficient at `first`, the others at `rest`: the numbers of two Adams."""

    def __init__(self, sh: Tensor, first: float, rest: float, eps: float):
        super().__init__([sh], lr=rest, eps=eps, fused=True)
        self.first = first

    def step(self) -> None:
        super().step()
        group = self.param_groups[0]
        (parameter,) = group["params"]
        state = self.state.get(parameter)
        if not state:
            return  # it has had no gradient yet
        (b1, b2), count = group["betas"], state["step"].double()  # 1 - 0.999 has few digits in single precision
        with torch.no_grad():
            mean, square = state["exp_avg"][:, 0], state["exp_avg_sq"][:, 0]
            step = mean / (1 - b1**count) / ((square / (1 - b2**count)).sqrt() + group["eps"])
        _further(parameter, step, self.first - group["lr"], None)


class JointSightAdam(SightAdam):
    """The same of `SightAdam`, which corrects no bias."""

    def __init__(self, sh: Tensor, first: float, rest: float, eps: float):
        super().__init__(sh, rest, eps)
        self.first = first

    def step(self, seen: Tensor | None = None) -> None:
        super().step(seen)
        group = self.param_groups[0]
        (parameter,) = group["params"]
        state = self.state.get(parameter)
        if not state:
            return
        with torch.no_grad():
            step = state["exp_avg"][:, 0] / (state["exp_avg_sq"][:, 0].sqrt() + group["eps"])
        _further(parameter, step, self.first - group["lr"], seen)
