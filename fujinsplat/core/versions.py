"""Which versions of packages, and which machine, a number came from."""

import os
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fujinsplat import __version__


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Version by package, those that are not installed left out; our own is the one of this very source."""
    found = {}
    for package in packages:
        try:
            found[package] = __version__ if package == "fujinsplat" else version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def processor() -> str:
    """The CPU's model and the vectors that kernels add with: sums depend on both, by tenths of a decibel in the end."""
    about = _cpuinfo()
    flags = vector_flags()
    widest = next((name for flag, name in VECTORS.items() if flag in flags), "no vector unit known")
    if os.environ.get("FUJINSPLAT_ARITHMETIC") == "portable":
        widest = "portable AVX2"
    return f"{about.get('model name') or platform.processor() or platform.machine()}, {widest} kernels"


def vector_flags() -> set[str]:
    about = _cpuinfo()
    return set(about.get("flags", about.get("Features", "")).split())


# flags of /proc/cpuinfo, the widest first
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sve": "SVE", "asimd": "NEON", "sse2": "SSE2"}


@cache
def _cpuinfo() -> dict[str, str]:
    """What Linux says of the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
