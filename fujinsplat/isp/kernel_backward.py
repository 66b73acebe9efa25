"""Gradients of the fused Base ISP: the chain rule through `kernel`'s steps in reverse, values recomputed."""

import numpy as np
from numba import njit, prange

from fujinsplat.isp.kernel import (
    _CELLS,
    _G9,
    _GAIN,
    _HALF,
    _KNEE,
    _LAST_SEGMENT,
    _ONE,
    _POWER,
    _R33,
    _RESIDUAL,
    _S,
    _S2,
    _SEGMENTS,
    _TOE,
    _ZERO,
    BLOCK,
    _act,
    _front,
    _held,
    _latent,
    _shape,
    _step,
    _store,
    _tone,
)
from fujinsplat.isp.reference import COARSE, FINE, SEGMENTS
from fujinsplat.kernels.fastmath import OPTIONS, exp32, log32
from fujinsplat.kernels.jit import kernel

SUMMING = {**OPTIONS, "fastmath": OPTIONS["fastmath"] | {"reassoc"}}  # sums in vector order
PIECES = 4  # of the pixels, each with table gradients of its own; fixed, so sums never depend on the thread count


@njit(inline="always", **OPTIONS)
def _step_slopes(x, action):
    """Derivatives of `_step` by x and by the action."""
    e = exp32(action)
    inverse = _ONE / e
    sinh, cosh = _HALF * (e - inverse), _HALF * (e + inverse)
    root = np.sqrt(x * x + _S2)
    return cosh + x / root * sinh, x * sinh + root * cosh


@njit(inline="always", **OPTIONS)
def _encode_slope(toned, srgb):
    if not srgb:
        return _ONE
    power = toned if toned > _KNEE else _KNEE
    curve = _GAIN * _POWER * exp32(log32(power) * (_POWER - _ONE))
    return curve if toned > _KNEE else _TOE


@njit(inline="always", **OPTIONS)
def _load(start, count, values, rows):
    for i in range(count):
        rows[0, i] = values[start + i, 0]
        rows[1, i] = values[start + i, 1]
        rows[2, i] = values[start + i, 2]


# The loops below stay short on purpose: with few arrays each the compiler can prove that they do not overlap, and
# runs them on whole vectors. Recomputing an exponential there costs less than one long loop of single pixels.


@njit(inline="always", **OPTIONS)
def _back_encode(count, y, residual, srgb, g):
    """Gradient rows of the encoded RGB become those of the toned linear RGB."""
    for c in range(3):
        for i in range(count):
            g[c, i] *= _encode_slope(_step(y[c, i], residual[c, i]), srgb)


@njit(inline="always", **OPTIONS)
def _back_tone(count, y, residual, slope, position, g, g_y, g_tone):
    """Gradient rows of the lattice output `y`, and Tone257's node gradients."""
    for c in range(3):
        for i in range(count):
            by_y, by_residual = _step_slopes(y[c, i], residual[c, i])
            g_y[c, i] = g[c, i] * (by_y + by_residual * slope[c, i] / np.sqrt(y[c, i] * y[c, i] + _S2))
        for i in range(count):
            _, by_residual = _step_slopes(y[c, i], residual[c, i])
            g[c, i] *= by_residual
        for i in range(count):
            p = position[c, i]
            segment = min(np.int32(p), _LAST_SEGMENT)
            part = p - np.float32(segment)
            g_tone[c, segment] += g[c, i] * (_ONE - part)
            g_tone[c, segment + 1] += g[c, i] * part


@njit(**OPTIONS)  # called, not inlined, as `_read`
def _back_read(count, address, nodes, lattice, g_action, g_nodes, g_address):
    """Node gradients of one lattice; adds its part to the gradient rows of where it was read."""
    units, last, step_r, step_g = lattice
    for i in range(count):
        pr, pg, pb = address[0, i] * units, address[1, i] * units, address[2, i] * units
        ir, ig, ib = min(np.int32(pr), last), min(np.int32(pg), last), min(np.int32(pb), last)
        fr, fg, fb = pr - np.float32(ir), pg - np.float32(ig), pb - np.float32(ib)
        at = ir * step_r + ig * step_g + ib * 3
        er, eg, eb = _ONE - fr, _ONE - fg, _ONE - fb
        gr, gg, gb = _ZERO, _ZERO, _ZERO
        for c in range(3):
            g = g_action[c, i]
            n = at + c
            v000, v001 = nodes[n], nodes[n + 3]
            v010, v011 = nodes[n + step_g], nodes[n + step_g + 3]
            v100, v101 = nodes[n + step_r], nodes[n + step_r + 3]
            v110, v111 = nodes[n + step_r + step_g], nodes[n + step_r + step_g + 3]
            gr += g * (eg * (eb * (v100 - v000) + fb * (v101 - v001)) + fg * (eb * (v110 - v010) + fb * (v111 - v011)))
            gg += g * (er * (eb * (v010 - v000) + fb * (v011 - v001)) + fr * (eb * (v110 - v100) + fb * (v111 - v101)))
            gb += g * (er * (eg * (v001 - v000) + fg * (v011 - v010)) + fr * (eg * (v101 - v100) + fg * (v111 - v110)))
            g_nodes[n] += g * er * eg * eb
            g_nodes[n + 3] += g * er * eg * fb
            g_nodes[n + step_g] += g * er * fg * eb
            g_nodes[n + step_g + 3] += g * er * fg * fb
            g_nodes[n + step_r] += g * fr * eg * eb
            g_nodes[n + step_r + 3] += g * fr * eg * fb
            g_nodes[n + step_r + step_g] += g * fr * fg * eb
            g_nodes[n + step_r + step_g + 3] += g * fr * fg * fb
        g_address[0, i] += gr * units
        g_address[1, i] += gg * units
        g_address[2, i] += gb * units


