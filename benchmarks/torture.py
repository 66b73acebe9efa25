"""`make torture MINUTES=60`: kills, damaged files and cheating opens at random, for as many minutes as asked for.

Three kinds of torture share the time, on a tiny finished build that is made first (or given with `--build`):

- kills: a job of a rule, each rule as likely as any other, is killed at a random moment (itself, its Snakemake, or
  both); then the build is resumed. Its outputs must be those of the undisturbed build;
- mutations: a file of each kind is cut, flipped, emptied, exchanged or has its header changed, and its reader called.
  Anything but a result or one sentence counts: another exception, a crash, memory beyond a limit;
- cheats: a job of a random rule opens clean twins or held views that it was not given, in a random way.

Prints counts, and exits with 1 when anything was lost. `--seed` repeats a run.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.torments.builds import finished
from benchmarks.torments.cheats import cheat
from benchmarks.torments.kills import kill
from benchmarks.torments.mutations import mutate

KINDS = {"mutations": (mutate, 0.25), "cheats": (cheat, 0.15), "kills": (kill, 0.6)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10.0)
    parser.add_argument("--build", type=Path, help="a folder in which a tiny demo build has finished; it is copied")
    parser.add_argument("--only", choices=KINDS, help="one kind of torture alone")
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    chosen = {name: KINDS[name] for name in ([asked.only] if asked.only else KINDS)}
    total = sum(share for _, share in chosen.values())
    lost = 0
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        build = finished(Path(folder), asked.build)
        for name, (torment, share) in chosen.items():
            rng, counts, losses = random.Random(f"{seed}/{name}"), Counter(), []
            work = Path(folder) / name
            work.mkdir()
            until = time.monotonic() + asked.minutes * 60 * share / total
            torment(build, work, until, rng, counts, losses)
            lost += len(losses)
            print(f"{name}: {sum(counts.values())} ({', '.join(f'{n} {what}' for what, n in counts.most_common())})")
            for what, count in Counter(losses).most_common(20):
                print(f"  LOST {count}x {what}")
            shutil.rmtree(work, ignore_errors=True)
    print(f"{lost} losses; seed {seed}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
