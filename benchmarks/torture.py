"""`make torture MINUTES=60`: kills, damaged files and cheating opens at random, for as many minutes as asked for.

Three kinds of torture go on side by side, on a tiny finished build that is made first (or given with `--build`):

- kills: a job of a rule, each rule as likely as any other, is killed at a random moment (itself, its Snakemake, or
  both), up to four times; then the build is resumed. Outputs must be those of the undisturbed build, it must open
  what it opened there, and no litter may be left. So many killers work as there are cores;
- mutations: a file of each kind is cut, flipped, emptied, exchanged or has its header changed, and its reader called.
  Anything but a result or one sentence counts: another exception, a crash, memory beyond a limit;
- cheats: a job of a random rule opens clean twins or held views that it was not given, in a random way.

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

KINDS = {"kills": kill, "mutations": mutate, "cheats": cheat}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10.0)
    parser.add_argument("--build", type=Path, help="a folder in which a tiny demo build has finished; it is copied")
    parser.add_argument("--only", choices=KINDS, help="one kind of torture alone")
    parser.add_argument("--killers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    names = [name for name in KINDS for _ in range(asked.killers if name == "kills" else 1)]
    if asked.only:
        names = [name for name in names if name == asked.only]
    lost = 0
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        build = finished(Path(folder), asked.build)
        until = time.monotonic() + asked.minutes * 60
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(names), mp_context=context) as pool:
            done = [
                pool.submit(torment, name, build, Path(folder) / f"work{number}", until, f"{seed}/{number}")
                for number, name in enumerate(names)
            ]
        for name in dict.fromkeys(names):
            counts, losses = Counter(), Counter()
            for future in [future for other, future in zip(names, done, strict=True) if other == name]:
                counts.update(future.result()[0])
                losses.update(future.result()[1])
            lost += losses.total()
            print(f"{name}: {counts.total()} ({', '.join(f'{n} {what}' for what, n in counts.most_common())})")
            for what, count in losses.most_common(20):
                print(f"  LOST {count}x {what}")
    print(f"{lost} losses; seed {seed}")
    return 1 if lost else 0


def torment(name: str, build: Path, work: Path, until: float, seed: str) -> tuple[Counter, list[str]]:
    """One tormentor at work: what it counted and what was lost. The clock is the machine's, not the process's."""
    counts, losses = Counter(), []
    work.mkdir()

    def tell() -> None:
        """So that a run that is stopped has not been for nothing."""
        while True:
            time.sleep(60)
            print(f"  {name} so far: {counts.total()}, {len(losses)} losses", *losses[-1:], flush=True)

    threading.Thread(target=tell, daemon=True).start()
    try:
        KINDS[name](build, work, until, random.Random(f"{seed}/{name}"), counts, losses)
    except Exception:
        losses.append(f"the tormentor itself ended: {traceback.format_exc()[-600:]}")
    shutil.rmtree(work, ignore_errors=True)
    return counts, losses


if __name__ == "__main__":
    sys.exit(main())
