"""WaterSplatting's density control: the absolute gradient decides what grows, and opacity what goes.

Decisions fall every `every` iterations; what is based on too few views since the last limit of the opacities (fewer
than all of them and a hundred iterations) grows and removes nothing.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from gsplat.strategy.ops import duplicate, remove, reset_opa, split
from torch import Tensor

PAUSE = 100  # iterations after a limit of the opacities, beyond one for each view, without growth and removal
LIMIT_AFTER = 100  # iterations into a cycle at which opacities are limited


@dataclass
class WaterDensity:
    """`own`: the part's settings; windows in iterations of this run. `unit`: scene units per unit of length."""

    own: Any
    first: int
    last: int
    every: int
    views: int
    unit: float
    limit: int
    state: dict[str, Tensor] = field(default_factory=dict)

    def observe(self, info: dict, count: int) -> None:
        """Add one backward pass to the statistic: the norm of the absolute gradient, in half picture sizes."""
        gradient = info["means2d"].absgrad[0].norm(dim=-1) * (0.5 * max(info["width"], info["height"]))
        seen = (info["radii"][0] > 0).all(-1)
        if not self.state:
            self.state = {name: torch.zeros(count, device=gradient.device) for name in ("gradient", "count")}
        self.state["gradient"] += torch.where(seen, gradient, torch.zeros_like(gradient))
        self.state["count"] += seen

    def step(self, parameters: dict, optimizers: dict, iteration: int) -> bool:
        """Decide where it is time; True when Gaussians might grow or go (whether or not one did)."""
        if iteration < self.first or iteration % self.every:
            return False
        growing = iteration < self.last
        rested = iteration % self.own.cycle > self.views + PAUSE
        if growing and rested:
            self._grow(parameters, optimizers)
        passed = rested or not growing  # opacities just limited have yet to come back: none may go for them
        if passed:
            self._cull(parameters, optimizers, growing)
        self.state = {}
        if growing and iteration % self.own.cycle == LIMIT_AFTER % self.own.cycle:
            reset_opa(parameters, optimizers, {}, self.own.opacity_limit)
        return passed

    def _sizes(self, parameters: dict) -> Tensor:
        return parameters["scales"].detach().exp().amax(-1) * self.unit

    def _grow(self, parameters: dict, optimizers: dict) -> None:
        steepness = self.state["gradient"] / self.state["count"].clamp_min(1)
        room = self.limit - len(steepness)
        threshold = self.own.grad_threshold
        if room <= 0:
            return
        if int((steepness > threshold).sum()) > room:  # only the steepest may pass
            threshold = float(torch.topk(steepness, room + 1).values[-1])
        high, large = steepness > threshold, self._sizes(parameters) > self.own.split_size
        doubled = high & ~large
        if bool(doubled.any()):
            duplicate(parameters, optimizers, {}, doubled)
        halved = torch.cat([high & large, high.new_zeros(int(doubled.sum()))])
        if bool(halved.any()):
            split(parameters, optimizers, {}, halved)

    def _cull(self, parameters: dict, optimizers: dict, growing: bool) -> None:
        least = self.own.cull_opacity if growing else self.own.cull_opacity_late
        gone = parameters["opacities"].detach().sigmoid() < least
        gone |= self._sizes(parameters) > self.own.cull_size
        if bool(gone.any()) and not bool(gone.all()):  # a scene without Gaussians can never have one again
            remove(parameters, optimizers, {}, gone)
