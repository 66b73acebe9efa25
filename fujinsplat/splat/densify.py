"""Densification: gsplat's DefaultStrategy with the paper's schedule, and a cap on the number of Gaussians."""

import math

import torch
from gsplat.strategy import DefaultStrategy

from fujinsplat.config import SplatSettings
from fujinsplat.splat.schedule import Schedule

NEVER = 1 << 40


class BoundedStrategy(DefaultStrategy):
    """DefaultStrategy that never grows past `limit`: where it would, only the steepest gradients are let through."""

    limit: int = NEVER

    @torch.no_grad()
    def _grow_gs(self, params, optimizers, state, step):
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
            return super()._grow_gs(params, optimizers, state, step)
        finally:
            self.grow_grad2d = threshold


def strategy(settings: SplatSettings, schedule: Schedule) -> BoundedStrategy:
    """No opacity reset and no pruning by size: both start at `reset_every`, which lies beyond every run [supp. G]."""
    made = BoundedStrategy(
        prune_opa=settings.prune_opacity,
        grow_grad2d=settings.grad_threshold,
        refine_start_iter=schedule.densify_from,
        refine_stop_iter=schedule.densify_until + 1,
        refine_every=schedule.densify_every,
        reset_every=NEVER,
        refine_scale2d_stop_iter=0,
    )
    made.limit = settings.max_gaussians
    return made
