"""The Base ISP's pixels, forward and backward, fused for the CPU.

Pixels are taken in blocks small enough for the nearest cache, channels in separate rows, so that the arithmetic
between the table lookups runs on whole vectors; the formulas are those of `reference`, in the same order.
`pieces` of pixels run on different threads. Gradients of the tables are gathered per piece and summed in piece order,
so a result does not depend on how many threads there were.
"""

import numpy as np
from numba import njit, prange

from fujinsplat.core import color
from fujinsplat.isp.reference import COARSE, FINE, RESIDUAL, SCALE, SEGMENTS, TONE_RANGE
from fujinsplat.kernels.fastmath import OPTIONS, exp32, log32
from fujinsplat.kernels.jit import kernel

BLOCK = 256  # pixels per block

_S, _S2 = np.float32(SCALE), np.float32(SCALE * SCALE)
_INV_S = np.float32(1 / SCALE)
_ZERO, _HALF, _ONE, _TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)
_CELLS = np.float32(FINE - 1)
_RESIDUAL = np.float32(RESIDUAL)
_SEGMENTS = np.float32(SEGMENTS)
_LAST_SEGMENT = np.int32(SEGMENTS - 1)
_PER_LATENT = np.float32(SEGMENTS / (2 * TONE_RANGE))  # tone segments per unit of latent
_MIDDLE = np.float32(SEGMENTS / 2)
_KNEE, _TOE = np.float32(color.KNEE_LINEAR), np.float32(color.TOE)
_POWER, _GAIN, _OFFSET = np.float32(color.POWER), np.float32(color.SCALE), np.float32(color.OFFSET)
# A lattice in its flat table: how many of its cells there are per cell of R33 (a power of two, so that the change of
# units is exact), its last cell, and the steps to the next node in r and in g.
_R33 = (_ONE, np.int32(FINE - 2), FINE * FINE * 3, FINE * 3)
_G9 = (np.float32((COARSE - 1) / (FINE - 1)), np.int32(COARSE - 2), COARSE * COARSE * 3, COARSE * 3)


@njit(inline="always", **OPTIONS)
def _held(position, last):
    """`position` held to [0, last]; NaN becomes 0, so that no lookup ever leaves its table."""
    position = position if position > _ZERO else _ZERO
    return position if position < last else last


@njit(inline="always", **OPTIONS)
def _asinh(t):
    magnitude = abs(t)
    value = log32(magnitude + np.sqrt(magnitude * magnitude + _ONE))
    return value if t >= _ZERO else -value


@njit(inline="always", **OPTIONS)
def _front(raw, start, count, matrix, front, address):
    """Rows of `front` `[3, BLOCK]` (linear) and of the rational lattice coordinate, scaled to shaper segments."""
    for c in range(3):
        m0, m1, m2 = matrix[0, c], matrix[1, c], matrix[2, c]
        for i in range(count):
            x = raw[start + i, 0] * m0 + raw[start + i, 1] * m1 + raw[start + i, 2] * m2
            front[c, i] = x
            positive = x if x > _ZERO else _ZERO
            address[c, i] = _held(positive / (positive + _S), _ONE) * _SEGMENTS


@njit(inline="always", **OPTIONS)
def _shape(count, address, shaper, slope):
    """Shaper257 in place: `address` becomes the position in cells of R33; `slope` its derivative by the coordinate."""
    for c in range(3):
        for i in range(count):
            position = address[c, i]
            segment = min(np.int32(position), _LAST_SEGMENT)
            low, high = shaper[c, segment], shaper[c, segment + 1]
            deviation = low + (high - low) * (position - np.float32(segment))
            address[c, i] = _held(position / _SEGMENTS + deviation, _ONE) * _CELLS
            slope[c, i] = (_ONE + (high - low) * _SEGMENTS) * _CELLS


@njit(**OPTIONS)  # called, not inlined: it is met twice, and the kernel would take twice as long to compile
def _read(count, address, nodes, lattice, out):
    """Trilinear rows of one lattice: `nodes` is its flat table, `lattice` its sizes."""
    units, last, step_r, step_g = lattice
    for i in range(count):
        pr, pg, pb = address[0, i] * units, address[1, i] * units, address[2, i] * units
        ir, ig, ib = min(np.int32(pr), last), min(np.int32(pg), last), min(np.int32(pb), last)
        fr, fg, fb = pr - np.float32(ir), pg - np.float32(ig), pb - np.float32(ib)
        at = ir * step_r + ig * step_g + ib * 3
        w00, w01 = (_ONE - fr) * (_ONE - fg), (_ONE - fr) * fg
        w10, w11 = fr * (_ONE - fg), fr * fg
        for c in range(3):
            near = w00 * nodes[at + c] + w01 * nodes[at + step_g + c]
            near += w10 * nodes[at + step_r + c] + w11 * nodes[at + step_r + step_g + c]
            far = w00 * nodes[at + 3 + c] + w01 * nodes[at + step_g + 3 + c]
            far += w10 * nodes[at + step_r + 3 + c] + w11 * nodes[at + step_r + step_g + 3 + c]
            out[c, i] = near + (far - near) * fb


