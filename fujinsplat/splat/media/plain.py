"""3DGS as published: display-encoded colours blended as they are, opacities set back now and then."""

from typing import Any

import torch
from gsplat.strategy.ops import remove, reset_opa
from torch import Tensor

from fujinsplat.splat.data import TrainingScene
from fujinsplat.splat.displays import EncodedDisplay
from fujinsplat.splat.models.gaussians import GaussianField
from fujinsplat.splat.schedule import Schedule

RESET_OPACITY = 0.01  # 3DGS


class PlainField(GaussianField):
    """Gaussians of encoded colour in training."""

    joins = False  # the models made of it move the first harmonic alone

    @staticmethod
    def display() -> EncodedDisplay:
        return EncodedDisplay()

    def __init__(self, scene: TrainingScene, settings: Any, own: Any):
        super().__init__(scene, settings, own)
        self.scene = scene
        self.share = settings.iterations / own.iterations  # of the published run

    @staticmethod
    def timetable(settings: Any, own: Any) -> Schedule:
        return Schedule.of(settings, own.iterations)

    def scaled(self, iterations: int) -> int:
        """A published number of iterations, in this run."""
        return max(1, round(iterations * self.share))

    def shown(self, picture: Tensor) -> Tensor:
        """Encoded as it is. Not cut to [0, 1] while it is compared: a pixel that is too bright has to come back."""
        return picture

    def update(self, loss: Tensor, iteration: int, info: dict) -> None:
        super().update(loss, iteration, info)
        self.keep_house(iteration)

    def resets(self) -> list[int]:
        """Iterations at which opacities are set back: the published ones, each scaled, so that rounding adds none at
        the end of the window, from which they would not come back."""
        return [self.scaled(at) for at in range(self.own.reset_every, self.own.densify_until, self.own.reset_every)]

    def keep_house(self, iteration: int) -> None:
        """3DGS: while it densifies, opacities are set back now and then, and from the first time on what has grown
        beyond a share of the scene is taken away with each decision."""
        resets = self.resets()
        parts = (self.gaussians.parameters, self.optimizers, self.densification)
        if iteration > self.schedule.densify_until:
            return
        if resets and iteration > resets[0] and iteration % self.schedule.densify_every == 0:
            limit = self.own.prune_size * self.densification["scene_scale"]
            large = self.gaussians.parameters["scales"].detach().exp().amax(-1) > limit
            if bool(large.any()) and not bool(large.all()):
                remove(*parts, large)
        if iteration in resets:
            reset_opa(*parts, RESET_OPACITY)


def random_views(seed: int, iteration: int, count: int, views: int) -> list[int]:
    """`count` random views for steps beside the run's own: a function of seed and iteration alone."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + iteration)
    return torch.randint(views, (count,), generator=generator).tolist()
