"""Gradients of the blended picture with respect to the splats.

Each tile walks its splats from the last one any of its pixels saw back to the first, recovering the transmittance
before each splat by division and carrying the radiance from behind it, so relative precision is kept even behind
opaque splats. Gradients of each (tile, splat) pair go to their own place in a buffer and are then summed per splat in
a fixed order: no atomics, the same bits on every run and for every number of threads.
"""

import numpy as np
from numba import njit, prange

from fujinsplat.splat.raster.blend import CAP, ONE, PLANE, REACH_MAX, U0, WIDTH, ZERO, falloff, rows_reached
from fujinsplat.splat.raster.conventions import FAST, TILE_H, TILE_W, f4, u8
from fujinsplat.splat.raster.projection import (
    BLUE,
    D_BLUE,
    D_GREEN,
    D_OPACITY,
    D_RED,
    D_SHARPNESS,
    D_SHARPNESS_Y,
    D_SHEAR,
    D_X,
    D_Y,
    GRADIENT,
    GREEN,
    OPACITY,
    REACH,
    RED,
    SHARPNESS,
    SHARPNESS_Y,
    SHEAR,
)

MIDDLE_X, MIDDLE_Y = 0.5 * (TILE_W - 1), 0.5 * (TILE_H - 1)  # the tile's middle, origin of the moments


@njit(**FAST)
def _moments(sums, x, y, splat, pair):
    """One pair's gradients from its per-column sums.

    `sums` holds, per column of the tile, sums over rows of g, g*r, g*r^2 (g = dL/dsigma, r the row from the tile's
    middle) and of weight * dL/dcolour. They are moved, in float64, to moments in the splat's own coordinates (du, dy),
    small numbers even when the splat's centre is far outside the tile.
    """
    m0, mx, my, mxx, mxy, myy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    red, green, blue = ZERO, ZERO, ZERO
    for c in range(TILE_W):
        column = c - MIDDLE_X
        g, gr, grr = sums[c], sums[c + TILE_W], sums[c + 2 * TILE_W]
        m0 += g
        mx += column * g
        mxx += column * column * g
        my += gr
        mxy += column * gr
        myy += grr
        red += sums[c + 3 * TILE_W]
        green += sums[c + 4 * TILE_W]
        blue += sums[c + 5 * TILE_W]
    a, k, d = 2.0 * splat[SHARPNESS], float(splat[SHEAR]), 2.0 * splat[SHARPNESS_Y]
    yc = MIDDLE_Y - y
    uc = MIDDLE_X - x + k * yc
    su = mx + k * my + uc * m0  # sum of g du
    sur = mxy + k * myy + uc * my  # sum of g du r
    sy = my + yc * m0  # sum of g dy
    pair[D_X] = -a * su
    pair[D_Y] = -(a * k * su + d * sy)
    pair[D_SHARPNESS] = 0.5 * (mxx + k * mxy + uc * mx + k * sur + uc * su)
    pair[D_SHEAR] = a * (sur + yc * su)
    pair[D_SHARPNESS_Y] = 0.5 * (myy + yc * (my + sy))
    pair[D_OPACITY] = -m0 / splat[OPACITY]
    pair[D_RED], pair[D_GREEN], pair[D_BLUE] = red, green, blue


