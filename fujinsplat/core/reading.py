"""Reading files that may be anything: what a parser makes of a damaged or absurd one becomes one sentence.

Libraries raise many kinds of exception for a file that is not what its name says, and some take the memory that its
header asks for before they look further. Readers here name the file, what it should be and the remedy; sizes are
checked before anything is allocated.
"""

import errno
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fujinsplat.core.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")
MOST_PIXELS = 2**28  # of one picture: more than any camera's
MOST_SIDE = 2**16
MOST_COUPLINGS, MOST_KNOTS = 1000, 10000


@contextmanager
def reading(path: Path | str, what: str, remedy: str) -> Iterator[None]:
    """Whatever goes wrong inside is the file's fault: `{path} is no readable {what} (…); {remedy}`.

    Parsers in native code open files by themselves; the boundary of the job (core/boundary.py) hears of it here.
    """
    sys.audit("open", os.fspath(path), "r", 0)
    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except FileNotFoundError as error:
        name = error.filename if isinstance(error.filename, str) else path
        raise UserError(f"{name} does not exist; {remedy}, or correct the path") from None
    except MemoryError:
        raise UserError(f"{path} asks for more memory than there is; it is damaged or no {what}: {remedy}") from None
    except Exception as error:
        if unreadable(path, error):
            raise UserError(f"{path} cannot be read: permission denied; give yourself the right to read it") from None
        reason = " ".join((str(error) or type(error).__name__).split())[:160]
        raise UserError(f"{path} is no readable {what} ({reason}); {remedy}") from None


def unreadable(path: Path | str, error: Exception) -> bool:
    """Whether a file's rights are what kept it from being read."""
    denied = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM)
    return denied or "os error 13" in str(error) or (os.path.exists(path) and not os.access(path, os.R_OK))


def reader(what: str, remedy: str, place: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose argument number `place` is the path of a file that it reads."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def read(*arguments: P.args, **options: P.kwargs) -> R:
            path: Any = arguments[place] if len(arguments) > place else options.get("path", "the file")
            with reading(path, what, remedy):
                return function(*arguments, **options)

        return read

    return decorate


def check_size(path: Path | str, width: int, height: int, remedy: str) -> None:
    """A picture's size as its header says, before its pixels take memory."""
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE and width * height <= MOST_PIXELS):
        wrong = "which is no picture" if min(width, height) <= 0 else "more than any picture here may"
        raise UserError(f"{path} says it has {width}x{height} pixels, {wrong}; {remedy}")


def check_stem(stem: str, where: Path | str) -> str:
    """The name of a view, which becomes a file's name."""
    if stem in ("", ".", "..") or any(sign in stem for sign in "/\\\0\n") or len(stem) > 200:
        raise UserError(
            f"{where} has a view called {stem!r}, which is no file's name; build it again, or rename the view"
        )
    return stem


def check_form(path: Path | str, K: int, M: int) -> None:
    """Couplings and knots that a file says its actions have, before networks or tables of that size are made."""
    if not (0 <= K <= MOST_COUPLINGS and 1 <= M <= MOST_KNOTS):
        raise UserError(
            f"{path} says K = {K} and M = {M}, which no colour flow has; make it again, or give another file"
        )


def load_array(path: Path | str, what: str, remedy: str):
    """A `.npy` file whose size agrees with its header, never a pickle."""
    import numpy as np

    with reading(path, what, remedy):
        with open(path, "rb") as stream:
            if not os.fstat(stream.fileno()).st_size:
                raise UserError(f"{path} is empty (zero bytes); {remedy}")
            version = np.lib.format.read_magic(stream)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, kind = read_header(stream)
            size = os.fstat(stream.fileno()).st_size - stream.tell()
        wanted = kind.itemsize
        for length in shape:
            wanted *= length  # Python's integers do not overflow
        if kind.hasobject or wanted != size:
            raise UserError(
                f"{path} is no whole {what}: {list(shape)} of {kind} need {wanted} bytes, it has {size}; {remedy}"
            )
        return np.load(path, allow_pickle=False)
