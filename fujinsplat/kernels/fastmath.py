"""float32 exp and log as short polynomials that the compiler can run on eight or sixteen pixels at once.

The library functions are calls the compiler cannot vectorise. These are good to about two units in the last place over
the ranges that occur, and have no branches.
"""

from typing import Any

import numpy as np
from numba import njit
from numba.core import types

from fujinsplat.kernels.jit import intrinsic

FLAGS = {"contract", "nsz", "arcp"}  # fused multiply-adds; infinities and NaN keep their meaning
OPTIONS: dict[str, Any] = {"fastmath": FLAGS, "error_model": "numpy"}

_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LN2 = np.float32(0.6931471805599453)
_ROUND = np.float32(12582912.0)  # 1.5 * 2^23: adding and taking it away rounds to an integer
_ONE, _HALF, _TWO = np.float32(1), np.float32(0.5), np.float32(2)
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1 / k) for k in (2, 6, 24, 120, 720, 5040))
_L3, _L5, _L7, _L9 = (np.float32(1 / k) for k in (3, 5, 7, 9))
_LARGE = np.float32(87)
_SQRT2 = np.float32(1.4142135)
_EXPONENT_ONE = np.int32(127)
_MANTISSA = np.int32(0x007FFFFF)
_BITS_ONE = np.int32(0x3F800000)
_SHIFT = np.int32(23)


@intrinsic
def bits(typingctx, x):
    """The int32 with the bits of a float32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.int32))

    return types.int32(types.float32), codegen


@intrinsic
def floating(typingctx, x):
    """The float32 with the bits of an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), codegen


@njit(inline="always", **OPTIONS)
def exp32(x):
    """exp(x), with x held to [-87, 87]; exp(0) is exactly 1."""
    x = min(max(x, -_LARGE), _LARGE)
    n = (x * _LOG2E + _ROUND) - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _ONE + r * (_ONE + r * (_E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * _E7))))))
    return p * floating((np.int32(n) + _EXPONENT_ONE) << _SHIFT)


@njit(inline="always", **OPTIONS)
def log32(x):
    """log(x) for normal positive x."""
    i = bits(x)
    mantissa = floating((i & _MANTISSA) | _BITS_ONE)  # [1, 2)
    exponent = np.float32((i >> _SHIFT) - _EXPONENT_ONE)
    high = mantissa > _SQRT2
    mantissa = mantissa * _HALF if high else mantissa
    exponent = exponent + _ONE if high else exponent
    f = (mantissa - _ONE) / (mantissa + _ONE)
    g = f * f
    return exponent * _LN2 + _TWO * f * (_ONE + g * (_L3 + g * (_L5 + g * (_L7 + g * _L9))))
