"""Compiled kernels that are older than the sources they were built from are forgotten.

Numba caches a kernel beside its source file and checks that one file only, while our kernels import constants and
helpers from their neighbours.
"""

from pathlib import Path


def forget_stale_kernels(folder: Path) -> None:
    """Remove cached kernels in `folder/__pycache__` that are older than any source file of `folder`."""
    try:
        newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
        for index in (folder / "__pycache__").glob("*.nbi"):
            if index.stat().st_mtime < newest:
                index.unlink(missing_ok=True)
    except OSError:
        return  # a read-only or vanishing folder: then numba keeps its cache elsewhere, per installed version