@njit(**FAST)
def _tile_backward(
    ox,
    oy,
    columns,
    rows,
    centres,
    splats,
    members,
    first,
    end,
    background,
    transmittance,
    lasts,
    v_image,
    v_alpha,
    pairs,
):
    # planes: transmittance after the splat | radiance from behind | dL/dred | dL/dgreen | dL/dblue | last splat
    state = np.zeros(6 * TILE_W * TILE_H, np.float32)
    P1, P2, P3, P4, P5 = PLANE, PLANE + PLANE, u8(3) * PLANE, u8(4) * PLANE, u8(5) * PLANE
    S1, S2, S3, S4, S5 = WIDTH, u8(2) * WIDTH, u8(3) * WIDTH, u8(4) * WIDTH, u8(5) * WIDTH
    sums = np.zeros(6 * TILE_W, np.float32)
    for i in range(U0, PLANE):
        state[i + P5] = -ONE
    latest = -ONE
    for r in range(rows):
        for c in range(columns):
            i = u8(r * TILE_W + c)
            left, last = transmittance[oy + r, ox + c], lasts[oy + r, ox + c]
            red, green, blue = v_image[oy + r, ox + c, 0], v_image[oy + r, ox + c, 1], v_image[oy + r, ox + c, 2]
            state[i] = left
            behind = red * background[0] + green * background[1] + blue * background[2]
            state[i + P1] = left * (behind - v_alpha[oy + r, ox + c])
            state[i + P2], state[i + P3], state[i + P4], state[i + P5] = red, green, blue, last
            latest = max(latest, last)
    stop = min(end, first + int(latest) + 1)
    for j in range(stop, end):
        for k in range(GRADIENT):
            pairs[j, k] = ZERO
    for back in range(stop - first):
        j = stop - 1 - back
        splat = splats[members[j]]
        x, y = centres[members[j], 0] - ox - 0.5, centres[members[j], 1] - oy - 0.5
        sharpness, shear, sharpness_y = splat[SHARPNESS], splat[SHEAR], splat[SHARPNESS_Y]
        reach, opacity = splat[REACH], splat[OPACITY]
        red, green, blue = splat[RED], splat[GREEN], splat[BLUE]
        number = f4(j - first)
        for c in range(U0, u8(6) * WIDTH):
            sums[c] = ZERO
        row, row_end = rows_reached(splat, y)
        while row < row_end:
            dy = row - y
            middle = f4(x - shear * dy)
            lift = sharpness_y * f4(dy) * f4(dy)
            r = f4(row) - f4(MIDDLE_Y)
            base = u8(row * TILE_W)
            for c in range(U0, WIDTH):
                i = base + c
                du = f4(c) - middle
                s = sharpness * du * du + lift
                raw = opacity * falloff(min(s, REACH_MAX))
                alpha = min(CAP, raw)
                alpha = alpha if (s <= reach) & (number <= state[i + P5]) else ZERO
                inverse = ONE / (ONE - alpha)
                before = state[i] * inverse
                state[i] = before
                weight = alpha * before
                v_red, v_green, v_blue = state[i + P2], state[i + P3], state[i + P4]
                seen = v_red * red + v_green * green + v_blue * blue
                behind = state[i + P1]
                state[i + P1] = behind + weight * seen
                g = alpha * behind * inverse - weight * seen
                g = g if raw <= CAP else ZERO
                gr = g * r
                sums[c] += g
                sums[c + S1] += gr
                sums[c + S2] += gr * r
                sums[c + S3] += weight * v_red
                sums[c + S4] += weight * v_green
                sums[c + S5] += weight * v_blue
            row += 1
        _moments(sums, x, y, splat, pairs[j])


@njit(parallel=True, **FAST)
def blend_backward(
    centres, splats, starts, members, firsts, counts, places, background, transmittance, lasts, v_image, v_alpha, grads
):
    """Fill `grads [N, GRADIENT]` from dL/dimage `[H, W, 3]` and dL/dalpha `[H, W]`."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    pairs = np.empty((members.shape[0], GRADIENT), np.float32)
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _tile_backward(
            ox, oy, columns, rows, centres, splats, members, starts[tile], starts[tile + 1],
            background, transmittance, lasts, v_image, v_alpha, pairs,
        )  # fmt: skip
    for i in prange(grads.shape[0]):
        for k in range(GRADIENT):
            grads[i, k] = ZERO
        for p in range(firsts[i], firsts[i] + counts[i]):
            for k in range(GRADIENT):
                grads[i, k] += pairs[places[p], k]
