"""WaterSplatting (our implementation) of Li et al., 3DV 2025: Gaussians dimmed by depth in a shining medium [Table 1].

The published model, losses, density control and coarse-to-fine schedule; attenuation and backscatter are taken in the
direction of each Gaussian instead of each pixel.
"""

from typing import TYPE_CHECKING

from fujinsplat.core.parts import Model, points_of
from fujinsplat.core.settings import Count, Fraction, Positive, Rate, Settings, Steps, setting
from fujinsplat.splat.models.vanilla import budget

if TYPE_CHECKING:
    from fujinsplat.core.settings import SplatSettings


class WaterSplattingSettings(Settings):
    """The published schedule. Windows scale with the run; intervals between density decisions are kept, since they
    set how many views a decision is based on."""

    iterations: Count = setting(15_000, "[supp.]")
    sh_interval: Count = setting(1000, "iterations between raises of the SH degree")
    densify_from: Steps = setting(600, "first density decision")
    densify_until: Steps = setting(10_000, "last densification; afterwards Gaussians are only removed")
    cycle: Count = setting(500, "iterations between limits of the opacity; none densifies soon after one")
    grad_threshold: Positive = setting(8e-4, "absolute image-plane gradient that densifies")
    split_size: Positive = setting(1e-3, "size, in scene units, beyond which a Gaussian is split instead of doubled")
    cull_opacity: Fraction = setting(0.05, "[supp.]; 0.5 as published loses every Gaussian of one scene")
    cull_opacity_late: Fraction = setting(0.1, "after the last densification")
    cull_size: Positive = setting(10.0, "size, in scene units, beyond which a Gaussian goes")
    opacity_limit: Fraction = setting(0.5, "opacities are cut to it at each cycle")
    halvings: Steps = setting(2, "times the pictures are halved at the start")
    halving_every: Count = setting(3000, "iterations until they double again")
    lr_means_final: Positive = setting(0.3125, "last rate of the positions over the first")
    lr_medium: Rate = setting(1e-3, "Adam, of the medium's network")
    lr_medium_final: Positive = setting(0.15, "its last rate over the first")
    clip_medium: Positive = setting(1e-3, "largest norm of the network's gradient")


def make(scene, settings: "SplatSettings", own: WaterSplattingSettings):
    from fujinsplat.splat.media.water_field import WaterField

    return WaterField(scene, settings, own)


PART = Model(
    name="watersplatting",
    run=make,
    needs=lambda settings: ("cameras", points_of(settings)),
    stages=("splat",),
    Settings=WaterSplattingSettings,
    budget=budget,
    medium=True,
)
