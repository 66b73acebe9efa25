"""Front-to-back blending of each tile's splats, LANES pixels of a row at a time."""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import fast_parallel_kernel, named, precise, precise_inline
from fujinsplat.splat.raster.conventions import ALPHA_MAX, T_STOP, TILE_H, TILE_W, f4
from fujinsplat.splat.raster.projection import (
    BLUE,
    DEPTH,
    GREEN,
    HALF_H,
    HALF_W,
    OPACITY,
    REACH,
    RED,
    SHARPNESS,
    SHARPNESS_Y,
    SHEAR,
    X,
    Y,
)
from fujinsplat.splat.vectors import (
    LANES,
    MAGIC,
    above,
    at_most,
    lane_numbers,
    largest,
    lesser,
    load,
    prefetch,
    splat,
    store,
    times_power_of_two,
)

# floats from one plane of a tile's state to the next: planes 4096 bytes apart would hold up each other's loads and
# stores, since addresses are first compared by their last twelve bits
PLANE = TILE_W * TILE_H + 4 * LANES
AHEAD = 6  # splats: a tile's splats lie scattered in memory
LOOK = 32  # splats between looks whether the whole tile is finished

# exp(-s) = 2^n 2^f with n + f = -s log2(e), n an integer and |f| <= 1/2; 2^f is a degree-5 Chebyshev fit, exact to
# float32. Asked for are s up to ln 255 = 5.54; beyond about 80 the exponent overflows and the value means nothing.
MINUS_LOG2_E = f4(-np.log2(np.e))
_NODES = 0.5 * np.cos(np.pi * (np.arange(200) + 0.5) / 200)
E5, E4, E3, E2, E1, E0 = (f4(c) for c in np.polyfit(_NODES, np.exp2(_NODES), 5))


@precise_inline
def falloff(s):
    """exp(-s), lane by lane."""
    rate, magic = splat(MINUS_LOG2_E, s), splat(MAGIC, s)
    n = s * rate + magic
    f = s * rate - (n - magic)
    p = ((splat(E5, s) * f + splat(E4, s)) * f + splat(E3, s)) * f + splat(E2, s)
    return times_power_of_two((p * f + splat(E1, s)) * f + splat(E0, s), n)


@precise
def rows_reached(half, y):
    """Half-open range of the tile's rows that a splat of half height `half` reaches, `y` its centre in the tile."""
    first = max(0.0, np.ceil(y - half))
    return int(first), int(max(first, min(float(TILE_H), np.floor(y + half) + 1.0)))


@precise
def groups_reached(half, x):
    """Half-open range of a row's groups of LANES pixels that a splat of half width `half` reaches, `x` its centre."""
    first = max(0.0, np.floor((x - half) * (1.0 / LANES)))
    return int(first), int(max(first, min(TILE_W / LANES, np.floor((x + half) * (1.0 / LANES)) + 1.0)))


@precise
def _finished(state):
    most = load(state, 0)
    for i in range(LANES, TILE_W * TILE_H, LANES):
        other = load(state, i)
        most = above(other, most, other, most)
    return largest(most) < 0


def _tile_blender(with_depth: bool):
    """The function that blends one tile, compiled with or without a depth channel."""

    def blend_tile(
        ox, oy, columns, rows, places, splats, members, first, end, background, image, depth, transmittance, lasts
    ):
        # planes: transmittance (negative once finished) | index of the last splat | red | green | blue | depth
        state = np.zeros((6 if with_depth else 5) * PLANE, np.float32)
        state[: 2 * PLANE] = -1
        for r in range(rows):
            state[r * TILE_W : r * TILE_W + columns] = 1
        like = load(state, 0)
        lane, zero, one = lane_numbers(like), splat(0.0, like), splat(1.0, like)
        cap, stop = splat(ALPHA_MAX, like), splat(T_STOP, like)
        for j in range(first, end):
            ahead = members[min(j + AHEAD, end - 1)]
            prefetch(places, ahead)
            prefetch(splats, ahead)
            member = members[j]
            x, y = places[member, X] - ox - 0.5, places[member, Y] - oy - 0.5
            sharpness, shear = splats[member, SHARPNESS], places[member, SHEAR]
            sharpness_y, reach = splats[member, SHARPNESS_Y], splats[member, REACH]
            sharp, limit, opacity = splat(sharpness, like), splat(reach, like), splat(splats[member, OPACITY], like)
            red, green, blue = (
                splat(splats[member, RED], like),
                splat(splats[member, GREEN], like),
                splat(splats[member, BLUE], like),
            )
            number, far = splat(j - first, like), splat(splats[member, DEPTH], like)
            row_first, row_end = rows_reached(splats[member, HALF_H], y)
            group, group_end = groups_reached(splats[member, HALF_W], x)
            for row in range(row_first, row_end):
                dy = row - y
                middle, lift = x - shear * dy, sharpness_y * dy * dy
                raised = splat(lift, like)
                for i in range(row * TILE_W + group * LANES, row * TILE_W + group_end * LANES, LANES):
                    du = lane + splat(i - row * TILE_W - middle, like)
                    s = sharp * du * du + raised
                    alpha = at_most(s, limit, lesser(opacity * falloff(s), cap), zero)
                    before = load(state, i)
                    after = before * (one - alpha)
                    weight = above(after, stop, alpha * before, zero)
                    store(state, i, above(after, stop, after, lesser(before, zero - before)))
                    store(state, i + PLANE, above(after, stop, number, load(state, i + PLANE)))
                    store(state, i + 2 * PLANE, load(state, i + 2 * PLANE) + weight * red)
                    store(state, i + 3 * PLANE, load(state, i + 3 * PLANE) + weight * green)
                    store(state, i + 4 * PLANE, load(state, i + 4 * PLANE) + weight * blue)
                    if with_depth:
                        store(state, i + 5 * PLANE, load(state, i + 5 * PLANE) + weight * far)
            if (j - first) % LOOK == LOOK - 1 and _finished(state):
                break
        for r in range(rows):
            for c in range(columns):
                i = r * TILE_W + c
                left = abs(state[i])
                transmittance[oy + r, ox + c] = left
                lasts[oy + r, ox + c] = state[i + PLANE]
                image[oy + r, ox + c, 0] = state[i + 2 * PLANE] + left * background[0]
                image[oy + r, ox + c, 1] = state[i + 3 * PLANE] + left * background[1]
                image[oy + r, ox + c, 2] = state[i + 4 * PLANE] + left * background[2]
                if with_depth:
                    depth[oy + r, ox + c] = state[i + 5 * PLANE]

    return precise(named(blend_tile, "depth" if with_depth else "colour"))


_colour_tile, _depth_tile = _tile_blender(False), _tile_blender(True)


@fast_parallel_kernel
def blend(places, splats, starts, members, background, image, transmittance, lasts):
    """Fill `image [H, W, 3]`, `transmittance [H, W]` (what reaches the background) and `lasts [H, W]`: the number,
    within its tile's list, of the last splat each pixel saw (-1: none)."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _colour_tile(
            ox, oy, columns, rows, places, splats, members, starts[tile], starts[tile + 1],
            background, image, transmittance, transmittance, lasts,
        )  # fmt: skip


@fast_parallel_kernel
def blend_with_depth(places, splats, starts, members, background, image, depth, transmittance, lasts):
    """`blend`, and into `depth [H, W]` the sum of weight x depth, as colours are summed."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _depth_tile(
            ox, oy, columns, rows, places, splats, members, starts[tile], starts[tile + 1],
            background, image, depth, transmittance, lasts,
        )  # fmt: skip
