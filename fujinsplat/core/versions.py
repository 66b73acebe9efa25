"""Which versions of packages, and which machine, a number came from."""

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
    """The CPU's model and the widest vectors it adds with: sums depend on both, by tenths of a decibel in the end."""
    try:
        lines = dict(line.split("\t:", 1) for line in _cpuinfo() if "\t:" in line)
    except OSError:
        lines = {}
    lines = {key.strip(): value.strip() for key, value in lines.items()}
    flags = lines.get("flags", lines.get("Features", "")).split()
    widest = next((name for flag, name in VECTORS.items() if flag in flags), "no vector unit known")
    return f"{lines.get('model name') or platform.processor() or platform.machine()}, {widest}"


# flags of /proc/cpuinfo, the widest first
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sve": "SVE", "asimd": "NEON", "sse2": "SSE2"}


def _cpuinfo() -> list[str]:
    """What Linux says of the first processor."""
    return Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
