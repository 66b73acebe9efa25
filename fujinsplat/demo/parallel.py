"""Views side by side: the kernels release the interpreter's lock, so plain threads keep every core busy."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from fujinsplat.core.progress import progress


def each(work: Callable, items: Iterable, threads: int, what: str) -> list:
    """`work` over items on `threads` threads; results in order."""
    items = list(items)
    with ThreadPoolExecutor(threads) as pool:
        return list(progress(pool.map(work, items), what, total=len(items), unit="view"))
