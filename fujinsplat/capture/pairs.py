"""Whether the RAW and the camera RGB of a view show one picture, pixel for pixel.

Two things go wrong on the way from a camera to a folder: files end up beside the wrong partner, and cameras correct
their lenses in the JPEG alone. Both are seen without knowing the camera's tone curve: what is compared is fine
structure (brightness minus its surroundings, in the logarithm), which a tone curve hardly changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fujinsplat.capture.grid import area_resize
from fujinsplat.capture.layout import View
from fujinsplat.core.color import decode, luminance

THUMB = 96  # longest side of the pictures that are compared for being one picture at all
CERTAIN = 0.35  # a pair whose likeness is above this is one picture, whatever the others look like; demo pairs: .95
BETTER = 0.08  # how much more alike another partner must be for this one to be the wrong one
BLOCKS = (8, 6)  # places (columns, rows) at which the shift between RAW and RGB is measured
NOTHING = 0.35  # pixels of shift that need no alignment


@dataclass(frozen=True)
class Thumb:
    """The fine structure of one view's RAW and RGB, [h, w] each, mean 0 and length 1 (or all zero when flat), and the
    names of the two files."""

    names: tuple[str, str]
    raw: np.ndarray
    rgb: np.ndarray


def structure(linear: np.ndarray) -> np.ndarray:
    """Logarithm of brightness minus its surroundings: [h, w] from linear light [h, w, 3] in [0, 1]."""
    from scipy.ndimage import gaussian_filter

    bright = np.log(np.asarray(luminance(linear), np.float32) + 0.01)
    return gaussian_filter(bright, 0.6) - gaussian_filter(bright, 3.0)


def _unit(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean()
    length = np.linalg.norm(centred)
    return centred / length if length > 1e-6 else np.zeros_like(centred)


def light_of(rgb_encoded: np.ndarray) -> np.ndarray:
    """Linear light float32 of 8-bit sRGB."""
    return decode(np.arange(256) / 255.0).astype(np.float32)[rgb_encoded]


def thumb(view: View, raw_linear: np.ndarray, rgb_encoded: np.ndarray) -> Thumb | None:
    """`raw_linear` uint16 and `rgb_encoded` uint8, [H, W, 3] each over the same frame; None for a view of one file."""
    if view.raw is None or view.rgb is None:
        return None
    height, width = raw_linear.shape[:2]
    scale = min(1.0, THUMB / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    table = decode(np.arange(256) / 255.0).astype(np.float32)
    raw = area_resize(raw_linear, *size) / 65535
    rgb = area_resize(rgb_encoded, *size, table=table)
    return Thumb((str(view.raw), str(view.rgb)), _unit(structure(raw)), _unit(structure(rgb)))


def likeness(raw: np.ndarray, rgb: np.ndarray) -> float:
    """Correlation of two structures of one shape, with a pixel of freedom: lens correction moves things a little."""
    if raw.shape != rgb.shape:
        return 0.0
    best = -1.0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            best = max(best, float((raw * np.roll(rgb, (dy, dx), (0, 1))).sum()))
    return best


def wrong_pairs(thumbs: Sequence[Thumb | None]) -> list[str]:
    """One sentence for each view whose RAW and RGB are not one picture, or one for all where none of them are."""
    both = [t for t in thumbs if t is not None and t.raw.any() and t.rgb.any()]  # the others cannot be compared
    own = [likeness(t.raw, t.rgb) for t in both]
    usual = max(own, default=0.0)
    problems = []
    for index, view in enumerate(both):
        if own[index] > 1 - BETTER:
            continue  # nothing can be better
        others = [likeness(view.raw, other.rgb) if i != index else -1.0 for i, other in enumerate(both)]
        # an RGB that fits its own RAW better is nobody else's partner
        free = [like if like > own[i] else -1.0 for i, like in enumerate(others)]
        best, wanted = int(np.argmax(free)), max(own[index] + BETTER, CERTAIN)
        if free[best] > wanted:
            problems.append(
                f"{view.names[0]} and {view.names[1]} are not one picture: the RAW fits {both[best].names[1]} "
                f"(likeness {free[best]:.2f} against {own[index]:.2f}); rename both"
            )
        elif max(others) > wanted or own[index] < CERTAIN < usual:
            problems.append(
                f"{view.names[0]} and {view.names[1]} are not one picture (likeness {own[index]:.2f}, up to "
                f"{usual:.2f} in other views); use the RGB of the same shot, remove the view, or set "
                "capture.check_pairs: false"
            )
    return problems or ([_none_fits(both, usual)] if both and usual < CERTAIN else [])


def _none_fits(thumbs: list[Thumb], usual: float) -> str:
    """The sentence for a capture whose RAW and RGB differ in every view: a crop where one explains it."""
    remedy = "use the RAW files alone, or set capture.check_pairs: false"
    found = [shown_share(t) for t in thumbs]
    shares = [share for share, like in found if like > CERTAIN]
    if 2 * len(shares) > len(thumbs):
        return (
            f"the RGB pictures show only about {np.median(shares):.0%} of the width that the RAW files show (a crop or "
            f"a digital zoom in the camera), beginning with {thumbs[0].names[1]}; export them uncropped, {remedy}"
        )
    return (
        f"no RAW file and its RGB are one picture, beginning with {thumbs[0].names[0]} and {thumbs[0].names[1]} "
        f"(likeness up to {usual:.2f}); use the RGB of the same shots, {remedy}"
    )


def shown_share(view: Thumb) -> tuple[float, float]:
    """(share of the RAW's width that the RGB shows, likeness there), tried from half to all of it, at any place."""
    from scipy.ndimage import zoom

    best = (1.0, likeness(view.raw, view.rgb))
    for share in np.linspace(0.5, 0.97, 48):
        like = float(_correlation(view.raw, _unit(np.asarray(zoom(view.rgb, share, order=1)))).max())
        best = max(best, (float(share), like), key=lambda found: found[1])
    return best


# in-camera lens correction


@dataclass(frozen=True)
class Alignment:
    """How the RGB's pixels lie on the RAW's, in units of half the picture's diagonal from its centre: a point at `p` of
    the RGB shows what the RAW has at `p + shift + zoom p + bend |p|^2 p`. `residual`: pixels it leaves, `largest`:
    pixels it moves at most, both on the grid it was measured on."""

    shift: tuple[float, float]
    zoom: float
    bend: float
    largest: float
    residual: float

    @property
    def needed(self) -> bool:
        return self.largest > NOTHING

    def describe(self) -> str:
        return f"shift ({self.shift[0]:+.4f}, {self.shift[1]:+.4f}), zoom {self.zoom:+.4f}, bend {self.bend:+.4f}"


def measure(raw_linear: np.ndarray, rgb_encoded: np.ndarray) -> np.ndarray:
    """Where the RGB's places lie on the RAW: [n, 5] of place x, y and shift x, y in units of half the diagonal, and how
    alike the two are there. Places without structure are left out."""
    raw, rgb = structure(raw_linear.astype(np.float32) / 65535), structure(light_of(rgb_encoded))
    height, width = raw.shape
    reach = max(4, round(0.03 * width))
    half = max(12, min(width // (2 * BLOCKS[0]), height // (2 * BLOCKS[1])))
    unit, rows = np.hypot(width, height) / 2, []
    margin = half + reach
    for cy in np.linspace(margin, height - margin, BLOCKS[1]):
        for cx in np.linspace(margin, width - margin, BLOCKS[0]):
            x, y = int(cx), int(cy)
            if min(x, y) < margin or x > width - margin or y > height - margin:
                continue
            patch = _unit(rgb[y - half : y + half, x - half : x + half])
            found = _search(raw[y - margin : y + margin, x - margin : x + margin], patch, reach)
            if found is not None:
                dx, dy, like = found
                rows.append(((x - width / 2) / unit, (y - height / 2) / unit, dx / unit, dy / unit, like))
    return np.array(rows, np.float64).reshape(-1, 5)


def _correlation(area: np.ndarray, patch: np.ndarray) -> np.ndarray:
    """Correlation of a `patch` of mean 0 and length 1 with every place of `area` at which it lies inside."""
    from scipy.signal import fftconvolve

    ones = np.ones_like(patch)
    total = fftconvolve(area, ones, "valid")
    power = fftconvolve(area**2, ones, "valid") - total**2 / ones.size
    return fftconvolve(area, patch[::-1, ::-1], "valid") / np.sqrt(np.maximum(power, 1e-8))


def _search(area: np.ndarray, patch: np.ndarray, reach: int) -> tuple[float, float, float] | None:
    """The shift (x, y) in pixels at which `patch` lies in `area`, to a fraction of a pixel, and its correlation."""
    score = _correlation(area, patch)
    y, x = np.unravel_index(int(np.argmax(score)), score.shape)
    if score[y, x] < 0.6 or not (0 < y < score.shape[0] - 1 and 0 < x < score.shape[1] - 1):
        return None
    # a place that looks like its surroundings (a smooth wall, one long edge) says nothing about a shift
    around = score.copy()
    around[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3] = -1
    if around.max() > score[y, x] - 0.1:
        return None
    dx = _vertex(*score[y, x - 1 : x + 2])
    dy = _vertex(*score[y - 1 : y + 2, x])
    return x - reach + dx, y - reach + dy, float(score[y, x])


def _vertex(left: float, middle: float, right: float) -> float:
    """Where the parabola through three values at -1, 0, 1 is highest."""
    bend = left - 2 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else 0.0


def fit(places: np.ndarray, size: tuple[int, int]) -> Alignment | None:
    """One alignment for all measured places [n, 5] of pictures of `size`, robustly; None when there are too few."""
    if len(places) < 12:
        return None
    unit = np.hypot(*size) / 2
    p, d = places[:, :2], places[:, 2:4]
    r2 = (p**2).sum(1)
    matrix = np.zeros((2 * len(p), 4))
    matrix[0::2, 0] = matrix[1::2, 1] = 1
    matrix[0::2, 2], matrix[1::2, 2] = p[:, 0], p[:, 1]
    matrix[0::2, 3], matrix[1::2, 3] = p[:, 0] * r2, p[:, 1] * r2
    values, weight = d.ravel(), np.ones(2 * len(p))
    for _ in range(10):
        root = np.sqrt(weight)
        solution = np.linalg.lstsq(matrix * root[:, None], values * root, rcond=None)[0]
        error = np.abs(values - matrix @ solution) * unit
        weight = 1 / (1 + (error / 0.5) ** 2)
    moved = (matrix @ solution).reshape(-1, 2)
    tx, ty, zoom, bend = (float(s) for s in solution)
    largest, residual = float(np.linalg.norm(moved, axis=1).max() * unit), float(np.median(error))
    return Alignment((tx, ty), zoom, bend, largest, residual)


def moved_places(alignment: Alignment, width: int, height: int, inverse: bool = False) -> np.ndarray:
    """For every pixel centre of the RGB its pixel on the RAW, or (`inverse`) the other way: float32 [h, w, 2]."""
    unit = np.hypot(width, height) / 2
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    p = np.stack([(x - width / 2) / unit, (y - height / 2) / unit], -1)

    def step(q: np.ndarray) -> np.ndarray:
        r2 = (q**2).sum(-1, keepdims=True)
        return np.array(alignment.shift) + alignment.zoom * q + alignment.bend * r2 * q

    if inverse:
        q = p
        for _ in range(5):  # the map is near the identity: this converges at once
            q = p - step(q)
    else:
        q = p + step(p)
    return (q * unit + [width / 2, height / 2]).astype(np.float32)
