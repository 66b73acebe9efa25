"""The CPU kernel behind `photometric`: value and gradient in one pass, written so that the compiler vectorises it."""

import numpy as np
from numba import njit, prange

from fujinsplat.core import color
from fujinsplat.kernels.fastmath import exp32, log32
from fujinsplat.kernels.jit import kernel

CHUNK = 4096
_f = np.float32
_TOE, _TOE_SLOPE = _f(color.KNEE_ENCODED), _f(1 / color.TOE)
_OFFSET, _SCALE = _f(color.OFFSET / color.SCALE), _f(1 / color.SCALE)
_POWER, _POWER_SLOPE = _f(color.EXPONENT - 1), _f(color.EXPONENT / color.SCALE)
_ZERO, _ONE = _f(0), _f(1)


@njit(error_model="numpy", fastmath={"contract", "nsz", "arcp"}, nogil=True)
def _chunk(z, j, j_linear, gradient, losses, scale, weight_encoded, weight_range):
    """Numbers `[n]` of one picture: their gradients, and their own losses (not yet divided by their count)."""
    for i in range(len(z)):
        v = z[i]
        base = max(v, _TOE) * _SCALE + _OFFSET
        power = exp32(_POWER * log32(base))  # base^1.4; its slope and base^2.4 both follow from it
        toe = v <= _TOE
        light = v * _TOE_SLOPE if toe else power * base
        slope = _TOE_SLOPE if toe else _POWER_SLOPE * power
        d, e = light - j_linear[i], v - j[i]
        beyond = v - min(max(v, _ZERO), _ONE)
        losses[i] = abs(d) + weight_encoded * abs(e) + weight_range * abs(beyond)
        sign_d = (_ONE if d > _ZERO else _ZERO) - (_ONE if d < _ZERO else _ZERO)
        sign_e = (_ONE if e > _ZERO else _ZERO) - (_ONE if e < _ZERO else _ZERO)
        sign_b = (_ONE if beyond > _ZERO else _ZERO) - (_ONE if beyond < _ZERO else _ZERO)
        gradient[i] = scale * (sign_d * slope + weight_encoded * sign_e + weight_range * sign_b)


@njit(error_model="numpy", fastmath={"reassoc", "nsz"}, nogil=True)
def _sum(values):
    """In whatever order is fastest on this CPU; a function of its own, because the fast exp must not be reordered."""
    total = _ZERO
    for i in range(len(values)):
        total += values[i]
    return total


@kernel(error_model="numpy", parallel=True, nogil=True)
def value_and_gradient(z, j, j_linear, gradient, weight_encoded, weight_range):
    """`z`, `j`, `j_linear`, `gradient`: float32 `[B, 3N]`; fills `gradient`, returns the losses' sums `[B, chunks]`.

    Exactly one parallel loop: each start of one costs a wake-up of all threads.
    """
    B, n = z.shape
    chunks = (n + CHUNK - 1) // CHUNK
    sums = np.empty((B, chunks), np.float64)
    scale = np.float32(1 / max(n, 1))
    for task in prange(B * chunks):
        b, c = task // chunks, task % chunks
        first, last = c * CHUNK, min((c + 1) * CHUNK, n)
        losses = np.empty(last - first, np.float32)
        weights = np.float32(weight_encoded), np.float32(weight_range)
        _chunk(
            z[b, first:last],
            j[b, first:last],
            j_linear[b, first:last],
            gradient[b, first:last],
            losses,
            scale,
            *weights,
        )
        sums[b, c] = _sum(losses)
    return sums
