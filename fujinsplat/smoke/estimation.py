"""Airlight and transmission of one scene from its own hazy views. Reads top to bottom.

Pictures are averaged down to a bounded width first: the smoke is smooth, and averages are less noisy. Memory and time
grow with the views and not with their pixels.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.smoke import kernels, pairs, verdict
from fujinsplat.smoke.depth import ray_lengths
from fujinsplat.smoke.fit import Tracks, fit, start, unknowns_of
from fujinsplat.smoke.model import Smoke
from fujinsplat.smoke.settings import SmokeSettings

NEAR, FAR = 0.05, 6.0  # limits of distance, in the scene's median
LEAST_VIEWS = 3  # of a track
SHIFT = 5  # the sampling grids of views are shifted against each other by so many pixels
ACROSS = 90  # samples of a view's width that pairs are compared at
MOST_UNKNOWNS = 1800


def estimate(
    views: Tensor,
    cameras: list[Camera],
    depth: Tensor,
    trusted: Tensor,
    settings: SmokeSettings | None = None,
    previous: Smoke | None = None,
) -> Smoke:
    """The smoke of `views [V, h, w, 3]` (white-balanced camera-linear), whatever the capture determines of it.

    `depth [V, h, w]` is along the optical axis, `trusted [V, h, w]` bool says where it is believed; `cameras` are those
    of the views at this size. An estimate made earlier for the same views (`previous`) is where this one starts.
    """
    settings = settings or SmokeSettings()
    verdict.check_views(views, cameras, depth, trusted)
    device = views.device
    distance = depth.cpu() * ray_lengths(cameras)
    scale = float(distance.median())
    small = Reduced(views.cpu(), cameras, depth.cpu(), trusted.cpu(), settings.width)
    settings = _bounded(settings, len(views))

    partners = pairs.choose_partners(small.cams, settings.partners)
    step = max(1, round(small.depth.shape[2] / ACROSS))
    found = pairs.regressions(small.pictures, small.depth, small.trusted, small.cams, partners, step)
    verdict.check_pairs(found)
    colour, kept = pairs.airlight(found)
    if settings.airlight == "brightest":
        colour = pairs.brightest(small.pictures)

    tracks = _tracks(small, partners, scale, settings)
    verdict.check_tracks(tracks)
    shapes = settings.grid[::-1], settings.slopes[::-1]
    known = None
    if previous is not None and (previous.grid.shape[1:], previous.slope.shape[1:]) == shapes:
        known = previous
    first = start(tracks, len(views), colour, settings) if known is None else _unknowns(known, colour)
    result = fit(tracks, colour, first, settings, warm=known is not None)

    judged = verdict.judge(found, colour, kept, tracks, result, small)
    tensors = {
        "colour": result.airlight, "level": result.level, "grid": result.grid, "slope": result.slope
    }  # fmt: skip
    tensors = {name: torch.tensor(value, dtype=torch.float32, device=device) for name, value in tensors.items()}
    distance = (distance / scale).clamp(NEAR, FAR).to(device)
    return Smoke(
        **tensors, depth=distance, trusted=trusted, stems=tuple(camera.stem for camera in cameras),
        keep=judged["keep"], floor=settings.floor, statistics=judged | {"scale": scale}, views=views,
    )  # fmt: skip


class Reduced:
    """Views, depth and trust at the estimate's size, as arrays; pictures smoothed over 3 x 3 pixels."""

    def __init__(self, views: Tensor, cameras: list[Camera], depth: Tensor, trusted: Tensor, width: int):
        factor = max(1, round(views.shape[2] / width))
        height, wide = views.shape[1] // factor, views.shape[2] // factor
        crop = (slice(None), slice(0, height * factor), slice(0, wide * factor))
        scaled = [camera.scaled(camera.width / factor, camera.height / factor) for camera in cameras]
        self.cams = kernels.pack_cameras(scaled)
        pictures = []
        for view in views[crop]:
            picture = F.avg_pool2d(view.permute(2, 0, 1)[None].float(), factor)
            pictures.append(F.avg_pool2d(picture, 3, 1, 1, count_include_pad=False)[0].permute(1, 2, 0))
        self.pictures = torch.stack(pictures).contiguous().numpy()
        middle = (slice(None), slice(factor // 2, height * factor, factor), slice(factor // 2, wide * factor, factor))
        self.depth = depth[middle].float().contiguous().numpy()
        self.trusted = trusted[middle].contiguous().numpy()


def _bounded(settings: SmokeSettings, views: int) -> SmokeSettings:
    """Coarser grids where many views would make too many unknowns to solve for at once."""

    def coarser(grid: tuple[int, int]) -> tuple[int, int]:
        return min(grid[0], max(2, grid[0] - 1)), min(grid[1], max(2, grid[1] - 1))

    while views * unknowns_of(settings.grids) > MOST_UNKNOWNS and max(settings.grid) > 2:
        fewer = coarser(settings.slopes) if settings.grid[0] < 2 * settings.slopes[0] else settings.slopes
        settings = settings.model_copy(update={"grid": coarser(settings.grid), "slopes": fewer})
    return settings


def _tracks(small: Reduced, partners: np.ndarray, scale: float, settings: SmokeSettings) -> Tracks:
    step = max(1, round((small.depth.size / settings.tracks) ** 0.5))
    found = kernels.find_tracks(
        small.pictures, small.depth, small.trusted, small.cams, partners, step, SHIFT, LEAST_VIEWS
    )
    tracks = Tracks(*found)
    tracks.place[:, 2] = np.clip(tracks.place[:, 2] / scale, NEAR, FAR)
    return tracks


def _unknowns(previous: Smoke, colour: np.ndarray) -> np.ndarray:
    """An earlier estimate as the kernels lay it out."""
    views = len(previous)
    rows = torch.cat([previous.grid.reshape(views, -1), previous.slope.reshape(views, -1), previous.level], 1)
    return np.concatenate([rows.cpu().double().numpy().ravel(), colour])
