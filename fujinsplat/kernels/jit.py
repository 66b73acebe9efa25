"""How kernels are compiled and kept on disk, and when a kept one is out of date.

Numba keeps a compiled kernel beside its source file and looks at that one file to see whether it still holds, while our
kernels hold code and constants of the files they import. Here a kept kernel belongs to the text of its own file and of
every file of this package that it reaches through imports.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from numba import extending

from fujinsplat.compat.numba_cache import kept

Function = TypeVar("Function", bound=Callable)
Parameters = ParamSpec("Parameters")

ROOT = Path(__file__).parents[1]
# a statement at the start of a line; a full parser would cost each process more than all the rest of this file
IMPORT = re.compile(r"^from ([\w.]+) import (\([^)]*\)|[^\n]*)|^import ([\w.]+)", re.MULTILINE)


def kernel(**options: Any) -> Callable[[Function], Function]:
    """`numba.njit` for functions that Python calls, kept on disk.

    Functions that only kernels call need no more than `njit`: the kernel's compiled code holds them.
    """

    def decorate(function: Function) -> Function:
        return kept(function, fingerprint(Path(function.__code__.co_filename)), **options)

    return decorate


def intrinsic(rule: Callable[Concatenate[Any, Parameters], Any]) -> Callable[Parameters, Any]:
    """`numba.extending.intrinsic`, as kernels call it: without the typing context that Numba passes first."""
    return cast(Any, extending.intrinsic(rule))


@cache
def fingerprint(file: Path) -> str:
    """A digest of everything a kernel in `file` can depend on."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources(file))).hexdigest()


def sources(file: Path) -> list[Path]:
    """`file` and all files of this package that importing it reads, in a fixed order."""
    found, waiting = {}, [file.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            waiting.extend(_imported(path))
    return sorted(found)


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    return tuple(path for name in _names(file.read_text()) if (path := _file_of(name)) is not None)


def _names(text: str) -> Iterator[str]:
    """What a module imports at its top level; what a function imports when it is called is no part of a kernel."""
    for module, names, alone in IMPORT.findall(text):
        yield module or alone
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))


def _file_of(name: str) -> Path | None:
    """The file of module `name`, when it is one of this package."""
    package, *parts = name.split(".")
    if package != ROOT.name:
        return None
    path = ROOT.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