@njit(inline="always", **OPTIONS)
def _act(count, address, coarse, fine, action, bounded):
    """Action rows G9(u) + 0.1 tanh(R33(u)); `bounded` receives tanh(R33(u))."""
    _read(count, address, coarse, _G9, action)
    _read(count, address, fine, _R33, bounded)
    for c in range(3):
        for i in range(count):
            bounded[c, i] = _ONE - _TWO / (exp32(_TWO * bounded[c, i]) + _ONE)
        for i in range(count):
            action[c, i] += _RESIDUAL * bounded[c, i]


@njit(inline="always", **OPTIONS)
def _step(x, action):
    """x moved by `action` in its asinh latent; exactly x for action 0."""
    e = exp32(action)
    inverse = _ONE / e
    return x + x * (_HALF * (e + inverse) - _ONE) + np.sqrt(x * x + _S2) * (_HALF * (e - inverse))


@njit(inline="always", **OPTIONS)
def _latent(count, front, action, lattice_out, position):
    """The lattice output rows and where Tone257 is read, in tone segments."""
    for c in range(3):
        for i in range(count):
            y = _step(front[c, i], action[c, i])
            lattice_out[c, i] = y
            position[c, i] = _held(_asinh(y * _INV_S) * _PER_LATENT + _MIDDLE, _SEGMENTS)


@njit(inline="always", **OPTIONS)
def _tone(count, position, tone, residual, slope):
    """Tone257's residual rows and their derivative by the latent (zero at the ends of the range, where tails begin)."""
    for c in range(3):
        for i in range(count):
            p = position[c, i]
            segment = min(np.int32(p), _LAST_SEGMENT)
            low, high = tone[c, segment], tone[c, segment + 1]
            residual[c, i] = low + (high - low) * (p - np.float32(segment))
            slope[c, i] = (high - low) * _PER_LATENT if (p > _ZERO and p < _SEGMENTS) else _ZERO


@njit(inline="always", **OPTIONS)
def _encode(toned, srgb):
    if not srgb:
        return toned
    power = toned if toned > _KNEE else _KNEE
    curve = _GAIN * exp32(log32(power) * _POWER) - _OFFSET
    return curve if toned > _KNEE else toned * _TOE


@njit(inline="always", **OPTIONS)
def _store(start, count, rows, out):
    for i in range(count):
        out[start + i, 0] = rows[0, i]
        out[start + i, 1] = rows[1, i]
        out[start + i, 2] = rows[2, i]


@kernel(parallel=True, **OPTIONS)
def forward(raw, matrix, shaper, coarse, fine, tone, srgb, stages, front_out, lattice_out, encoded):
    """Encoded `[N, 3]` of `raw` `[N, 3]`, and with `stages` the front's and the lattice's linear outputs as well.

    Tables as in `reference.Operands`, lattices flat. Without `stages` those two outputs are not touched.
    """
    total = raw.shape[0]
    stride = 16 * BLOCK
    for piece in prange((total + stride - 1) // stride):
        front = np.empty((3, BLOCK), np.float32)
        address = np.empty((3, BLOCK), np.float32)
        action = np.empty((3, BLOCK), np.float32)
        other = np.empty((3, BLOCK), np.float32)
        for start in range(piece * stride, min(total, (piece + 1) * stride), BLOCK):
            count = min(BLOCK, total - start)
            _front(raw, start, count, matrix, front, address)
            if stages:
                _store(start, count, front, front_out)
            _shape(count, address, shaper, action)
            _act(count, address, coarse, fine, action, other)
            _latent(count, front, action, front, address)
            if stages:
                _store(start, count, front, lattice_out)
            _tone(count, address, tone, action, other)
            for c in range(3):
                for i in range(count):
                    other[c, i] = _encode(_step(front[c, i], action[c, i]), srgb)
            _store(start, count, other, encoded)
