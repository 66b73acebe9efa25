"""Smoky RAW as it is, camera-linear: what media models were made for, where the paper gave them sRGB [its supplement].

Pictures are the base output, for looking; rows are trained on the linear light, white-balanced and brightened to fill
the range, and their renders are developed by the scene's Base ISP afterwards.
"""

from pathlib import Path

from fujinsplat.core.parts import Front
from fujinsplat.views.fronts import base as developed

BRIGHT, TARGET = 0.98, 0.8  # this quantile of the views is brought to that value


class RawLight:
    """The views' own linear light while a row is trained; see `fujinsplat.splat.targets.Light`."""

    def __init__(self, views, white_balance, base):
        """`views [V, h, w, 3]`: white-balanced camera-linear light at training size."""
        some = views.flatten()[:: max(1, views.numel() // 1_000_000)]
        self.gain = TARGET / max(float(some.quantile(BRIGHT)), 1e-6)
        self.views, self.white_balance, self.base = views, white_balance, base

    def targets(self, view: int):
        return (self.views[view] * self.gain).clamp(0, 1)

    def loss(self, view: int, rendered):
        """Mean absolute difference, for a model without a loss of its own."""
        return (rendered - self.targets(view)).abs().mean()

    def due(self, iteration: int, iterations: int) -> bool:
        """There is nothing to estimate."""
        return False

    def reestimate(self, render) -> None:
        return None

    def state(self) -> dict:
        return {}

    def restore(self, state: dict) -> None:
        """Everything follows from the inputs."""


def make(inputs: dict[str, Path], settings, device: str):
    """The same pictures as the front `base`."""
    return developed.make(inputs, settings, device)


def light(inputs: dict[str, Path], cameras, xyz, settings, device: str) -> RawLight:
    from fujinsplat.isp import load
    from fujinsplat.smoke.light import hazy_light

    views, white_balance = hazy_light(inputs["source"], cameras)
    return RawLight(views.to(device), white_balance, load(inputs["base"]))


PART = Front(
    name="raw",
    run=make,
    needs=("source", "base"),
    light=light,
    trains_on=lambda settings: ("source", "base", "cameras"),
)
