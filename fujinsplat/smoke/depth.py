"""Depth of every pixel from the sparse points, and how far to believe it.

Points are right where they are (to about one per cent) and say nothing between. Each pixel looks at the few nearest
points its view sees: their middle is its depth, and it is trusted where they agree and lie around it. What is seen
between the legs of a table has the table's points on one side and none of its own.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.core.errors import UserError

LEAST = 50  # points in a view: fewer say nothing about its surfaces
MARGIN = 20  # pixels outside the picture from which points still count
NEIGHBOURHOOD = 6.0  # pixels around a point that decide whether something stands before it
CROWD = 24  # at most so many neighbours
FRONT, HIDDEN = 0.15, 1.5  # a point is hidden when it lies this factor behind that quantile of its neighbourhood
NEIGHBOURS = 7  # points a pixel looks at
AGREE = 0.15  # spread (log) of the inner ones that still counts as one surface
ASIDE = 0.6  # mean direction to the points (1: all on one side) from which they say nothing about what lies beside them
BLOCK = 2  # pixels: neighbours are looked up once per block


@dataclass(frozen=True)
class PointDepth:
    """`z [V, h, w]` along the optical axis, `trusted [V, h, w]` bool, and the `points` seen by each view."""

    z: Tensor
    trusted: Tensor
    points: list[int]


def point_depth(xyz: np.ndarray, cameras: list[Camera]) -> PointDepth:
    """Nearest-point depth of views of one size from world points `xyz [N, 3]`."""
    if not len(xyz):
        raise UserError(
            "the scene has no points, and without depth there is no smoke to measure; run structure from motion"
        )
    depths, trusted, counts = [], [], []
    for camera in cameras:
        z, spread, count = _view_depth(np.asarray(xyz, np.float64), camera)
        depths.append(z)
        trusted.append(spread < AGREE)
        counts.append(count)
    if max(counts) < LEAST:
        raise UserError(
            f"at most {max(counts)} points lie in any view, and depth needs {LEAST}; run structure from motion again"
        )
    return PointDepth(torch.stack(depths), torch.stack(trusted), counts)


def _view_depth(xyz: np.ndarray, camera: Camera) -> tuple[Tensor, Tensor, int]:
    """(z, log spread, points seen) of one view; without enough points a far plane that nobody trusts."""
    uv, z = _seen(xyz, camera)
    size = (camera.height, camera.width)
    if len(z) < LEAST:
        middle = float(np.median(z)) if len(z) else 1.0
        return torch.full(size, middle), torch.full(size, torch.inf), len(z)
    from scipy.spatial import KDTree

    rows, columns = np.mgrid[0 : size[0] : BLOCK, 0 : size[1] : BLOCK] + 0.5 * BLOCK
    pixels = np.stack([columns.ravel(), rows.ravel()], 1)
    near = KDTree(uv).query(pixels, k=NEIGHBOURS)[1]
    towards = uv[near] - pixels[:, None]
    towards /= np.linalg.norm(towards, axis=2, keepdims=True) + 1e-6
    beside = np.linalg.norm(towards.mean(1), axis=1) > ASIDE
    near = np.sort(z[near], 1)
    spread = np.where(beside, np.inf, np.log(near[:, -2] / near[:, 1]))
    both = np.stack([near[:, NEIGHBOURS // 2], spread])
    both = torch.tensor(both.reshape(1, 2, *rows.shape), dtype=torch.float32)
    both = F.interpolate(both, scale_factor=BLOCK, mode="nearest")[0, :, : size[0], : size[1]]
    return both[0], both[1], len(z)


def _seen(xyz: np.ndarray, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Pixel positions `[n, 2]` and z `[n]` of the points the view sees: not behind others, not alone at their depth."""
    from scipy.spatial import KDTree

    local = xyz @ camera.viewmat[:3, :3].T + camera.viewmat[:3, 3]
    local = local[local[:, 2] > 0]
    z = local[:, 2]
    uv = local[:, :2] / z[:, None] * [camera.K[0, 0], camera.K[1, 1]] + [camera.K[0, 2], camera.K[1, 2]]
    inside = ((uv > -MARGIN) & (uv < np.array([camera.width, camera.height]) + MARGIN)).all(1)
    uv, z = uv[inside], z[inside]
    if len(z) < LEAST:
        return uv, z
    radius = NEIGHBOURHOOD * max(1.0, camera.width / 240)
    far, near = KDTree(uv).query(uv, k=min(CROWD, len(z)), distance_upper_bound=radius)
    around = np.sort(np.append(z, np.inf)[near], 1)  # what is beyond the radius comes as the index past the end
    first = (FRONT * (np.isfinite(far).sum(1) - 1)).astype(int)
    keep = z < HIDDEN * np.take_along_axis(around, first[:, None], 1)[:, 0]
    for _ in range(2):
        uv, z = uv[keep], z[keep]
        if len(z) < LEAST:
            return uv, z
        around = np.asarray(KDTree(uv).query(uv, k=9)[1])
        others = np.median(z[around[:, 1:]], 1)
        keep = (z > others / HIDDEN) & (z < others * HIDDEN)
    return uv[keep], z[keep]


def merged_depth(points: PointDepth, splats: Tensor) -> tuple[Tensor, Tensor]:
    """(z, trusted): the points' depth where trusted and not contradicted, else that of splats held to the points."""
    near = (points.z / splats).log().abs() < 0.3
    z = torch.where(points.trusted & near, points.z, splats)
    return z, (z / splats).log().abs() < 0.1


def ray_lengths(cameras: list[Camera]) -> Tensor:
    """Distance along the ray over z, `[V, h, w]`."""
    lengths = []
    for camera in cameras:
        y, x = torch.meshgrid(torch.arange(camera.height) + 0.5, torch.arange(camera.width) + 0.5, indexing="ij")
        K = torch.as_tensor(camera.K, dtype=torch.float32)
        lengths.append((((x - K[0, 2]) / K[0, 0]) ** 2 + ((y - K[1, 2]) / K[1, 1]) ** 2 + 1).sqrt())
    return torch.stack(lengths)
