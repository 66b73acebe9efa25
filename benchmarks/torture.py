"""`make torture MINUTES=60`: kills, damaged files and cheating opens at random, for as many minutes as asked for.

On a tiny finished build, which is made first (or given with `--build`), so many tormentors work side by side as there
are cores, each for its share of the time at

- mutations: a file of each kind is cut, flipped, emptied, exchanged or has its header changed, and its reader called.
  Anything but a result or one sentence counts: another exception, a crash, memory beyond a limit;
- cheats: a job of a random rule opens clean twins or held views that it was not given, in a random way;
- kills: a job of a rule, each rule as likely as any other, is killed at a random moment (itself, its Snakemake, or
  both), up to four times; then the build is resumed. Outputs must be those of the undisturbed build, it must open
  what it opened there, and no litter may be left.

Prints counts, and exits with 1 when anything was lost. `--seed` repeats a run.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.torments.builds import finished
from benchmarks.torments.cheats import cheat
from benchmarks.torments.kills import kill
from benchmarks.torments.mutations import mutate

KINDS = {"mutations": mutate, "cheats": cheat, "kills": kill}
SHARES = {"mutations": 0.05, "cheats": 0.05, "kills": 0.9}  # of the minutes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10.0)
    parser.add_argument("--build", type=Path, help="a folder in which a tiny demo build has finished; it is copied")
    parser.add_argument("--only", choices=KINDS, help="one kind of torture alone")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    shares = {asked.only: 1.0} if asked.only else SHARES
    lost = 0
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        build = finished(Path(folder), asked.build)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(asked.workers, mp_context=context) as pool:
            done = [
                pool.submit(work, shares, asked.minutes * 60, build, Path(folder) / f"work{number}", f"{seed}/{number}")
                for number in range(asked.workers)
            ]
        for name in shares:
            counts, losses = Counter(), Counter()
            for future in done:
                counts.update(future.result()[name][0])
                losses.update(future.result()[name][1])
            lost += losses.total()
            print(f"{name}: {counts.total()} ({', '.join(f'{n} {what}' for what, n in counts.most_common())})")
            for what, count in losses.most_common(20):
                print(f"  LOST {count}x {what}")
    print(f"{lost} losses; seed {seed}")
    return 1 if lost else 0


def work(
    shares: dict[str, float], seconds: float, build: Path, folder: Path, seed: str
) -> dict[str, tuple[Counter, list[str]]]:
    """One tormentor, kind by kind: what it counted and what was lost."""
    return {name: torment(name, build, folder, share * seconds, seed) for name, share in shares.items()}


def torment(name: str, build: Path, folder: Path, seconds: float, seed: str) -> tuple[Counter, list[str]]:
    counts, losses, until, ended = Counter(), [], time.monotonic() + seconds, threading.Event()
    folder.mkdir()

    def tell() -> None:
        """So that a run that is stopped has not been for nothing."""
        while not ended.wait(60):
            print(f"  {name} so far: {counts.total()}, {len(losses)} losses", *losses[-1:], flush=True)

    threading.Thread(target=tell, daemon=True).start()
    try:
        KINDS[name](build, folder, until, random.Random(f"{seed}/{name}"), counts, losses)
    except Exception:
        losses.append(f"the tormentor itself ended: {traceback.format_exc()[-600:]}")
    ended.set()
    shutil.rmtree(folder, ignore_errors=True)
    return counts, losses


if __name__ == "__main__":
    sys.exit(main())
