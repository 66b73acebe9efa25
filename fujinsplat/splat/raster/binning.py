"""Which splats each tile blends, nearest first.

Splats are ordered once by depth (single precision, ties by index, so the order is the same on every run and engine),
then dealt out to tiles in that order. Within the rectangle of tiles around a splat, each row of tiles keeps only those
that the splat's ellipse reaches.
"""

import numpy as np

from fujinsplat.splat.kernels import precise, precise_kernel
from fujinsplat.splat.raster.conventions import TILE_H, TILE_W
from fujinsplat.splat.raster.projection import HALF_H, LEAN, REACH, SHARPNESS, SHARPNESS_Y, SHEAR, X, Y

DIGIT = 11  # bits per pass of the radix sort: three passes order 32-bit keys
FEW = 4  # tiles: for so few it is not worth asking which of them the ellipse reaches
MASK = np.uint32((1 << DIGIT) - 1)


@precise
def _by_depth(depths, seen):
    """`seen` (indices, ascending) in stable order of depth. Positive floats sort like their bit patterns."""
    key, n = depths.view(np.uint32), seen.shape[0]
    order, other = seen, np.empty(n, np.int32)
    for digit in range(3):
        shift = np.uint32(DIGIT * digit)
        start = np.zeros((1 << DIGIT) + 1, np.int32)
        for i in range(n):
            start[((key[order[i]] >> shift) & MASK) + np.uint32(1)] += 1
        for d in range(1 << DIGIT):
            start[d + 1] += start[d]
        for i in range(n):
            d = (key[order[i]] >> shift) & MASK
            other[start[d]] = order[i]
            start[d] += 1
        order, other = other, order
    return order


@precise
def _edge(dy, shear, splat):
    """Half-width, and shift of the middle, of the splat's ellipse in the picture row at `dy` from its centre."""
    inside = max(splat[REACH] - splat[SHARPNESS_Y] * dy * dy, 0.0)
    return np.sqrt(inside / splat[SHARPNESS]), -shear * dy


@precise
def _columns(place, splat, tile_y, x0, x1):
    """Half-open range of tiles in [x0, x1) that the ellipse reaches within one row of tiles.

    The right edge is a concave function of dy with its top at dy = LEAN, so over the row of tiles it is largest at
    LEAN clamped to the row; the left edge is its mirror image. A tenth of a pixel is added against rounding.
    """
    u, v, shear = place[X], place[Y], place[SHEAR]
    low = max(tile_y * TILE_H - v, -splat[HALF_H])
    high = min((tile_y + 1) * TILE_H - v, splat[HALF_H])
    half, middle = _edge(min(max(splat[LEAN], low), high), shear, splat)
    right = u + middle + half + 0.1
    half, middle = _edge(min(max(-splat[LEAN], low), high), shear, splat)
    left = u + middle - half - 0.1
    return max(x0, int(np.floor(left / TILE_W))), min(x1, int(np.floor(right / TILE_W)) + 1)


@precise_kernel
def bin_splats(places, splats, depths, radii, rects, tiles_x, tiles_y):
    """Deal the splats out to tiles.

    Returns `starts [tiles + 1]` and `members [pairs]` (splat indices, tile by tile, nearest first), and for the
    gradients `firsts [N]`, `counts [N]` and `places [pairs]`: splat i takes part at `places[firsts[i] : firsts[i] +
    counts[i]]`.
    """
    n = depths.shape[0]
    seen, number, most = np.empty(n, np.int32), 0, 0
    for i in range(n):
        pairs = (rects[i, 1] - rects[i, 0]) * (rects[i, 3] - rects[i, 2])
        if radii[i, 0] > 0 and pairs > 0:
            seen[number] = i
            number += 1
            most += pairs
    order = _by_depth(depths, seen[:number])
    firsts, counts = np.zeros(n, np.int64), np.zeros(n, np.int32)
    tiles = np.empty(most, np.int32)
    starts = np.zeros(tiles_x * tiles_y + 1, np.int64)
    pair = 0
    for j in range(number):
        i = order[j]
        firsts[i] = pair
        x0, x1, y0, y1 = rects[i, 0], rects[i, 1], rects[i, 2], rects[i, 3]
        for ty in range(y0, y1):
            left, right = x0, x1
            if (x1 - x0) * (y1 - y0) > FEW:
                left, right = _columns(places[i], splats[i], ty, x0, x1)
            for tx in range(left, right):
                tile = ty * tiles_x + tx
                tiles[pair] = tile
                starts[tile + 1] += 1
                pair += 1
        counts[i] = pair - firsts[i]
    for tile in range(tiles_x * tiles_y):
        starts[tile + 1] += starts[tile]
    free = starts[:-1].copy()
    members, slots = np.empty(pair, np.int32), np.empty(pair, np.int32)
    pair = 0
    for j in range(number):
        i = order[j]
        for _ in range(counts[i]):
            place = free[tiles[pair]]
            free[tiles[pair]] += 1
            members[place], slots[pair] = i, place
            pair += 1
    return starts, members, firsts, counts, slots
