"""Gradients of the blended picture with respect to the splats.

Each tile walks its splats from the last one any of its pixels saw back to the first, recovering the transmittance
before each splat by division and carrying the radiance from behind it, so relative precision is kept even behind
opaque splats. Gradients of each (tile, splat) pair go to their own place in a buffer and are then summed per splat in
a fixed order: no atomics, the same bits on every run and for every number of threads.
"""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import fast_parallel_kernel, named, precise
from fujinsplat.splat.raster.blend import AHEAD, PLANE, falloff, groups_reached, rows_reached
from fujinsplat.splat.raster.conventions import ALPHA_MAX, TILE_H, TILE_W
from fujinsplat.splat.raster.projection import (
    BLUE,
    D_1,
    D_2,
    D_11,
    D_12,
    D_22,
    D_BLUE,
    D_DEPTH,
    D_GREEN,
    D_OPACITY,
    D_RED,
    DEPTH,
    GRADIENT,
    GRADIENT_WITH_DEPTH,
    GREEN,
    H1U,
    H1Y,
    H2U,
    H2Y,
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
from fujinsplat.splat.vectors import LANES, at_most, divide, lane_numbers, lesser, load, prefetch, splat, store, total


def _tile_walker(with_depth: bool):
    """The function that finds one tile's gradients, compiled with or without a depth channel."""

    def tile_backward(
        ox,
        oy,
        columns,
        rows,
        places,
        splats,
        members,
        first,
        end,
        background,
        transmittance,
        lasts,
        v_image,
        v_depth,
        v_alpha,
        pairs,
    ):
        # planes: transmittance after the splat | radiance from behind | dL/dred | dL/dgreen | dL/dblue | last splat
        # | dL/ddepth
        state = np.zeros((7 if with_depth else 6) * PLANE, np.float32)
        state[5 * PLANE : 6 * PLANE] = -1
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
                if with_depth:
                    state[i + 6 * PLANE] = v_depth[oy + r, ox + c]
                latest = max(latest, int(last))
        stop = min(end, first + latest + 1)
        pairs[stop:end] = 0
        like = load(state, 0)
        lane, zero, one = lane_numbers(like), splat(0.0, like), splat(1.0, like)
        cap = splat(ALPHA_MAX, like)
        for back in range(stop - first):
            j = stop - 1 - back
            ahead = members[max(j - AHEAD, first)]
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
            # sums over pixels, lane by lane: of g = dL/dsigma times powers of h = d sigma/d position (in the ellipse's
            # axes), and of weight times dL/dcolour
            h1u, h2u = splat(places[member, H1U], like), splat(places[member, H2U], like)
            g0, g1, g2, g11, g12, g22 = zero, zero, zero, zero, zero, zero
            c0, c1, c2, c3 = zero, zero, zero, zero
            row_first, row_end = rows_reached(splats[member, HALF_H], y)
            group, group_end = groups_reached(splats[member, HALF_W], x)
            for row in range(row_first, row_end):
                dy = row - y
                middle, lift = x - shear * dy, sharpness_y * dy * dy
                raised = splat(lift, like)
                h1y, h2y = splat(places[member, H1Y] * dy, like), splat(places[member, H2Y] * dy, like)
                for i in range(row * TILE_W + group * LANES, row * TILE_W + group_end * LANES, LANES):
                    du = lane + splat(i - row * TILE_W - middle, like)
                    s = sharp * du * du + raised
                    raw = opacity * falloff(s)
                    alpha = at_most(s, limit, lesser(raw, cap), zero)
                    alpha = at_most(number, load(state, i + 5 * PLANE), alpha, zero)
                    inverse = divide(one, one - alpha)
                    before = load(state, i) * inverse
                    store(state, i, before)
                    weight = alpha * before
                    v_red, v_green = load(state, i + 2 * PLANE), load(state, i + 3 * PLANE)
                    v_blue = load(state, i + 4 * PLANE)
                    seen = weight * (v_red * red + v_green * green + v_blue * blue)
                    if with_depth:
                        v_far = load(state, i + 6 * PLANE)
                        seen = seen + weight * (v_far * far)
                        c3 = c3 + weight * v_far
                    behind = load(state, i + PLANE)
                    store(state, i + PLANE, behind + seen)
                    g = at_most(raw, cap, alpha * inverse * behind - seen, zero)  # nothing passes through the cap
                    h1, h2 = h1u * du + h1y, h2u * du + h2y
                    along, across = g * h1, g * h2
                    g0 = g0 + g
                    g1 = g1 + along
                    g2 = g2 + across
                    g11 = g11 + along * h1
                    g12 = g12 + along * h2
                    g22 = g22 + across * h2
                    c0 = c0 + weight * v_red
                    c1 = c1 + weight * v_green
                    c2 = c2 + weight * v_blue
            pairs[j, D_1], pairs[j, D_2] = total(g1), total(g2)
            pairs[j, D_11], pairs[j, D_12], pairs[j, D_22] = total(g11), total(g12), total(g22)
            pairs[j, D_OPACITY] = -total(g0) / splats[member, OPACITY]
            pairs[j, D_RED], pairs[j, D_GREEN], pairs[j, D_BLUE] = total(c0), total(c1), total(c2)
            if with_depth:
                pairs[j, D_DEPTH] = total(c3)

    return precise(named(tile_backward, "depth" if with_depth else "colour"))


_colour_tile, _depth_tile = _tile_walker(False), _tile_walker(True)


@precise
def _gather(i, firsts, counts, slots, pairs, grads):
    """The sum of Gaussian i's pairs, in their order."""
    for k in range(grads.shape[1]):
        grads[i, k] = 0
    for p in range(firsts[i], firsts[i] + counts[i]):
        for k in range(grads.shape[1]):
            grads[i, k] += pairs[slots[p], k]


@fast_parallel_kernel
def blend_backward(
    places, splats, starts, members, firsts, counts, slots, background, transmittance, lasts, v_image, v_alpha, grads
):
    """Fill `grads [N, GRADIENT]` from dL/dimage `[H, W, 3]` and dL/dalpha `[H, W]`."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    pairs = np.empty((members.shape[0], GRADIENT), np.float32)
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _colour_tile(
            ox, oy, columns, rows, places, splats, members, starts[tile], starts[tile + 1],
            background, transmittance, lasts, v_image, v_alpha, v_alpha, pairs,
        )  # fmt: skip
    for i in prange(grads.shape[0]):
        _gather(i, firsts, counts, slots, pairs, grads)


@fast_parallel_kernel
def blend_backward_with_depth(
    places, splats, starts, members, firsts, counts, slots, background, transmittance, lasts, v_image, v_depth,
    v_alpha, grads,
):  # fmt: skip
    """Fill `grads [N, GRADIENT_WITH_DEPTH]` from dL/dimage, dL/ddepth `[H, W]` and dL/dalpha."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    pairs = np.empty((members.shape[0], GRADIENT_WITH_DEPTH), np.float32)
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _depth_tile(
            ox, oy, columns, rows, places, splats, members, starts[tile], starts[tile + 1],
            background, transmittance, lasts, v_image, v_depth, v_alpha, pairs,
        )  # fmt: skip
    for i in prange(grads.shape[0]):
        _gather(i, firsts, counts, slots, pairs, grads)
