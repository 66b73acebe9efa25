"""How what Gaussians render becomes a picture: linear light, display-encoded colours, or camera-linear light.

A display is kept with its Gaussians, in the same file: what a model renders to does not depend on files beside it.
"""

from typing import Protocol

import torch
from torch import Tensor

from fujinsplat.splat.loss import display

BASE = "display.base."  # names of the Base ISP's tensors in a model's file


class Display(Protocol):
    """`colour` is the space of the rendered picture; calling it gives the picture encoded, in [0, 1]."""

    colour: str

    def __call__(self, rendered: Tensor) -> Tensor: ...
    def tensors(self) -> dict[str, Tensor]: ...
    def notes(self) -> dict[str, str]: ...


class LinearDisplay:
    """Linear sRGB light: clamped and encoded. Differentiable."""

    colour = "linear"

    def __call__(self, rendered: Tensor) -> Tensor:
        return display(rendered)

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def notes(self) -> dict[str, str]:
        return {"colour": self.colour}


class EncodedDisplay(LinearDisplay):
    """Display-encoded colours, blended as they are (the original 3DGS): clamped. Differentiable."""

    colour = "encoded"

    def __call__(self, rendered: Tensor) -> Tensor:
        return rendered.clamp(0, 1)


class CameraDisplay:
    """White-balanced camera-linear light times `gain`, developed by the scene's Base ISP."""

    colour = "camera"

    def __init__(self, base, white_balance: Tensor, gain: float):
        self.base, self.white_balance, self.gain = base.requires_grad_(False), white_balance, gain

    @torch.no_grad()
    def __call__(self, rendered: Tensor) -> Tensor:
        """`[..., 3]` to encoded. No gradient: a row in camera-linear light is trained there."""
        from fujinsplat.isp import develop

        raw = (rendered.detach().clamp_min(0).cpu() / self.gain / self.white_balance).clamp(0, 1)
        encoded = develop(self.base, raw.reshape(-1, 1, 3).numpy())
        return torch.from_numpy(encoded).reshape(rendered.shape).clamp(0, 1).to(rendered.device)

    def tensors(self) -> dict[str, Tensor]:
        state = {f"{BASE}{name}": value.detach().cpu().contiguous() for name, value in self.base.state_dict().items()}
        return {**state, "display.white_balance": self.white_balance.cpu(), "display.gain": torch.tensor([self.gain])}

    def notes(self) -> dict[str, str]:
        return {"colour": self.colour, "encoding": self.base.encoding}


def stored(tensors: dict[str, Tensor], notes: dict[str, str]) -> Display:
    """The display a model's file holds; KeyError where it holds none."""
    kinds = {"linear": LinearDisplay, "encoded": EncodedDisplay}
    if notes["colour"] in kinds:
        return kinds[notes["colour"]]()
    from fujinsplat.isp import BaseISP

    base = BaseISP(encoding=notes["encoding"])
    base.load_state_dict({name: tensors[f"{BASE}{name}"].cpu() for name in base.state_dict()})
    return CameraDisplay(base, tensors["display.white_balance"].cpu(), float(tensors["display.gain"]))
