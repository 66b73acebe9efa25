"""SeaSplat (our implementation) of Yang et al., ICRA 2025: Gaussians of SH 0 behind nine numbers of a medium [Table 1].

The published model, losses and phases; what differs is that depth and colour come from one rasterisation.
"""

from typing import TYPE_CHECKING

from fujinsplat.core.parts import Model, points_of
from fujinsplat.core.settings import Count, Positive, Rate, Settings, Steps, setting
from fujinsplat.splat.models.vanilla import budget as published_budget

if TYPE_CHECKING:
    from fujinsplat.core.settings import SplatSettings


class SeaSplatSettings(Settings):
    """The published schedule; all numbers of iterations scale with the length that the splat stage has here."""

    iterations: Count = setting(15_000, "[supp.: 15,000, on three scenes 30,000]")
    sh_interval: Count = setting(1000, "of no effect: its colours do not depend on direction")
    densify_from: Steps = setting(500, "3DGS default")
    densify_until: Steps = setting(15_000, "3DGS default")
    reset_every: Count = setting(3000, "3DGS default")
    prune_size: Positive = setting(0.1, "3DGS default")
    lr_horizon: Count = setting(30_000, "iterations over which the positions' rate falls to its last value")
    switch: Steps = setting(10_000, "last iteration without the medium")
    medium_start: Steps = setting(1000, "medium-only steps at the switch")
    colour_start: Steps = setting(2000, "steps of the Gaussians' colours alone after them")
    medium_every: Count = setting(100, "iterations between updates of the medium")
    medium_steps: Count = setting(50, "medium-only steps of each update")
    lr_medium: Rate = setting(1e-2, "Adam, of the medium and of the background before it")


def budget(splat: "SplatSettings", own: SeaSplatSettings) -> "SplatSettings":
    return published_budget(splat, own).model_copy(update={"sh_degree": 0})


def make(scene, settings: "SplatSettings", own: SeaSplatSettings):
    from fujinsplat.splat.media.sea_field import SeaField

    return SeaField(scene, settings, own)


PART = Model(
    name="seasplat",
    run=make,
    needs=lambda settings: ("cameras", points_of(settings)),
    stages=("splat",),
    Settings=SeaSplatSettings,
    budget=budget,
    medium=True,
)
