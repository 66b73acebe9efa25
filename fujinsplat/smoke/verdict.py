"""Whether a capture determines its smoke: what is refused in one sentence, and what is said in words and numbers.

The airlight is known from what the smoke changes between views; the less it changes, the less it is known. Where it is
not known well enough, the estimate is applied in part or not at all, so that nothing ends below the pictures it began
with.
"""

import numpy as np
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.core.errors import UserError
from fujinsplat.smoke.fit import Fit, Tracks
from fujinsplat.smoke.pairs import Regressions, airlight

SATURATED, TOO_MANY = 0.98, 0.5  # a green value this high is clipped; a view with this share of them is lost
BLACK = 2e-4  # a median below: nothing but noise
SAME = 1e-6  # mean difference of views that are one picture
LEAST_REGRESSIONS, LEAST_TRACKS = 30, 100
SURE, UNSURE = 0.05, 0.15  # relative deviation of the airlight: applied in full; not at all
STILL = 0.03  # deviation of log k between views: less is no change of smoke
THICK = 0.05  # transmission below which a surface is lost in noise
SPARSE = 0.3  # share of trusted pixels below which depth is mostly guessed


def check_views(views: Tensor, cameras: list[Camera], depth: Tensor, trusted: Tensor) -> None:
    """Refuse what holds no smoke to estimate; each with one sentence."""
    count, height, width = views.shape[:3]
    if count < 2:
        raise UserError("one view cannot tell smoke from surface; give at least two photographs of the scene")
    if depth.shape != views.shape[:3] or trusted.shape != views.shape[:3] or len(cameras) != count:
        raise ValueError(f"estimate: {tuple(views.shape)} views, {tuple(depth.shape)} depth, {len(cameras)} cameras")
    if any((camera.width, camera.height) != (width, height) for camera in cameras):
        raise ValueError("estimate: cameras of another picture size; scale them to the views'")
    first = views[0]
    for view, camera in zip(views, cameras, strict=True):
        some = view[::4, ::4]
        if not bool(some.isfinite().all()):
            raise UserError(f"view {camera.stem!r} holds values that are not finite; decode it again")
        if float((some[..., 1] >= SATURATED).float().mean()) > TOO_MANY:
            raise UserError(f"view {camera.stem!r} is saturated over most of the picture; leave it out or expose less")
        if float(some.median()) < BLACK:
            raise UserError(f"view {camera.stem!r} is black (median {float(some.median()):.1e}); leave it out")
    if all(float((view - first).abs().mean()) < SAME for view in views[1:]):
        raise UserError("all views are the same picture; photograph the scene from several positions")
    if not bool(trusted.any()):
        raise UserError("no pixel has a depth to believe; smoke needs points, run structure from motion again")


def check_pairs(found: Regressions) -> None:
    if len(found.k) < LEAST_REGRESSIONS:
        raise UserError(
            f"only {len(found.k)} of {found.tried} regions are seen alike by two views; the smoke cannot be measured: "
            "take photographs that overlap, or train without it"
        )


def check_tracks(tracks: Tracks) -> None:
    if tracks.count < LEAST_TRACKS:
        raise UserError(
            f"only {tracks.count} surface points are seen by three views; the smoke cannot be measured: take "
            "photographs that overlap, or train without it"
        )


def airlight_deviation(found: Regressions, views: int) -> float:
    """Relative standard deviation of the airlight by leaving out a tenth of the views at a time."""
    groups = min(10, views)
    out = []
    for group in range(groups):
        keep = (found.pair % groups != group).all(1)
        if keep.sum() >= 3:
            part = Regressions(found.pair[keep], found.k[keep], found.m[keep], found.weight[keep], found.tried)
            out.append(airlight(part)[0])
    if len(out) < 2:
        return float("inf")
    out = np.stack(out)
    spread = np.sqrt((len(out) - 1) * out.var(0))  # jackknife
    middle = out.mean(0)
    return float(np.max(spread / np.maximum(np.abs(middle), 1e-9))) if (middle > 0).all() else float("inf")


def judge(found: Regressions, colour: np.ndarray, kept: np.ndarray, tracks: Tracks, result: Fit, small) -> dict:
    """Numbers, sentences, and the share of the estimate to apply."""
    views = len(result.slope)
    share = kept / max(kept.sum(), 1e-30)
    change = float(np.sqrt((share * np.log(found.k) ** 2).sum()))
    deviation = airlight_deviation(found, views)
    if not np.isfinite(deviation):
        deviation = 10.0
    keep = float(np.clip((UNSURE - deviation) / (UNSURE - SURE), 0, 1))
    if change < STILL or not (colour > 0).all():
        keep = 0.0
    trusted = float(small.trusted.mean())
    middle = result.grid.mean((1, 2)) + result.slope.mean((1, 2))
    thick = float((np.exp(-middle) < THICK).mean())
    words = []
    if change < STILL:
        words.append(f"the smoke hardly changes between views (log k {change:.3f}), so the airlight is not determined")
    elif keep < 1:
        words.append(f"the airlight is known to {100 * deviation:.0f} % only")
    if keep < 1:
        words.append(
            f"{100 * keep:.0f} % of the estimated smoke is taken away" if keep else "the views stay as they are"
        )
    if thick > 0:
        words.append(f"{100 * thick:.0f} % of the views let less than {THICK:g} of the light through")
    if trusted < SPARSE:
        words.append(f"only {100 * trusted:.0f} % of the pixels have a depth to believe")
    return {
        "keep": keep,
        "airlight": [float(c) for c in result.airlight],
        "airlight_deviation": deviation,
        "regressions": len(found.k),
        "regressions_tried": found.tried,
        "change": change,
        "tracks": tracks.count,
        "observations": len(tracks.view),
        "noise": result.noise,
        "trusted": trusted,
        "transmission": [float(t) for t in np.exp(-middle)],
        "level_deviation": float(result.level[:, 0].std()),
        "determined": not words,
        "words": words,
    }
