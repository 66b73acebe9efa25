"""Views side by side: all problems of all of them are told at once, so that a folder is put right once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fujinsplat.core.errors import UserError, refuse
from fujinsplat.core.progress import progress

# decoded views in memory at once, however many cores there are
MOST_IN_FLIGHT = 4
T = TypeVar("T")


def each_view(
    function: Callable[[int], T],
    count: int,
    threads: int,
    what: str,
    compared: Callable[[list[T]], list[str]] | None = None,
) -> list[T]:
    """`function(0…count-1)` on a few threads (LibRaw and numpy release the interpreter).

    What a user can mend is collected from every view, and by `compared` from those that are sound, before it is raised;
    anything else ends it at once."""
    results: list[T] = []
    problems: list[str] = []
    with ThreadPoolExecutor(max(1, min(threads, count, MOST_IN_FLIGHT))) as pool:
        futures = [pool.submit(function, number) for number in range(count)]
        try:
            for future in progress(futures, what, unit="view"):
                try:
                    results.append(future.result())
                except UserError as error:
                    problems.append(str(error))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    refuse([*dict.fromkeys(problems), *(compared(results) if compared else [])])
    return results
