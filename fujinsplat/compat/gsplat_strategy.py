"""gsplat's DefaultStrategy with a cap on the number of Gaussians; its SelectiveAdam. Tested with gsplat 1.5.3.

gsplat has no such cap; `_grow_gs`, where its strategy decides what grows, is private and takes one more argument from
1.6 on (tried with a stand-in of that signature, not with a released 1.6).
SelectiveAdam wants to be told at every step which Gaussians are in sight.
"""

import math

import torch
from gsplat.optimizers import SelectiveAdam
from gsplat.strategy import DefaultStrategy

VERSIONS = "gsplat >=1.5,<1.7"
NEVER = 1 << 40


class BoundedStrategy(DefaultStrategy):
    """DefaultStrategy that never grows past `limit`: where it would, only the steepest gradients are let through."""

    limit: int = NEVER

    @torch.no_grad()
    def _grow_gs(self, params, optimizers, state, *rest):
        room = self.limit - len(params["means"])
        threshold = self.grow_grad2d
        if room <= 0:
            self.grow_grad2d = math.inf
        else:
            steepness = state["grad2d"] / state["count"].clamp_min(1)
            if int((steepness > threshold).sum()) > room:
                # duplication and splitting add one Gaussian each: the room's worth of the steepest may pass
                self.grow_grad2d = float(torch.topk(steepness, room + 1).values[-1])
        try:
            return super()._grow_gs(params, optimizers, state, *rest)
        finally:
            self.grow_grad2d = threshold


class SightAdam(SelectiveAdam):
    """Adam of one parameter `[N, …]` for the Gaussians in sight; a step that is not told which moves all."""

    def __init__(self, parameter: torch.Tensor, lr: float, eps: float):
        super().__init__([{"params": [parameter], "lr": lr}], eps=eps, betas=(0.9, 0.999))

    def step(self, seen: torch.Tensor | None = None) -> None:
        """`seen`: bool `[N]`."""
        parameter = self.param_groups[0]["params"][0]
        everything = torch.ones(len(parameter), dtype=torch.bool, device=parameter.device) if seen is None else seen
        super().step(everything.contiguous())
