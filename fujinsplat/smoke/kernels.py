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
OF_A_VIEW = 4  # unknowns of a view after its grid: slope of tau in distance; level of the airlight, its tilts
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
def _shares(x, y, distance, wide, high, four, share):
    """What one observation weighs its view's unknowns with: four nodes and the slope for tau, three for the level."""
    _basis(x, y, wide, high, four, share)
    share[4] = distance
    share[5], share[6], share[7] = 1.0, 2 * x - 1, 2 * y - 1


@njit(**_OPTIONS)
def _places(v, four, wide, high, index):
    """Where those unknowns stand: views one after the other, each with its nodes, slope and level."""
    start = v * (wide * high + OF_A_VIEW)
    for k in range(4):
        index[k] = start + four[k]
    for k in range(4):
        index[4 + k] = start + wide * high + k


@njit(**_OPTIONS)
def _tau_and_level(unknowns, index, share):
    tau = level = 0.0
    for k in range(5):
        tau += share[k] * unknowns[index[k]]
    for k in range(5, 8):
        level += share[k] * unknowns[index[k]]
    return tau, level


@kernel(**_OPTIONS)
def consensus_equations(
    starts, view, place, colour, unknowns, wide, high, weight, quantile, cut, soft, dark, matrix, right
):
    """Add the tracks' normal equations to `matrix [n, n]` (lower half) and `right [n]`.

    A track's colours are H_v = s_v A (1 - T_v) + T_v J; J is eliminated (variable projection). `weight [obs]` are
    inverse variances. `unknowns [n]` are those of the views (see `_places`), then the airlight A (3).

    J also gives the level: no light is negative, so tau may grow by r = -log(1 - min J / A) and no further, and a
    `quantile` of the points is taken to be that dark (quantile regression of weight `dark` per point; one step of its
    majorisation, |r| replaced by the parabola that touches it). Points further than `cut` below are a wrong depth.

    Returns, per observation, the residual's length and the length of dr/dtau (its signal), and per point its r.
    """
    base = unknowns.shape[0] - 3
    residual, strength = np.zeros(view.shape[0]), np.zeros(view.shape[0])
    longest = 0
    for n in range(starts.shape[0] - 1):
        longest = max(longest, starts[n + 1] - starts[n])
    index, share, four = np.empty((longest, 8), np.int64), np.empty((longest, 8)), np.empty(4, np.int64)
    T, level, r = np.empty(longest), np.empty(longest), np.empty((longest, 3))
    J, j, mean = np.empty(3), np.empty((longest, 8, 3)), np.empty((longest, 8, 3))
    part, bounds = np.empty((longest, 8)), np.full(starts.shape[0] - 1, np.nan)
    for n in range(starts.shape[0] - 1):
        first, m = starts[n], starts[n + 1] - starts[n]
        wtt = 0.0
        J[:] = 0
        for o in range(m):
            q = first + o
            _shares(place[q, 0], place[q, 1], place[q, 2], wide, high, four, share[o])
            _places(view[q], four, wide, high, index[o])
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
        wta = 0.0  # of the airlight's column
        waa = 0.0
        for o in range(m):
            q, e, s = first + o, 0.0, 0.0
            veil = level[o] * (1 - T[o])
            wta += weight[q] * T[o] * veil
            waa += weight[q] * veil * veil
            for c in range(3):
                r[o, c] -= T[o] * J[c]
                e += r[o, c] * r[o, c]
                by_tau = T[o] * (J[c] - level[o] * unknowns[base + c])
                by_level = -unknowns[base + c] * (1 - T[o])
                s += by_tau * by_tau
                for k in range(8):
                    j[o, k, c] = share[o, k] * (by_tau if k < 5 else by_level)
                    mean[o, k, c] = weight[q] * T[o] * j[o, k, c]
                    right[index[o, k]] -= weight[q] * j[o, k, c] * r[o, c]
                right[base + c] += weight[q] * veil * r[o, c]
            residual[q], strength[q] = math.sqrt(e), math.sqrt(s)
        least, mean_level = 1e30, 0.0
        for o in range(m):
            mean_level += weight[first + o] * T[o] * T[o] / wtt * level[o]
        for c in range(3):
            least = min(least, J[c] / (mean_level * unknowns[base + c]))
            matrix[base + c, base + c] += waa - wta * wta / wtt
        bounds[n] = -math.log(max(1 - least, 0.02))
        curve = push = 0.0
        if bounds[n] > -cut:
            curve = dark * 0.5 / (soft + abs(bounds[n]))
            push = curve * bounds[n] + dark * (quantile - 0.5)
        for o in range(m):
            for k in range(8):
                part[o, k] = weight[first + o] * T[o] * T[o] / wtt * share[o, k] if k < 5 else 0.0
                right[index[o, k]] += push * part[o, k]
        for o in range(m):
            w, veil = weight[first + o], level[o] * (1 - T[o])
            for k in range(8):
                row = index[o, k]
                for c in range(3):
                    matrix[base + c, row] -= w * j[o, k, c] * veil - mean[o, k, c] * wta / wtt
                d = curve * part[o, k]
                x, y, z = mean[o, k, 0] / wtt, mean[o, k, 1] / wtt, mean[o, k, 2] / wtt
                for p in range(m):
                    for l in range(8):
                        column = index[p, l]
                        if column <= row:
                            found = x * mean[p, l, 0] + y * mean[p, l, 1] + z * mean[p, l, 2]
                            matrix[row, column] += d * part[p, l] - found
                x, y, z = w * j[o, k, 0], w * j[o, k, 1], w * j[o, k, 2]
                for l in range(8):
                    column = index[o, l]
                    if column <= row:
                        matrix[row, column] += x * j[o, l, 0] + y * j[o, l, 1] + z * j[o, l, 2]
    return residual, strength, bounds
