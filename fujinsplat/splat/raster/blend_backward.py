"""Gradients of the blended picture with respect to the splats.

Each tile walks its splats from the last one any of its pixels saw back to the first, recovering the transmittance
before each splat by division and carrying the radiance from behind it, so relative precision is kept even behind
opaque splats. Gradients of each (tile, splat) pair go to their own place in a buffer and are then summed per splat in
a fixed order: no atomics, the same bits on every run and for every number of threads.
"""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import fast_parallel_kernel, precise
from fujinsplat.splat.raster.blend import PLANE, REACH_MAX, falloff, passes_by, rows_reached
from fujinsplat.splat.raster.conventions import ALPHA_MAX, TILE_H, TILE_W
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
    HALF_H,
    OPACITY,
    REACH,
    RED,
    SHARPNESS,
    SHARPNESS_Y,
    SHEAR,
)
from fujinsplat.splat.vectors import at_most, divide, lane_numbers, lesser, load, splat, store, total

MIDDLE_X, MIDDLE_Y = 0.5 * (TILE_W - 1), 0.5 * (TILE_H - 1)  # the tile's middle, origin of the moments


@precise
def _chain(m0, mx, my, mxx, mxy, myy, x, y, splat_row, pair):
    """A pair's gradients from moments of g = dL/dsigma about the tile's middle.

    In float64 the moments are moved to the splat's own coordinates (du, dy), where they are small numbers even when
    the splat's centre is far outside the tile.
    """
    a, k, d = 2.0 * splat_row[SHARPNESS], float(splat_row[SHEAR]), 2.0 * splat_row[SHARPNESS_Y]
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
    pair[D_OPACITY] = -m0 / splat_row[OPACITY]


@precise
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
    state = np.zeros(6 * PLANE, np.float32)
    state[5 * PLANE :] = -1
    latest = -1
    for r in range(rows):
        for c in range(columns):
            i = r * TILE_W + c
            left, last = transmittance[oy + r, ox + c], lasts[oy + r, ox + c]
            red, green, blue = v_image[oy + r, ox + c, 0], v_image[oy + r, ox + c, 1], v_image[oy + r, ox + c, 2]
            behind = red * background[0] + green * background[1] + blue * background[2]
            state[i], state[i + PLANE] = left, left * (behind - v_alpha[oy + r, ox + c])
            state[i + 2 * PLANE], state[i + 3 * PLANE], state[i + 4 * PLANE] = red, green, blue
            state[i + 5 * PLANE] = last
            latest = max(latest, int(last))
    stop = min(end, first + latest + 1)
    pairs[stop:end] = 0
    like = load(state, 0)
    lane, zero, one = lane_numbers(like), splat(0.0, like), splat(1.0, like)
    column = lane - splat(MIDDLE_X, like)
    cap, far = splat(ALPHA_MAX, like), splat(REACH_MAX, like)
    for back in range(stop - first):
        j = stop - 1 - back
        member = members[j]
        x, y = centres[member, 0] - ox - 0.5, centres[member, 1] - oy - 0.5
        sharpness, shear = splats[member, SHARPNESS], splats[member, SHEAR]
        sharpness_y, reach = splats[member, SHARPNESS_Y], splats[member, REACH]
        sharp, limit, opacity = splat(sharpness, like), splat(reach, like), splat(splats[member, OPACITY], like)
        red, green, blue = (
            splat(splats[member, RED], like),
            splat(splats[member, GREEN], like),
            splat(splats[member, BLUE], like),
        )
        number = splat(j - first, like)
        # sums over rows, column by column: g, g r, g r^2 (r the row from the tile's middle), weight x dL/dcolour
        g0, g1, g2, c0, c1, c2 = zero, zero, zero, zero, zero, zero
        row_first, row_end = rows_reached(splats[member, HALF_H], y)
        for row in range(row_first, row_end):
            dy = row - y
            middle, lift = x - shear * dy, sharpness_y * dy * dy
            if passes_by(middle, sharpness, lift, reach):
                continue
            i = row * TILE_W
            du = lane - splat(middle, like)
            s = sharp * du * du + splat(lift, like)
            raw = opacity * falloff(lesser(s, far))
            alpha = at_most(s, limit, lesser(raw, cap), zero)
            alpha = at_most(number, load(state, i + 5 * PLANE), alpha, zero)
            inverse = divide(one, one - alpha)
            before = load(state, i) * inverse
            store(state, i, before)
            weight = alpha * before
            v_red, v_green = load(state, i + 2 * PLANE), load(state, i + 3 * PLANE)
            v_blue = load(state, i + 4 * PLANE)
            seen = weight * (v_red * red + v_green * green + v_blue * blue)
            behind = load(state, i + PLANE)
            store(state, i + PLANE, behind + seen)
            g = at_most(raw, cap, alpha * inverse * behind - seen, zero)  # nothing passes through the cap
            r = splat(row - MIDDLE_Y, like)
            gr = g * r
            g0 = g0 + g
            g1 = g1 + gr
            g2 = g2 + gr * r
            c0 = c0 + weight * v_red
            c1 = c1 + weight * v_green
            c2 = c2 + weight * v_blue
        pair = pairs[j]
        gx = g0 * column
        _chain(
            total(g0), total(gx), total(g1), total(gx * column), total(g1 * column), total(g2),
            x, y, splats[member], pair,
        )  # fmt: skip
        pair[D_RED], pair[D_GREEN], pair[D_BLUE] = total(c0), total(c1), total(c2)


@fast_parallel_kernel
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
            grads[i, k] = 0
        for p in range(firsts[i], firsts[i] + counts[i]):
            for k in range(GRADIENT):
                grads[i, k] += pairs[places[p], k]
