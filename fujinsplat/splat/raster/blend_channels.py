"""Blending of any number of channels given per Gaussian, and its gradients: `blend` and `blend_backward` without their
fixed three colours, which those keep in registers.

Beside the gradients comes the sum over pixels of the absolute gradient of a splat's picture position (AbsGS): where
pixels pull to opposite sides their sum hides that a Gaussian is too large.
"""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import fast_parallel_kernel, precise
from fujinsplat.splat.raster.blend import AHEAD, LOOK, PLANE, _finished, falloff, groups_reached, rows_reached
from fujinsplat.splat.raster.conventions import ALPHA_MAX, T_STOP, TILE_H, TILE_W
from fujinsplat.splat.raster.projection import (
    D_1,
    D_2,
    D_11,
    D_12,
    D_22,
    D_OPACITY,
    H1U,
    H1Y,
    H2U,
    H2Y,
    HALF_H,
    HALF_W,
    OPACITY,
    REACH,
    SHARPNESS,
    SHARPNESS_Y,
    SHEAR,
    X,
    Y,
)
from fujinsplat.splat.vectors import (
    LANES,
    above,
    at_most,
    divide,
    lane_numbers,
    lesser,
    load,
    prefetch,
    splat,
    store,
    total,
)

# columns of a (tile, splat) pair: the six geometric ones of `projection`, two absolute ones, then one per channel
ABSOLUTE_X, ABSOLUTE_Y, FIRST_CHANNEL = 6, 7, 8


@precise
def _blend_tile(ox, oy, columns, rows, places, splats, features, members, first, end, image, transmittance, lasts):
    # planes: transmittance (negative once finished) | index of the last splat | one per channel
    count = features.shape[1]
    state = np.zeros((2 + count) * PLANE, np.float32)
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
        number = splat(j - first, like)
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
                for k in range(count):
                    place = i + (2 + k) * PLANE
                    store(state, place, load(state, place) + weight * splat(features[member, k], like))
        if (j - first) % LOOK == LOOK - 1 and _finished(state):
            break
    for r in range(rows):
        for c in range(columns):
            i = r * TILE_W + c
            transmittance[oy + r, ox + c] = abs(state[i])
            lasts[oy + r, ox + c] = state[i + PLANE]
            for k in range(count):
                image[oy + r, ox + c, k] = state[i + (2 + k) * PLANE]


