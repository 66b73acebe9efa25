"""Numba's on-disk cache, keyed by more than the kernel's own file. Tested with numba 0.61 to 0.68.

Numba compares the time and size of the one file a kernel stands in. Ours hold code and constants of the files they
import, so the stamp is replaced by one of our own. The attribute is private: where it is absent nothing is kept.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

VERSIONS = "numba >=0.61,<0.69"


def kept(function: Callable, stamp: str, **options: Any) -> Any:
    """`numba.njit(function, cache=True)` whose kept code holds as long as `stamp` is the same."""
    try:
        compiled: Any = njit(cache=True, **options)(function)
        compiled._cache._cache_file._source_stamp = stamp
    except (RuntimeError, AttributeError):  # nowhere to write, or another numba: compile in every process
        return njit(**options)(function)
    return compiled
