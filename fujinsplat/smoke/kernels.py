"""Loops over pixels and views: regressions of view pairs, tracks of surface points, the normal equations of the fit.

Cameras are rows of 16 numbers (`pack_cameras`): rotation (9), translation (3), fx fy cx cy. All sums are made in a
fixed order: the same bits on every run and for every number of threads.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from fujinsplat.kernels.jit import kernel

_OPTIONS: dict[str, Any] = dict(boundscheck=False, nogil=True, error_model="numpy", fastmath={"contract"})
AGREE = 0.03  # relative difference of two views' depths that still is one surface
LEVEL = 3  # unknowns of a view after its grids: level of the airlight, its tilts
OF_TAU, OF_ALL = 8, 11  # unknowns an observation touches: four nodes of each grid; those and the level's
TRIMMED = 2.5  # residuals beyond so many medians are set aside, twice


def pack_cameras(cameras) -> np.ndarray:
    """float64 `[V, 16]` of `fujinsplat.capture.Camera`s."""
    rows = [
        [*c.viewmat[:3, :3].ravel(), *c.viewmat[:3, 3], c.K[0, 0], c.K[1, 1], c.K[0, 2], c.K[1, 2]] for c in cameras
    ]
    return np.asarray(rows, np.float64)


@njit(**_OPTIONS)
def _world(cam, x, y, z):
    a, b, c = (x - cam[14]) / cam[12] * z - cam[9], (y - cam[15]) / cam[13] * z - cam[10], z - cam[11]
    return (
        cam[0] * a + cam[3] * b + cam[6] * c,
        cam[1] * a + cam[4] * b + cam[7] * c,
        cam[2] * a + cam[5] * b + cam[8] * c,
    )


@njit(**_OPTIONS)
def _meet(cam, depth, X, Y, Z):
    """(x, y, distance) of a world point in a view that sees it at the depth the view has there, else x = -1."""
    height, width = depth.shape
    c = cam[6] * X + cam[7] * Y + cam[8] * Z + cam[11]
    if c <= 0:
        return -1.0, 0.0, 0.0
    a = cam[0] * X + cam[1] * Y + cam[2] * Z + cam[9]
    b = cam[3] * X + cam[4] * Y + cam[5] * Z + cam[10]
    x, y = a / c * cam[12] + cam[14], b / c * cam[13] + cam[15]
    if not (x > 1 and x < width - 1 and y > 1 and y < height - 1):
        return -1.0, 0.0, 0.0
    there = depth[int(y), int(x)]
    if abs(there / c - 1) > AGREE:
        return -1.0, 0.0, 0.0
    return x, y, math.sqrt(a * a + b * b + c * c)


@njit(**_OPTIONS)
def _sample(picture, x, y, out):
    """Bilinear colours at a position at least half a pixel inside."""
    u, v = x - 0.5, y - 0.5
    i, j = int(u), int(v)
    f, g = u - i, v - j
    for c in range(out.shape[0]):
        top = picture[j, i, c] * (1 - f) + picture[j, i + 1, c] * f
        bottom = picture[j + 1, i, c] * (1 - f) + picture[j + 1, i + 1, c] * f
        out[c] = top * (1 - g) + bottom * g


# ---- view pairs: H_i = k H_j + (1 - k) A in every cell of view i ----------------------------------------------------


@njit(**_OPTIONS)
def _moments(a, b, n, ma, mb):
    """Means into `ma`, `mb`; returns the sums of squares and products about them."""
    ma[:], mb[:] = 0, 0
    for s in range(n):
        for c in range(3):
            ma[c] += a[s, c] / n
            mb[c] += b[s, c] / n
    saa = sbb = sab = 0.0
    for s in range(n):
        for c in range(3):
            da, db = a[s, c] - ma[c], b[s, c] - mb[c]
            saa += da * da
            sbb += db * db
            sab += da * db
    return saa, sbb, sab


@njit(**_OPTIONS)
def _regress(a, b, n, row):
    """Reduced major axis through `n` colour pairs, trimmed twice; (count, k, m rgb, correlation) into `row`."""
    ma, mb, residual = np.empty(3), np.empty(3), np.empty(n)
    k = rho = 0.0
    for turn in range(3):
        saa, sbb, sab = _moments(a, b, n, ma, mb)
        k, rho = math.sqrt(saa / max(sbb, 1e-30)), sab / max(math.sqrt(saa * sbb), 1e-30)
        if turn == 2:
            break
        for s in range(n):
            e = 0.0
            for c in range(3):
                d = a[s, c] - ma[c] - k * (b[s, c] - mb[c])
                e += d * d
            residual[s] = math.sqrt(e)
        limit, kept = TRIMMED * np.median(residual[:n]), 0
        for s in range(n):
            if residual[s] < limit:
                for c in range(3):
                    a[kept, c], b[kept, c] = a[s, c], b[s, c]
                kept += 1
        if kept < 8:
            break
        n = kept
    row[0], row[1], row[5] = n, k, rho
    for c in range(3):
        row[2 + c] = ma[c] - k * mb[c]


@kernel(**_OPTIONS, parallel=True)
def regress_pairs(pictures, depth, trusted, cams, pairs, step, cells_x, cells_y, least):
    """`[pairs, cells, 6]`: samples used (0: too few), k, m (3), correlation, for every cell of the first view.

    pictures `[V, h, w, 3]` linear; depth, trusted `[V, h, w]`; every `step`-th pixel of the first view is looked up in
    the second.
    """
    height, width = depth.shape[1:]
    out = np.zeros((pairs.shape[0], cells_x * cells_y, 6))
    high, wide = (height + step - 1) // step, (width + step - 1) // step
    for p in prange(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        room = (high // cells_y + 2) * (wide // cells_x + 2)
        a = np.empty((cells_x * cells_y, room, 3))
        b = np.empty((cells_x * cells_y, room, 3))
        count = np.zeros(cells_x * cells_y, np.int64)
        for row in range(step // 2, height, step):
            for column in range(step // 2, width, step):
                if not trusted[i, row, column]:
                    continue
                X, Y, Z = _world(cams[i], column + 0.5, row + 0.5, depth[i, row, column])
                x, y, _far = _meet(cams[j], depth[j], X, Y, Z)
                if x < 0:
                    continue
                cell = row * cells_y // height * cells_x + column * cells_x // width
                n = count[cell]
                if n < room:
                    for c in range(3):
                        a[cell, n, c] = pictures[i, row, column, c]
                    _sample(pictures[j], x, y, b[cell, n])
                    count[cell] = n + 1
        for cell in range(cells_x * cells_y):
            if count[cell] >= least:
                _regress(a[cell], b[cell], count[cell], out[p, cell])
    return out


# ---- tracks: one surface point in all views that see it -------------------------------------------------------------


@kernel(**_OPTIONS)
def find_tracks(pictures, depth, trusted, cams, partners, step, shift, least):
    """Observations of the surface points at every `step`-th trusted pixel of every view.

    Returns `starts [N + 1]` and per observation `view`, `place [3]` (x and y as shares of the picture, distance along
    the ray) and `colour [3]`; only points that at least `least` views see.
    """
    views, height, width = depth.shape
    most = views * ((height + step - 1) // step) * ((width + step - 1) // step)
    room = most * (partners.shape[1] + 1)
    view, place, colour = np.empty(room, np.int32), np.empty((room, 3), np.float32), np.empty((room, 3), np.float32)
    starts, points, at = np.empty(most + 1, np.int64), 0, 0
    starts[0] = 0
    for i in range(views):
        offset = (i * shift) % step
        for row in range(1 + offset, height - 1, step):
            for column in range(1 + (offset * 2 + row) % step, width - 1, step):
                if not trusted[i, row, column]:
                    continue
                X, Y, Z = _world(cams[i], column + 0.5, row + 0.5, depth[i, row, column])
                first = at
                for q in range(-1, partners.shape[1]):
                    j = i if q < 0 else partners[i, q]
                    if q >= 0 and j == i:
                        continue
                    x, y, far = _meet(cams[j], depth[j], X, Y, Z)
                    if x < 0:
                        continue
                    view[at] = j
                    place[at, 0], place[at, 1], place[at, 2] = x / width, y / height, far
                    _sample(pictures[j], x, y, colour[at])
                    at += 1
                if at - first >= least:
                    points += 1
                    starts[points] = at
                else:
                    at = first
    return starts[: points + 1].copy(), view[:at].copy(), place[:at].copy(), colour[:at].copy()


@njit(**_OPTIONS)
def _basis(x, y, wide, high, index, weight):
    """The four nodes around a place (shares of the picture) on a `wide` x `high` grid over it, and their weights."""
    u, v = min(max(x, 0.0), 1.0) * (wide - 1), min(max(y, 0.0), 1.0) * (high - 1)
    i, j = min(int(u), max(wide - 2, 0)), min(int(v), max(high - 2, 0))
    f, g = u - i, v - j
    right, down = min(i + 1, wide - 1), min(j + 1, high - 1)
    index[0], weight[0] = j * wide + i, (1 - f) * (1 - g)
    index[1], weight[1] = j * wide + right, f * (1 - g)
    index[2], weight[2] = down * wide + i, (1 - f) * g
    index[3], weight[3] = down * wide + right, f * g


@njit(**_OPTIONS)
def _shares(x, y, distance, v, grids, four, index, share):
    """Where the unknowns of one observation stand, and what it weighs them with: four nodes of the layer and four of
    the slope for tau, three for the level. Views stand one after the other, each with its two grids and its level."""
    wide, high, across, down = grids
    at = v * (wide * high + across * down + LEVEL)
    _basis(x, y, wide, high, four, share)
    for k in range(4):
        index[k] = at + four[k]
    at += wide * high
    _basis(x, y, across, down, four, share[4:])
    for k in range(4):
        index[4 + k] = at + four[k]
        share[4 + k] *= distance
    at += across * down
    for k in range(LEVEL):
        index[OF_TAU + k] = at + k
    share[OF_TAU], share[OF_TAU + 1], share[OF_TAU + 2] = 1.0, 2 * x - 1, 2 * y - 1


@njit(**_OPTIONS)
def _tau_and_level(unknowns, index, share):
    tau = level = 0.0
    for k in range(OF_TAU):
        tau += share[k] * unknowns[index[k]]
    for k in range(OF_TAU, OF_ALL):
        level += share[k] * unknowns[index[k]]
    return tau, level


@njit(**_OPTIONS)
def _add_block(matrix, rows, columns, a, b, tau_tau, tau_level, level_tau, level_level):
    """Add the outer product of the shares of two views' observations to `matrix`."""
    for k in range(OF_TAU):
        row, to_tau, to_level = rows[k], a[k] * tau_tau, a[k] * tau_level
        for l in range(OF_TAU):
            matrix[row, columns[l]] += b[l] * to_tau
        for l in range(OF_TAU, OF_ALL):
            matrix[row, columns[l]] += b[l] * to_level
    for k in range(OF_TAU, OF_ALL):
        row, to_tau, to_level = rows[k], a[k] * level_tau, a[k] * level_level
        for l in range(OF_TAU):
            matrix[row, columns[l]] += b[l] * to_tau
        for l in range(OF_TAU, OF_ALL):
            matrix[row, columns[l]] += b[l] * to_level


