"""The points' depth as a guide of the splats', for any row (`splat.depth_from_points`).

Gaussians trained through smoke explain it by floaters and put surfaces too near; the sparse points are right where they
are. A small loss every few iterations holds the splats to them.
"""

from dataclasses import dataclass

from torch import Tensor

from fujinsplat.core.settings import SplatSettings
from fujinsplat.smoke.depth import PointDepth, point_depth
from fujinsplat.smoke.loss import depth_loss
from fujinsplat.splat.data import TrainingScene


@dataclass(frozen=True)
class DepthGuide:
    """`points`: depth of every pixel from the sparse points, and where to believe it."""

    points: PointDepth
    weight: float

    @classmethod
    def of(cls, scene: TrainingScene, settings: SplatSettings) -> "DepthGuide | None":
        """None where the settings ask for no guide."""
        if settings.depth_from_points == 0:
            return None
        found = point_depth(scene.xyz, scene.cameras)
        moved = PointDepth(found.z.to(scene.device), found.trusted.to(scene.device), found.points)
        return cls(moved, settings.depth_from_points)

    def penalty(self, index: int, depth: Tensor, alpha: Tensor) -> Tensor:
        """Of accumulated `depth [H, W]` with its weight `alpha [H, W]`, against the points' where they are believed."""
        return self.weight * depth_loss(depth, alpha, self.points.z[index], self.points.trusted[index])
