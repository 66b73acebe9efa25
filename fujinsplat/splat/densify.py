"""Densification: gsplat's DefaultStrategy with the paper's schedule, and a cap on the number of Gaussians."""

from fujinsplat.compat.gsplat_strategy import NEVER, BoundedStrategy
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.schedule import Schedule


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
