"""How the Gaussian kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit

from fujinsplat.kernels.jit import kernel


def named(function: Callable, variant: str) -> Callable:
    """For helpers that one function makes in several variants: each with a name of its own.

    A kept kernel carries its helpers by name. When kernels that were compiled in different processes are loaded into
    one, helpers of one name are taken for each other, and the wrong one runs.
    """
    function.__name__ = function.__qualname__ = f"{function.__name__}_{variant}"
    return function


_COMMON: dict[str, Any] = dict(boundscheck=False, nogil=True, error_model="numpy")

# Helpers, which only kernels call, are not kept on disk themselves: the kernel's code holds them. (Kept as well, a
# helper would exist twice when the kernel is loaded, and the separately compiled, slower one can be the one that runs.)
# Scalar float64 code: values may be infinite or NaN (a diverging training run), so only contraction is allowed.
PRECISE: dict[str, Any] = dict(fastmath={"contract"})
precise = njit(**_COMMON, **PRECISE)
# The same, pasted into the caller: a call that hands over a dozen arrays costs more than one Gaussian's arithmetic.
precise_inline = njit(**_COMMON, **PRECISE, inline="always")
# Vectorised float32 loops over pixels, whose inputs have passed the finiteness test of the projection.
FAST: dict[str, Any] = dict(fastmath=True)
fast = njit(**_COMMON, **FAST)
fast_inline = njit(**_COMMON, **FAST, inline="always")

precise_kernel = kernel(**_COMMON, **PRECISE)
precise_parallel_kernel = kernel(**_COMMON, **PRECISE, parallel=True)
fast_parallel_kernel = kernel(**_COMMON, **FAST, parallel=True)
