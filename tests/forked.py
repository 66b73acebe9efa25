"""Jobs of a plan one after the other: shell commands as `plan.job` makes them, one per line of standard input.

With a file's name as argument they run on a pretend GPU (`card.py`), and the file gets a line for each: the command,
and how many operations ran there.
"""

import json
import os
import shlex
import shutil
import sys
from importlib import import_module
from pathlib import Path

from fujinsplat.cli import main

# what nearly every job loads before it works
for name in ("matplotlib.figure", "fujinsplat.flow.fused", "fujinsplat.isp.fused", "fujinsplat.splat.train"):
    import_module(name)


def run(line: str) -> int:
    """Exit status of one job, in a process of its own."""
    before, command = line.split("; fujinsplat ")
    command, log = command.removesuffix(" 2>&1").split(" 3>&2 > ")
    (log,) = shlex.split(log)
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    os.dup2(2, 3)
    for stream in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    words = dict(word.split("=", 1) for word in shlex.split(before.split(";")[0])[1:])
    os.environ.update(words | {"FUJINSPLAT_PARENT": str(os.getppid())})
    for path in map(Path, json.loads(words["FUJINSPLAT_JOB"])["outputs"]):  # as Snakemake does
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    diary, sys.argv = sys.argv[1:], ["fujinsplat", *shlex.split(command)]
    if diary:
        import card
        import pytest

        card.install(pytest.MonkeyPatch())
    main()
    if diary:
        with Path(diary[0]).open("a") as stream:
            stream.write(f"{' '.join(sys.argv[1:3])} {sum(card.OPERATIONS.values())}\n")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)  # torch's threads of a device that is none do not end by themselves
    sys.exit()


if __name__ == "__main__":
    for line in sys.stdin.read().splitlines():
        if status := run(line):
            sys.exit(f"{status}: {line}")