@njit(**_OPTIONS)
def _add_own(matrix, index, share, tau_tau, tau_level, level_level):
    """Add the outer product of one observation's shares to the lower half of `matrix`."""
    for k in range(OF_ALL):
        to_tau = share[k] * (tau_tau if k < OF_TAU else tau_level)
        to_level = share[k] * (tau_level if k < OF_TAU else level_level)
        for l in range(OF_ALL):
            if index[l] <= index[k]:
                matrix[index[k], index[l]] += share[l] * (to_tau if l < OF_TAU else to_level)


@kernel(**_OPTIONS)
def consensus_equations(
    starts, view, place, colour, unknowns, grids, weight, quantile, cut, soft, reach, dark, matrix, right
):
    """Add the tracks' normal equations to `matrix [n, n]` (lower half) and `right [n]`.

    A track's colours are H_v = s_v A (1 - T_v) + T_v J; J is eliminated (variable projection). `weight [obs]` are
    inverse variances. `unknowns [n]` are those of the views (see `_shares`; `grids` are the nodes of layer and slope,
    across and down), then the airlight A (3).

    J also gives the level: no light is negative, so tau may grow by r = -log(1 - min J / A) and no further, and a
    `quantile` of the points is taken to be that dark (quantile regression of weight `dark` per point; one step of its
    majorisation, |r| replaced by the parabola that touches it). Points further than `cut` below are a wrong depth;
    what is bright says nothing about the dark: from `reach` on, points lose their say.

    Returns, per observation, the residual's length and the length of dr/dtau (its signal), and per point its r.
    """
    base = unknowns.shape[0] - 3
    residual, strength = np.zeros(view.shape[0]), np.zeros(view.shape[0])
    longest = 0
    for n in range(starts.shape[0] - 1):
        longest = max(longest, starts[n + 1] - starts[n])
    index, share, four = np.empty((longest, OF_ALL), np.int64), np.empty((longest, OF_ALL)), np.empty(4, np.int64)
    T, level, r, J = np.empty(longest), np.empty(longest), np.empty((longest, 3)), np.empty(3)
    by_tau, by_level, part = np.empty((longest, 3)), np.empty((longest, 3)), np.empty(longest)
    bounds = np.full(starts.shape[0] - 1, np.nan)
    for n in range(starts.shape[0] - 1):
        first, m = starts[n], starts[n + 1] - starts[n]
        wtt = 0.0
        J[:] = 0
        for o in range(m):
            q = first + o
            _shares(place[q, 0], place[q, 1], place[q, 2], view[q], grids, four, index[o], share[o])
            tau, level[o] = _tau_and_level(unknowns, index[o], share[o])
            T[o] = math.exp(-tau)
            wtt += weight[q] * T[o] * T[o]
            for c in range(3):
                r[o, c] = colour[q, c] - level[o] * unknowns[base + c] * (1 - T[o])
                J[c] += weight[q] * T[o] * r[o, c]
        if not wtt > 0:
            continue
        for c in range(3):
            J[c] /= wtt
        wta = waa = mean_level = 0.0  # of the airlight's column
        for o in range(m):
            q, w, e, s = first + o, weight[first + o], 0.0, 0.0
            veil = level[o] * (1 - T[o])
            wta += w * T[o] * veil
            waa += w * veil * veil
            part[o] = w * T[o] * T[o] / wtt
            mean_level += part[o] * level[o]
            down_tau = down_level = 0.0
            for c in range(3):
                r[o, c] -= T[o] * J[c]
                e += r[o, c] * r[o, c]
                by_tau[o, c] = T[o] * (J[c] - level[o] * unknowns[base + c])
                by_level[o, c] = -unknowns[base + c] * (1 - T[o])
                s += by_tau[o, c] * by_tau[o, c]
                down_tau += w * by_tau[o, c] * r[o, c]
                down_level += w * by_level[o, c] * r[o, c]
                right[base + c] += w * veil * r[o, c]
            for k in range(OF_ALL):
                right[index[o, k]] -= share[o, k] * (down_tau if k < OF_TAU else down_level)
            residual[q], strength[q] = math.sqrt(e), math.sqrt(s)
        least = 1e30
        for c in range(3):
            least = min(least, J[c] / (mean_level * unknowns[base + c]))
            matrix[base + c, base + c] += waa - wta * wta / wtt
        bounds[n] = -math.log(max(1 - least, 0.02))
        curve = push = 0.0
        if bounds[n] > -cut:
            curve = dark * 0.5 / (soft + abs(bounds[n]))
            push = curve * bounds[n] + dark * (quantile - 0.5)
            if bounds[n] > 0:
                say = 1 / (1 + (bounds[n] / reach) ** 2)
                curve *= say
                push *= say
        for o in range(m):
            w, veil = weight[first + o], level[o] * (1 - T[o])
            tt = tl = ll = 0.0
            for c in range(3):
                tt += w * by_tau[o, c] * by_tau[o, c]
                tl += w * by_tau[o, c] * by_level[o, c]
                ll += w * by_level[o, c] * by_level[o, c]
                shared = w * (veil - T[o] * wta / wtt)
                for k in range(OF_ALL):
                    by = by_tau[o, c] if k < OF_TAU else by_level[o, c]
                    matrix[base + c, index[o, k]] -= share[o, k] * by * shared
            for k in range(OF_TAU):
                right[index[o, k]] += push * part[o] * share[o, k]
            _add_own(matrix, index[o], share[o], tt, tl, ll)
            for p in range(m):
                if view[first + p] > view[first + o]:
                    continue  # the upper half
                both = w * T[o] * weight[first + p] * T[p] / wtt
                tt, tl, lt, ll = curve * part[o] * part[p], 0.0, 0.0, 0.0
                for c in range(3):
                    tt -= both * by_tau[o, c] * by_tau[p, c]
                    tl -= both * by_tau[o, c] * by_level[p, c]
                    lt -= both * by_level[o, c] * by_tau[p, c]
                    ll -= both * by_level[o, c] * by_level[p, c]
                if p == o:
                    _add_own(matrix, index[o], share[o], tt, tl, ll)
                else:
                    _add_block(matrix, index[o], index[p], share[o], share[p], tt, tl, lt, ll)
    return residual, strength, bounds
