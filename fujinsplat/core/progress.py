"""Progress bars on a terminal, silence elsewhere (logs, CI, SLURM)."""

import sys
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T] | None = None, what: str = "", total: int | None = None, unit: str = "it"):
    """tqdm over `items` (or a manual bar of `total`), shown only when stderr is a terminal and only after a moment."""
    from tqdm import tqdm

    return tqdm(
        items,
        desc=what,
        total=total,
        unit=unit,
        disable=not sys.stderr.isatty(),
        delay=1.0,
        dynamic_ncols=True,
        leave=False,
    )


def say(message: str) -> None:
    """One line for the person (or the log): stderr, because stdout belongs to results."""
    print(message, file=sys.stderr, flush=True)