@fast_parallel_kernel
def blend_channels(places, splats, features, starts, members, image, transmittance, lasts):
    """Fill `image [H, W, C]` on black from `features [N, C]`, and `transmittance` and `lasts` `[H, W]` as `blend`."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _blend_tile(
            ox, oy, columns, rows, places, splats, features, members, starts[tile], starts[tile + 1],
            image, transmittance, lasts,
        )  # fmt: skip


@precise
def _tile_backward(
    ox, oy, columns, rows, places, splats, features, members, first, end, transmittance, lasts, v_image, v_alpha, pairs
):
    # planes: transmittance after the splat | radiance from behind | last splat | dL/dchannel, one per channel
    count = features.shape[1]
    state = np.zeros((3 + count) * PLANE, np.float32)
    state[2 * PLANE : 3 * PLANE] = -1
    latest = -1
    for r in range(rows):
        for c in range(columns):
            i = r * TILE_W + c
            left, last = transmittance[oy + r, ox + c], lasts[oy + r, ox + c]
            state[i], state[i + PLANE], state[i + 2 * PLANE] = left, -left * v_alpha[oy + r, ox + c], last
            for k in range(count):
                state[i + (3 + k) * PLANE] = v_image[oy + r, ox + c, k]
            latest = max(latest, int(last))
    stop = min(end, first + latest + 1)
    pairs[stop:end] = 0
    like = load(state, 0)
    lane, zero, one, two = lane_numbers(like), splat(0.0, like), splat(1.0, like), splat(2.0, like)
    cap = splat(ALPHA_MAX, like)
    sums = np.zeros(count * LANES, np.float32)  # of weight times dL/dchannel, lane by lane
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
        slant, number = splat(shear, like), splat(j - first, like)
        h1u, h2u = splat(places[member, H1U], like), splat(places[member, H2U], like)
        g0, g1, g2, g11, g12, g22, ax, ay = zero, zero, zero, zero, zero, zero, zero, zero
        sums[:] = 0
        row_first, row_end = rows_reached(splats[member, HALF_H], y)
        group, group_end = groups_reached(splats[member, HALF_W], x)
        for row in range(row_first, row_end):
            dy = row - y
            middle, lift = x - shear * dy, sharpness_y * dy * dy
            raised, steep = splat(lift, like), splat(2 * sharpness_y * dy, like)
            h1y, h2y = splat(places[member, H1Y] * dy, like), splat(places[member, H2Y] * dy, like)
            for i in range(row * TILE_W + group * LANES, row * TILE_W + group_end * LANES, LANES):
                du = lane + splat(i - row * TILE_W - middle, like)
                s = sharp * du * du + raised
                raw = opacity * falloff(s)
                alpha = at_most(s, limit, lesser(raw, cap), zero)
                alpha = at_most(number, load(state, i + 2 * PLANE), alpha, zero)
                inverse = divide(one, one - alpha)
                before = load(state, i) * inverse
                store(state, i, before)
                weight = alpha * before
                pull = zero
                for k in range(count):
                    v = load(state, i + (3 + k) * PLANE)
                    pull = pull + v * splat(features[member, k], like)
                    store(sums, k * LANES, load(sums, k * LANES) + weight * v)
                seen = weight * pull
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
                # d sigma/d position in the picture's own axes
                on_x = g * (two * sharp * du)
                on_y = on_x * slant + g * steep
                ax = ax + above(on_x, zero, on_x, zero - on_x)
                ay = ay + above(on_y, zero, on_y, zero - on_y)
        pairs[j, D_1], pairs[j, D_2] = total(g1), total(g2)
        pairs[j, D_11], pairs[j, D_12], pairs[j, D_22] = total(g11), total(g12), total(g22)
        pairs[j, D_OPACITY] = -total(g0) / splats[member, OPACITY]
        pairs[j, ABSOLUTE_X], pairs[j, ABSOLUTE_Y] = total(ax), total(ay)
        for k in range(count):
            pairs[j, FIRST_CHANNEL + k] = total(load(sums, k * LANES))


@fast_parallel_kernel
def blend_channels_backward(
    places, splats, features, starts, members, firsts, counts, slots, transmittance, lasts, v_image, v_alpha,
    grads, v_features, absolute,
):  # fmt: skip
    """Fill `grads [N, GRADIENT]` (its colour columns with zeros), `v_features [N, C]` and `absolute [N, 2]` from
    dL/dimage `[H, W, C]` and dL/dalpha `[H, W]`."""
    height, width = transmittance.shape
    tiles_x, tiles_y = (width + TILE_W - 1) // TILE_W, (height + TILE_H - 1) // TILE_H
    count = features.shape[1]
    pairs = np.empty((members.shape[0], FIRST_CHANNEL + count), np.float32)
    for tile in prange(tiles_x * tiles_y):
        oy, ox = (tile // tiles_x) * TILE_H, (tile % tiles_x) * TILE_W
        columns, rows = min(TILE_W, width - ox), min(TILE_H, height - oy)
        _tile_backward(
            ox, oy, columns, rows, places, splats, features, members, starts[tile], starts[tile + 1],
            transmittance, lasts, v_image, v_alpha, pairs,
        )  # fmt: skip
    for i in prange(grads.shape[0]):
        grads[i, :] = 0
        absolute[i, :] = 0
        v_features[i, :] = 0
        for p in range(firsts[i], firsts[i] + counts[i]):
            pair = slots[p]
            for k in range(ABSOLUTE_X):
                grads[i, k] += pairs[pair, k]
            absolute[i, 0] += pairs[pair, ABSOLUTE_X]
            absolute[i, 1] += pairs[pair, ABSOLUTE_Y]
            for k in range(count):
                v_features[i, k] += pairs[pair, FIRST_CHANNEL + k]