@njit(inline="always", **OPTIONS)
def _back_act(count, address, coarse, fine, bounded, g_action, g_coarse, g_fine, g_address):
    """Both lattices' node gradients, and gradient rows of where they were read; `g_action` is used up."""
    for c in range(3):
        for i in range(count):
            g_address[c, i] = _ZERO
    _back_read(count, address, coarse, _G9, g_action, g_coarse, g_address)
    for c in range(3):
        for i in range(count):
            g_action[c, i] *= _RESIDUAL * (_ONE - bounded[c, i] * bounded[c, i])
    _back_read(count, address, fine, _R33, g_action, g_fine, g_address)


@njit(inline="always", **OPTIONS)
def _back_shape(count, front, slope, g_address, g_x, g_shaper):
    """Shaper257's node gradients; the front output's gradient rows `g_x` receive the lattice address's part."""
    for c in range(3):
        for i in range(count):
            positive = front[c, i] if front[c, i] > _ZERO else _ZERO
            position = _held(positive / (positive + _S), _ONE) * _SEGMENTS
            segment = min(np.int32(position), _LAST_SEGMENT)
            part = position - np.float32(segment)
            g_shaper[c, segment] += g_address[c, i] * _CELLS * (_ONE - part)
            g_shaper[c, segment + 1] += g_address[c, i] * _CELLS * part
        for i in range(count):
            x = front[c, i] if front[c, i] > _ZERO else _ZERO
            by_x = _S / ((x + _S) * (x + _S)) if front[c, i] > _ZERO else _ZERO
            g_x[c, i] += g_address[c, i] * slope[c, i] * by_x


@njit(inline="always", **SUMMING)
def _back_front(count, rows, matrix, g_x, g_matrix, g_rows):
    """The row matrix's gradient from RAW rows and `g_x`; the RAW's own gradient rows."""
    for j in range(3):
        for c in range(3):
            block_sum = _ZERO
            for i in range(count):
                block_sum += rows[j, i] * g_x[c, i]
            g_matrix[j, c] += block_sum
        m0, m1, m2 = matrix[j, 0], matrix[j, 1], matrix[j, 2]
        for i in range(count):
            g_rows[j, i] = g_x[0, i] * m0 + g_x[1, i] * m1 + g_x[2, i] * m2


@kernel(parallel=True, **OPTIONS)
def backward(raw, matrix, shaper, coarse, fine, tone, srgb, g_front, g_lattice, g_encoded, g_raw):
    """Gradients of (matrix, shaper, coarse, fine, tone), a leading axis of PIECES to sum; fills `g_raw` `[N, 3]`."""
    total = raw.shape[0]
    g_matrix = np.zeros((PIECES, 3, 3), np.float64)
    g_shaper = np.zeros((PIECES, 3, SEGMENTS + 1), np.float32)
    g_coarse = np.zeros((PIECES, COARSE * COARSE * COARSE * 3), np.float32)
    g_fine = np.zeros((PIECES, FINE * FINE * FINE * 3), np.float32)
    g_tone = np.zeros((PIECES, 3, SEGMENTS + 1), np.float32)
    for piece in prange(PIECES):
        front = np.empty((3, BLOCK), np.float32)
        address = np.empty((3, BLOCK), np.float32)
        by_address = np.empty((3, BLOCK), np.float32)
        action = np.empty((3, BLOCK), np.float32)
        bounded = np.empty((3, BLOCK), np.float32)
        y = np.empty((3, BLOCK), np.float32)
        position = np.empty((3, BLOCK), np.float32)
        residual = np.empty((3, BLOCK), np.float32)
        by_latent = np.empty((3, BLOCK), np.float32)
        g = np.empty((3, BLOCK), np.float32)
        g_x = np.empty((3, BLOCK), np.float32)
        for start in range(piece * total // PIECES, (piece + 1) * total // PIECES, BLOCK):
            count = min(BLOCK, (piece + 1) * total // PIECES - start)
            _front(raw, start, count, matrix, front, address)
            _shape(count, address, shaper, by_address)
            _act(count, address, coarse, fine, action, bounded)
            _latent(count, front, action, y, position)
            _tone(count, position, tone, residual, by_latent)
            _load(start, count, g_encoded, g)
            _back_encode(count, y, residual, srgb, g)
            _back_tone(count, y, residual, by_latent, position, g, g_x, g_tone[piece])
            _load(start, count, g_lattice, g)
            for c in range(3):
                for i in range(count):
                    g[c, i] += g_x[c, i]
                for i in range(count):
                    by_x, _ = _step_slopes(front[c, i], action[c, i])
                    g_x[c, i] = g[c, i] * by_x
                for i in range(count):
                    _, by_action = _step_slopes(front[c, i], action[c, i])
                    g[c, i] *= by_action
            _back_act(count, address, coarse, fine, bounded, g, g_coarse[piece], g_fine[piece], residual)
            _back_shape(count, front, by_address, residual, g_x, g_shaper[piece])
            _load(start, count, g_front, g)
            for c in range(3):
                for i in range(count):
                    g_x[c, i] += g[c, i]
            _load(start, count, raw, y)
            _back_front(count, y, matrix, g_x, g_matrix[piece], residual)
            _store(start, count, residual, g_raw)
    return g_matrix, g_shaper, g_coarse, g_fine, g_tone
