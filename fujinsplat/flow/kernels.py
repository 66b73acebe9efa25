"""The flow's CPU kernels: all 2K + 1 blocks of LANES pixels in registers, tables by permutation, pixels in parallel.

Both directions are the same walk over pieces `a + s v`; they differ in the order of the blocks and in how a curve's
piece is found: forward by truncation (pieces are equally wide), inverse by bisection among the nodes.

Between stages the roles of the channels rotate: x is the channel that is read, y and z those that are written, and
after a stage (x, y, z) become (y, z, x). `tables.py` lays the rows out in the same order.

All arrays are flat. `curves` holds, per picture, block and channel, the intercepts of its pieces and then their slopes;
`couplings` the same per conditioner; `nodes` the left ends of the pieces (inverse only). `wide` and `wide_knots` are
tuples as long as such a table is in registers: their length is part of their type, so every loop over it is unrolled.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from fujinsplat.flow.layout import KNOTS
from fujinsplat.kernels.jit import kernel
from fujinsplat.kernels.simd import (
    COPIES,
    accumulate,
    at_least,
    bounded,
    index,
    lanes,
    load,
    load_rgb,
    lookup,
    splat,
    store,
    store_rgb,
)

REGISTER = lanes(1)
PIXELS_PER_TASK = 8192
# what the gradient kernels keep per stage: three curve inputs, two conditioner inputs
KEPT = 5

_part: dict[str, Any] = {"error_model": "numpy", "nogil": True}
_whole: dict[str, Any] = {**_part, "parallel": True}


@njit(**_part)
def _piece(v, pieces):
    """Forward: which of the equally wide pieces of [0, 1] holds v; the end pieces reach to infinity."""
    return index(bounded(v * splat(pieces, v), splat(0.0, v), splat(pieces - 1, v)))


@njit(**_part)
def _piece_by_node(v, nodes, row, wide):
    """Inverse: the rightmost piece whose node is <= v, by bisection; pieces that do not exist have infinite nodes."""
    width = len(wide) * (REGISTER // nodes.itemsize)
    k = index(splat(0.0, v))
    step = width // 2
    while step > 0:
        further = k + splat(step, k)
        k = at_least(v, lookup(nodes, row * width, wide, further), further, k)
        step //= 2
    return k


@njit(**_part)
def _line(v, k, table, row, wide):
    """Piece k of a table's row at v, and its slope."""
    width = len(wide) * (REGISTER // table.itemsize)
    slope = lookup(table, row * 2 * width + width, wide, k)
    return lookup(table, row * 2 * width, wide, k) + slope * v, slope


@njit(**_part)
def _curve(v, M, curves, nodes, row, wide, inverse):
    k = _piece_by_node(v, nodes, row, wide) if inverse else _piece(v, M)
    return _line(v, k, curves, row, wide)[0]


@njit(**_part)
def _conditioner(v, couplings, row, wide_knots):
    inside = bounded(v, splat(0.0, v), splat(1.0, v))
    return _line(inside, _piece(inside, KNOTS - 1), couplings, row, wide_knots)[0]


@njit(**_part)
def _rotated(a, b, c, times):
    """Roles after `times` stages from channels (r, g, b); `-times` leads back."""
    if times % 3 == 1:
        return b, c, a
    if times % 3 == 2:
        return c, a, b
    return a, b, c


@njit(**_part)
def _forward(x, y, z, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, keep, kept):
    """One register of pixels through all blocks; `keep` writes every block's inputs to `kept` for the gradient."""
    n = REGISTER // curves.itemsize
    for k in range(K + 1):
        at = KEPT * n * k
        if keep:
            store(kept, at, x)
            store(kept, at + n, y)
            store(kept, at + 2 * n, z)
        c, s = row + 3 * k, knot_row + 3 * k
        x = _curve(x, M, curves, nodes, c, wide, False)
        y = _curve(y, M, curves, nodes, c + 1, wide, False)
        z = _curve(z, M, curves, nodes, c + 2, wide, False)
        if k < K:
            y = y + _conditioner(x, couplings, s, wide_knots)
            z = z + _conditioner(x, couplings, s + 1, wide_knots) + _conditioner(y, couplings, s + 2, wide_knots)
            if keep:
                store(kept, at + 3 * n, x)
                store(kept, at + 4 * n, y)
            x, y, z = y, z, x
    return x, y, z


@njit(**_part)
def _backward(x, y, z, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, keep, kept):
    """The inverse walk: blocks in reverse order, each undone; (x, y, z) are the roles of the last stage's end."""
    n = REGISTER // curves.itemsize
    for k in range(K, -1, -1):
        at = KEPT * n * k
        c, s = row + 3 * k, knot_row + 3 * k
        if k < K:
            x, y, z = z, x, y
            if keep:
                store(kept, at + 3 * n, x)
                store(kept, at + 4 * n, y)
            z = z - _conditioner(x, couplings, s + 1, wide_knots) - _conditioner(y, couplings, s + 2, wide_knots)
            y = y - _conditioner(x, couplings, s, wide_knots)
        if keep:
            store(kept, at, x)
            store(kept, at + n, y)
            store(kept, at + 2 * n, z)
        x = _curve(x, M, curves, nodes, c, wide, True)
        y = _curve(y, M, curves, nodes, c + 1, wide, True)
        z = _curve(z, M, curves, nodes, c + 2, wide, True)
    return x, y, z


@njit(**_part)
def _walk(r, g, b, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, keep, kept, inverse):
    if inverse:
        x, y, z = _rotated(r, g, b, K)
        return _backward(x, y, z, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, keep, kept)
    x, y, z = _forward(r, g, b, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, keep, kept)
    return _rotated(x, y, z, -K)


@kernel(**_whole)
def run(rgb, out, B, N, K, M, curves, nodes, couplings, wide, wide_knots, inverse):
    """`rgb` to `out`, both flat `[B * N * 3]`. A task's last pixels, fewer than LANES, go through a padded copy."""
    n = REGISTER // rgb.itemsize
    tasks = (N + PIXELS_PER_TASK - 1) // PIXELS_PER_TASK
    for task in prange(B * tasks):
        picture, first = task // tasks, (task % tasks) * PIXELS_PER_TASK
        last = min(first + PIXELS_PER_TASK, N)
        row, knot_row = picture * (K + 1) * 3, picture * K * 3
        rest, kept = np.zeros(3 * n, rgb.dtype), np.empty(0, rgb.dtype)
        whole = first + (last - first) // n * n
        for pixel in range(first, whole, n):
            at = (picture * N + pixel) * 3
            r, g, b = load_rgb(rgb, at)
            r, g, b = _walk(
                r, g, b, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, False, kept, inverse
            )
            store_rgb(out, at, r, g, b)
        if whole < last:
            at, count = (picture * N + whole) * 3, (last - whole) * 3
            rest[:count] = rgb[at : at + count]
            r, g, b = load_rgb(rest, 0)
            r, g, b = _walk(
                r, g, b, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, False, kept, inverse
            )
            store_rgb(rest, 0, r, g, b)
            out[at : at + count] = rest[:count]


@njit(**_part)
def _curve_gradient(g, v, M, curves, nodes, row, sums, sums_row, wide, inverse):
    """Gradient at the curve's input; adds the gradients of its pieces' (intercept, slope) to `sums`."""
    width = len(wide) * (REGISTER // curves.itemsize)
    k = _piece_by_node(v, nodes, row, wide) if inverse else _piece(v, M)
    accumulate(sums, sums_row * 2 * width * COPIES, 2 * width, k, g, g * v)
    return g * lookup(curves, row * 2 * width + width, wide, k)


@njit(**_part)
def _conditioner_gradient(g, v, couplings, row, sums, sums_row, wide_knots):
    """As above; outside [0, 1] the conditioner is constant, so nothing flows back to its input there."""
    width = len(wide_knots) * (REGISTER // couplings.itemsize)
    zero, one = splat(0.0, v), splat(1.0, v)
    inside = bounded(v, zero, one)
    k = _piece(inside, KNOTS - 1)
    accumulate(sums, sums_row * 2 * width * COPIES, 2 * width, k, g, g * inside)
    slope = lookup(couplings, row * 2 * width + width, wide_knots, k)
    return at_least(v, zero, at_least(one, v, g * slope, zero), zero)


@njit(**_part)
def _pull_back(
    r, g, b, row, knot_row, K, M, curves, nodes, couplings, kept, curve_sums, knot_sums, wide, wide_knots, inverse
):
    """Gradient at the pixels' outputs to that at their inputs, through the kept block inputs, last block first."""
    n = REGISTER // curves.itemsize
    if inverse:
        x, y, z = r, g, b
        for k in range(K + 1):
            at, c, s = KEPT * n * k, 3 * k, 3 * k
            x = _curve_gradient(x, load(kept, at), M, curves, nodes, row + c, curve_sums, c, wide, True)
            y = _curve_gradient(y, load(kept, at + n), M, curves, nodes, row + c + 1, curve_sums, c + 1, wide, True)
            z = _curve_gradient(z, load(kept, at + 2 * n), M, curves, nodes, row + c + 2, curve_sums, c + 2, wide, True)
            if k < K:
                vx, vy = load(kept, at + 3 * n), load(kept, at + 4 * n)
                minus = splat(0.0, y) - y
                x = x + _conditioner_gradient(minus, vx, couplings, knot_row + s, knot_sums, s, wide_knots)
                minus = splat(0.0, z) - z
                x = x + _conditioner_gradient(minus, vx, couplings, knot_row + s + 1, knot_sums, s + 1, wide_knots)
                y = y + _conditioner_gradient(minus, vy, couplings, knot_row + s + 2, knot_sums, s + 2, wide_knots)
                x, y, z = y, z, x
        return _rotated(x, y, z, -K)
    x, y, z = _rotated(r, g, b, K)
    for k in range(K, -1, -1):
        at, c, s = KEPT * n * k, 3 * k, 3 * k
        if k < K:
            x, y, z = z, x, y
            vx, vy = load(kept, at + 3 * n), load(kept, at + 4 * n)
            y = y + _conditioner_gradient(z, vy, couplings, knot_row + s + 2, knot_sums, s + 2, wide_knots)
            x = x + _conditioner_gradient(z, vx, couplings, knot_row + s + 1, knot_sums, s + 1, wide_knots)
            x = x + _conditioner_gradient(y, vx, couplings, knot_row + s, knot_sums, s, wide_knots)
        x = _curve_gradient(x, load(kept, at), M, curves, nodes, row + c, curve_sums, c, wide, False)
        y = _curve_gradient(y, load(kept, at + n), M, curves, nodes, row + c + 1, curve_sums, c + 1, wide, False)
        z = _curve_gradient(z, load(kept, at + 2 * n), M, curves, nodes, row + c + 2, curve_sums, c + 2, wide, False)
    return x, y, z


@kernel(**_whole)
def gradient(
    rgb,
    out_gradient,
    in_gradient,
    B,
    N,
    K,
    M,
    per_task,
    curves,
    nodes,
    couplings,
    curve_sums,
    knot_sums,
    wide,
    wide_knots,
    inverse,
):
    """Gradients of a sum over pixels: `out_gradient` at the results, to `in_gradient` at the colours and, per task of
    `per_task` pixels (a multiple of LANES), to `curve_sums [tasks, rows * COPIES * width * 2]` and `knot_sums`.
    """
    n = REGISTER // rgb.itemsize
    tasks = (N + per_task - 1) // per_task
    for task in prange(B * tasks):
        picture, first = task // tasks, (task % tasks) * per_task
        last = min(first + per_task, N)
        row, knot_row = picture * (K + 1) * 3, picture * K * 3
        kept = np.empty(KEPT * n * (K + 1), rgb.dtype)
        pixels, cotangents = np.zeros(3 * n, rgb.dtype), np.zeros(3 * n, rgb.dtype)
        own_curves, own_knots = curve_sums[task], knot_sums[task]
        for pixel in range(first, last, n):
            at, count = (picture * N + pixel) * 3, min(n, last - pixel) * 3
            if count < 3 * n:
                cotangents[:] = 0
            for i in range(count):
                pixels[i], cotangents[i] = rgb[at + i], out_gradient[at + i]
            r, g, b = load_rgb(pixels, 0)
            _walk(r, g, b, row, knot_row, K, M, curves, nodes, couplings, wide, wide_knots, True, kept, inverse)
            r, g, b = load_rgb(cotangents, 0)
            r, g, b = _pull_back(
                r,
                g,
                b,
                row,
                knot_row,
                K,
                M,
                curves,
                nodes,
                couplings,
                kept,
                own_curves,
                own_knots,
                wide,
                wide_knots,
                inverse,
            )
            store_rgb(pixels, 0, r, g, b)
            for i in range(count):
                in_gradient[at + i] = pixels[i]
