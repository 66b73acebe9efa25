"""How the Gaussian kernels are compiled, and when a compiled kernel is out of date.

Numba caches a kernel on disk beside its source file and compares the age of that one file only, while our kernels
import constants and helpers from their neighbours. Here a cached kernel belongs to the text of all of them together.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from numba import njit

_HERE = Path(__file__).parent


def _fingerprint() -> str:
    texts = (
        path.read_bytes()
        for path in sorted([*_HERE.glob("raster/*.py"), *_HERE.glob("*kernel*.py"), _HERE / "vectors.py"])
    )
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


SOURCES = _fingerprint()

_COMMON = dict(boundscheck=False, nogil=True, error_model="numpy")


def kernel(**options) -> Callable:
    """`numba.njit` with the house's options, for functions that Python calls: cached on disk under `SOURCES`."""

    def decorate(function: Callable):
        compiled = njit(**_COMMON, cache=True, **options)(function)
        compiled._cache._cache_file._source_stamp = SOURCES
        return compiled

    return decorate


# Helpers, which only kernels call, are not cached themselves: the kernel's cached code holds them. (Cached as well, a
# helper would exist twice when the kernel is loaded, and the separately compiled, slower one can be the one that runs.)
# Scalar float64 code: values may be infinite or NaN (a diverging training run), so only contraction is allowed.
PRECISE = dict(fastmath={"contract"})
precise = njit(**_COMMON, **PRECISE)
# The same, pasted into the caller: a call that hands over a dozen arrays costs more than one Gaussian's arithmetic.
precise_inline = njit(**_COMMON, **PRECISE, inline="always")
# Vectorised float32 loops over pixels, whose inputs have passed the finiteness test of the projection.
FAST = dict(fastmath=True)
fast = njit(**_COMMON, **FAST)
fast_inline = njit(**_COMMON, **FAST, inline="always")

precise_kernel = kernel(**PRECISE)
precise_parallel_kernel = kernel(**PRECISE, parallel=True)
fast_parallel_kernel = kernel(**FAST, parallel=True)
