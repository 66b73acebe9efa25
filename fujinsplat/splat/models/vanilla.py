"""3D Gaussian Splatting as published (Kerbl et al., SIGGRAPH 2023): display-encoded colours, SH 3, 30,000 iterations,
with its opacity resets; the second half of the paper's "2D restorer + 3DGS" rows [Table 1]."""

from typing import TYPE_CHECKING, Any

from fujinsplat.core.parts import Model, points_of
from fujinsplat.core.settings import PAPER_ITERATIONS, Count, Positive, Settings, Steps, setting

if TYPE_CHECKING:
    from fujinsplat.core.settings import SplatSettings


class VanillaSettings(Settings):
    """The published 3DGS. All numbers of iterations scale with the length that the splat stage has here."""

    iterations: Count = setting(30_000, "beside the method's 18,000 [Table 1]")
    sh_interval: Count = setting(1000, "iterations between raises of the SH degree")
    densify_from: Steps = setting(500, "3DGS default")
    densify_until: Steps = setting(15_000, "3DGS default")
    reset_every: Count = setting(3000, "opacities are set back so often while it densifies (3DGS default)")
    prune_size: Positive = setting(0.1, "share of the scene's extent beyond which Gaussians go, after the first reset")


def scaled(iterations: int, splat: "SplatSettings") -> int:
    """A published number of iterations in a run of this stage's length."""
    return max(1, round(iterations * splat.iterations / PAPER_ITERATIONS))


def budget(splat: "SplatSettings", own: Any) -> "SplatSettings":
    """The stage's settings with this method's own number of iterations, and its windows of that many."""
    windows = {name: getattr(own, name) for name in ("sh_interval", "densify_from", "densify_until")}
    windows["lr_horizon"] = getattr(own, "lr_horizon", own.iterations)
    return splat.model_copy(update={"iterations": scaled(own.iterations, splat), **windows})


def make(scene, settings: "SplatSettings", own: VanillaSettings):
    from fujinsplat.splat.media.plain import PlainField

    return PlainField(scene, settings, own)


PART = Model(
    name="vanilla",
    run=make,
    needs=lambda settings: ("cameras", points_of(settings)),
    stages=("splat",),
    Settings=VanillaSettings,
    budget=budget,
)
