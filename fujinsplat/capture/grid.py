"""One pixel grid for the RAW and the camera RGB of a view.

LibRaw decodes a sensor area that is often a few pixels larger than the camera's JPEG; datasets carry reduced JPEGs
beside full-size RAW. In order: a RAW that differs by its orientation alone is turned; a border of a few pixels is cut
(the file's own crop where it states one, otherwise centred); then the larger of the two is area-resized to the smaller
one's grid, so that nothing is invented. Linear light is averaged in both: encoded RGB is decoded first.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.capture.cameras import same_aspect
from fujinsplat.capture.raw import Raw
from fujinsplat.core.color import decode, encode

# a border of at most so many pixels, or this share of the side, is cut instead of squeezed
BORDER_PIXELS = 8
BORDER_SHARE = 0.0075


class AspectError(Exception):
    """The two pictures do not show one frame; the caller knows the file names."""


@dataclass(frozen=True)
class Pair:
    """`raw_linear` uint16 [H, W, 3] and `rgb_encoded` uint8 [H, W, 3] on one grid, and what was done for it."""

    raw_linear: np.ndarray
    rgb_encoded: np.ndarray
    notes: tuple[str, ...]


def _weights(old: int, new: int):
    """Sparse [new, old] of the share of each old pixel in each new one; rows sum to 1."""
    from scipy.sparse import csr_array

    edges = np.arange(new + 1) * (old / new)
    first = np.floor(edges[:-1] + 1e-9).astype(int)
    last = np.minimum(np.ceil(edges[1:] - 1e-9).astype(int), old)
    columns = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    rows = np.repeat(np.arange(new), last - first)
    overlap = np.minimum(columns + 1, edges[rows + 1]) - np.maximum(columns, edges[rows])
    return csr_array(((overlap * (new / old)).astype(np.float32), (rows, columns)), shape=(new, old))


def area_resize(image: np.ndarray, width: int, height: int, table: np.ndarray | None = None) -> np.ndarray:
    """Area-average `image` [H, W, C] (linear light) to float32 [height, width, C]; exact for fractional factors.

    `table`: what each integer value of `image` means in linear light. One channel at a time: a 60-megapixel RAW needs a
    quarter of a gigabyte beside itself.
    """
    rows, columns = _weights(image.shape[0], height), _weights(image.shape[1], width)
    out = np.empty((height, width, image.shape[2]), np.float32)
    for channel in range(image.shape[2]):
        plane = image[..., channel].astype(np.float32) if table is None else table[image[..., channel]]
        out[..., channel] = (columns @ (rows @ plane).T).T
    return out


def _resize_raw(raw_linear: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return np.rint(area_resize(raw_linear, *size)).astype(np.uint16)


def resize_rgb(rgb_encoded: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Area-resize 8-bit sRGB to `size` (width, height) in linear light."""
    linear = area_resize(rgb_encoded, *size, table=decode(np.arange(256) / 255.0).astype(np.float32))
    return np.rint(np.clip(encode(linear.astype(np.float64)), 0, 1) * 255).astype(np.uint8)


def _turn(raw: Raw, rgb: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """The RAW pixels as the RGB shows them: as stored, or turned upright by the file's own orientation tag when only
    that fits. A half turn keeps the shape, so there the pictures themselves decide."""
    size = rgb.shape[1], rgb.shape[0]
    if raw.turns:
        turned = np.rot90(raw.linear, raw.turns)
        turned_fits = same_aspect((turned.shape[1], turned.shape[0]), size)
        stored_fits = same_aspect(raw.size, size)
        if turned_fits and (not stored_fits or _likeness(turned, rgb) > _likeness(raw.linear, rgb)):
            return np.ascontiguousarray(turned), ("RAW turned upright as its orientation tag says: the RGB is upright",)
    return raw.linear, ()


def _likeness(raw_linear: np.ndarray, rgb: np.ndarray) -> float:
    """Correlation of two thumbnails in tone-free terms (ranks), so that the camera's tone curve does not matter."""
    side = min(24, *raw_linear.shape[:2], *rgb.shape[:2])
    a, b = (area_resize(image, side, side).mean(-1).ravel() for image in (raw_linear, rgb))
    rank_a, rank_b = (np.argsort(np.argsort(x)).astype(np.float64) for x in (a, b))
    return float(np.corrcoef(rank_a, rank_b)[0, 1])


def _cut(raw_linear: np.ndarray, crop: tuple[int, int, int, int] | None, size: tuple[int, int]):
    """Cut the border by which the RAW exceeds a whole multiple of the RGB's size, if it is small."""
    width, height = raw_linear.shape[1], raw_linear.shape[0]
    factor = max(1, round(min(width / size[0], height / size[1])))
    extra = width - factor * size[0], height - factor * size[1]
    limits = (max(BORDER_PIXELS, BORDER_SHARE * width), max(BORDER_PIXELS, BORDER_SHARE * height))
    if extra == (0, 0) or not all(0 <= e <= limit for e, limit in zip(extra, limits, strict=True)):
        return raw_linear, ()
    left, top = extra[0] // 2, extra[1] // 2
    if crop is not None and crop[2:] == (factor * size[0], factor * size[1]):
        left, top = crop[:2]
    cut = raw_linear[top : top + factor * size[1], left : left + factor * size[0]]
    return cut, (f"RAW of {width}x{height} cut by a border of {extra[0]}x{extra[1]} pixels at ({left}, {top})",)


def limited(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    """`size` (width, height), or the same shape with its longer side at `max_side`."""
    if max_side is None or max(size) <= max_side:
        return size
    width, height = (max(1, round(side * max_side / max(size))) for side in size)
    return width, height


def on_one_grid(
    raw: Raw,
    rgb: np.ndarray,
    size: tuple[int, int] | None = None,
    max_side: int | None = None,
    for_raw: bool = False,
) -> Pair:
    """RAW and RGB (uint8 [h, w, 3], encoded) of one view on one grid: the smaller one's, its longer side at most
    `max_side`; or `size` when given (the grid of the source view, for a clean twin). `for_raw`: the RAW keeps its own
    finer grid over the same frame, and the RGB is left as it is."""
    rgb_size = rgb.shape[1], rgb.shape[0]
    linear, notes = _turn(raw, rgb)
    crop = raw.crop if linear is raw.linear else None
    if not same_aspect((linear.shape[1], linear.shape[0]), rgb_size):
        raise AspectError
    linear, cut_notes = _cut(linear, crop, rgb_size)
    raw_size = linear.shape[1], linear.shape[0]
    smaller = rgb_size if raw_size[0] * raw_size[1] >= rgb_size[0] * rgb_size[1] else raw_size
    grid = size or limited(raw_size if for_raw else smaller, max_side)
    if not same_aspect(grid, rgb_size):
        raise AspectError
    notes += cut_notes
    if raw_size != grid:
        linear = _resize_raw(linear, grid)
        notes += (f"linear RAW area-resized from {raw_size[0]}x{raw_size[1]} to {grid[0]}x{grid[1]}",)
    if rgb_size != grid and not for_raw:
        rgb = resize_rgb(rgb, grid)
        notes += (f"camera RGB area-resized from {rgb_size[0]}x{rgb_size[1]} to {grid[0]}x{grid[1]}",)
    return Pair(np.ascontiguousarray(linear), rgb, notes)
