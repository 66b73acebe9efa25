"""Linear targets with weights for a trainer, estimated again on the way.

A trainer makes one `SmokeTargets`, calls `due(iteration)` and `reestimate(render)` at the scheduled iterations, and
compares its renders with `targets(i)` under `weights(i)`. Targets are camera-linear, white-balanced, times `gain`; a
render divided by `gain` and by the white balance is RAW of the clean scene, which the Base ISP develops.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.smoke.depth import PointDepth, merged_depth, point_depth
from fujinsplat.smoke.estimation import estimate
from fujinsplat.smoke.loss import display_loss, linear_loss
from fujinsplat.smoke.model import Smoke
from fujinsplat.smoke.settings import SmokeSettings

BRIGHT, TARGET = 0.98, 0.5  # this quantile of the hazy views is brought to that value

# view index -> (picture [h, w, 3], alpha [h, w], accumulated depth [h, w])
Render = Callable[[int], tuple[Tensor, Tensor, Tensor]]


class SmokeTargets:
    """Of `views [V, h, w, 3]`, white-balanced camera-linear at training size, `cameras` of that size and points `xyz
    [N, 3]`. For those who show them: the white balance, and the scene's Base ISP."""

    white_balance: Tensor
    base: Any

    def __init__(self, views: Tensor, cameras: list[Camera], xyz: np.ndarray, settings: SmokeSettings | None = None):
        self.settings = settings or SmokeSettings()
        self.views, self.cameras = views, cameras
        points = point_depth(xyz, cameras)
        self.points = PointDepth(points.z.to(views.device), points.trusted.to(views.device), points.points)
        some = views.flatten()[:: max(1, views.numel() // 1_000_000)]
        self.gain = max(1.0, TARGET / max(float(some.quantile(BRIGHT)), 1e-6))
        self.smoke = estimate(views, cameras, self.points.z, self.points.trusted, self.settings)
        if self.settings.depth == "splats":  # which are not there yet: until they are, views stay hazy
            self.smoke = replace(self.smoke, keep=0.0)

    def __len__(self) -> int:
        return len(self.views)

    def targets(self, view: int) -> Tensor:
        """The cleared view `[h, w, 3]`, linear, times `gain`, not clipped."""
        return self.smoke.clear_of(view) * self.gain

    def weights(self, view: int) -> Tensor:
        """`[h, w]`, about 1."""
        return self.smoke.trust_of(view, self.settings.doubt)

    def due(self, iteration: int, iterations: int) -> bool:
        """Whether the smoke is to be estimated again before `iteration` (from 1) of `iterations`."""
        return iteration in {round(share * iterations) for share in self.settings.updates if share > 0}

    @torch.no_grad()
    def reestimate(self, render: Render) -> Smoke:
        """Estimate again with the depth of the splats where the points are in doubt."""
        depths = []
        for view in range(len(self)):
            _, alpha, depth = render(view)
            depths.append(depth / alpha.clamp_min(0.05))
        splats = torch.stack(depths)
        if self.settings.depth == "splats":
            z, trusted = splats, torch.ones_like(self.points.trusted)
        else:
            z, trusted = merged_depth(self.points, splats)
        self.smoke = estimate(self.views, self.cameras, z, trusted, self.settings, self.smoke)
        return self.smoke

    def loss(self, view: int, rendered: Tensor) -> Tensor:
        """Of a render against this view's target."""
        if self.settings.loss == "display":
            return display_loss(rendered, self.targets(view), self.weights(view))
        return linear_loss(rendered, self.targets(view), self.weights(view), self.settings.edges)

    def state(self) -> dict[str, Tensor]:
        """What resuming needs; the rest follows from the inputs."""
        smoke = self.smoke
        names = ("colour", "level", "grid", "slope", "depth", "trusted")
        return {name: getattr(smoke, name) for name in names} | {"keep": torch.tensor(smoke.keep)}

    def restore(self, state: dict[str, Tensor]) -> None:
        values = {name: value.to(self.views.device) for name, value in state.items() if name != "keep"}
        self.smoke = replace(self.smoke, **values, keep=float(state["keep"]))
