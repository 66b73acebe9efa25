"""Front-to-back blending of each tile's splats.

Per-tile state lives in ONE flat float32 array of planes and is indexed with unsigned integers: separate arrays would
need more alias checks than LLVM's limit, and signed indices bring wrap-around selects; either one silently turns
vectorisation off and costs a factor of five.
"""

import numpy as np
from numba import njit, prange

from fujinsplat.splat.raster.conventions import ALPHA_MAX, FAST, T_STOP, TILE_H, TILE_W, f4, u8
from fujinsplat.splat.raster.projection import (
    BLUE,
    GREEN,
    HALF_H,
    OPACITY,
    REACH,
    RED,
    SHARPNESS,
    SHARPNESS_Y,
    SHEAR,
)

ZERO, HALF, ONE = f4(0), f4(0.5), f4(1)
CAP, STOP = f4(ALPHA_MAX), f4(T_STOP)
U0, WIDTH, PLANE = u8(0), u8(TILE_W), u8(TILE_W * TILE_H)
LOOK = 32  # splats between looks whether the whole tile is finished

# exp(-s) = p(s)^8 with p a degree-5 Chebyshev fit of exp(-s / 8) on [0, REACH_MAX]: 1e-6 relative, and it vectorises.
# Contributions end at s = ln 255 = 5.54.
REACH_MAX = f4(6.0)
_NODES = 3 + 3 * np.cos(np.pi * (np.arange(200) + 0.5) / 200)
E5, E4, E3, E2, E1, E0 = (f4(c) for c in np.polyfit(_NODES, np.exp(-_NODES / 8), 5))


@njit(inline="always", **FAST)
def falloff(s):
    """exp(-s) for s in [0, REACH_MAX]."""
    p = ((((E5 * s + E4) * s + E3) * s + E2) * s + E1) * s + E0
    p = p * p
    p = p * p
    return p * p


@njit(**FAST)
def rows_reached(splat, y):
    """Half-open range of the tile's rows that a splat reaches, `y` its centre in the tile's pixel grid."""
    half = splat[HALF_H]
    first = max(f4(0), np.ceil(f4(y) - half))
    last = min(f4(TILE_H), np.floor(f4(y) + half) + ONE)
    return int(first), max(int(first), int(last))


@njit(**FAST)
def _blend_tile(ox, oy, columns, rows, centres, splats, members, first, end, background, image, transmittance, lasts):
    # planes: transmittance (negative once finished) | index of the last splat | red | green | blue
    state = np.zeros(5 * TILE_W * TILE_H, np.float32)
    P1, P2, P3, P4 = PLANE, PLANE + PLANE, u8(3) * PLANE, u8(4) * PLANE
    for i in range(U0, PLANE):
        state[i] = -ONE
        state[i + P1] = -ONE
    for r in range(rows):
        for c in range(columns):
            state[r * TILE_W + c] = ONE
    for j in range(first, end):
        splat = splats[members[j]]
        x, y = centres[members[j], 0] - ox - 0.5, centres[members[j], 1] - oy - 0.5
        sharpness, shear, sharpness_y = splat[SHARPNESS], splat[SHEAR], splat[SHARPNESS_Y]
        reach, opacity = splat[REACH], splat[OPACITY]
        red, green, blue = splat[RED], splat[GREEN], splat[BLUE]
        number = f4(j - first)
        row, row_end = rows_reached(splat, y)
        while row < row_end:
            dy = row - y
            middle = f4(x - shear * dy)
            lift = sharpness_y * f4(dy) * f4(dy)
            base = u8(row * TILE_W)
            for c in range(U0, WIDTH):
                i = base + c
                du = f4(c) - middle
                s = sharpness * du * du + lift
                alpha = min(CAP, opacity * falloff(min(s, REACH_MAX)))
                alpha = alpha if s <= reach else ZERO
                before = state[i]
                after = before * (ONE - alpha)
                on = after > STOP
                weight = alpha * before if on else ZERO
                state[i] = after if on else -abs(before)
                state[i + P1] = number if on else state[i + P1]
                state[i + P2] += weight * red
                state[i + P3] += weight * green
                state[i + P4] += weight * blue
            row += 1
        if (j - first) % LOOK == LOOK - 1:
            most = -ONE
            for i in range(U0, PLANE):
                most = max(most, state[i])
            if most < ZERO:
                break
    for r in range(rows):
        for c in range(columns):
            i = u8(r * TILE_W + c)
            left = abs(state[i])
            transmittance[oy + r, ox + c] = left
            lasts[oy + r, ox + c] = state[i + P1]
            image[oy + r, ox + c, 0] = state[i + P2] + left * background[0]
            image[oy + r, ox + c, 1] = state[i + P3] + left * background[1]
            image[oy + r, ox + c, 2] = state[i + P4] + left * background[2]


@njit(parallel=True, **FAST)
def blend(centres, splats, starts, members, background, image, transmittance, lasts):
    """Fill `image [H, W, 3]`, `transmittance [H, W]` (what reaches the background) and `lasts [H, W]`: the number,
    within its tile's list, of the last splat each pixel saw (-1: none)."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _blend_tile(
            ox, oy, columns, rows, centres, splats, members, starts[tile], starts[tile + 1],
            background, image, transmittance, lasts,
        )  # fmt: skip
