"""What a command does besides its work when the workflow runs it: claims on its outputs, and its boundary.

`plan.job` describes the job in the environment; a command that a person types has no description and none of this.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fujinsplat.core.boundary import Boundary, find_links
from fujinsplat.core.claims import born, holding

JOB, PARENT, LOG = "FUJINSPLAT_JOB", "FUJINSPLAT_PARENT", "FUJINSPLAT_LOG"
TERMINAL = "FUJINSPLAT_TERMINAL"  # a file descriptor: standard error of the Snakemake that runs the job

# a job's folder: machine, process, its start
TEMPORARY = re.compile(r"fujinsplat-[0-9a-f]{6}-(?P<pid>\d+)-(?P<born>[^-]+)-\w{8}")


@contextmanager
def as_a_job() -> Iterator[None]:
    """Everything that the process does inside is one job of the workflow, if the environment says so."""
    described = os.environ.pop(JOB, None)
    if not described:
        yield
        return
    job = json.loads(described)
    outputs = [Path(path) for path in job["outputs"]]
    signal.signal(signal.SIGTERM, _stop)
    with _about(outputs):
        with holding(outputs, int(os.environ.get(PARENT) or 0), job["name"]) as claims, _own_temporary_folder():
            boundary = _boundary(job)
            boundary.begin_record()
            boundary.fence = "Python's audit events" if job.get("makes_data") else boundary.close()
            if "alone" in boundary.fence:
                print(f"boundary: {boundary.fence}", file=sys.stderr)
            boundary.watch()
            claims.watch()
            yield
            boundary.finish_record(job["outputs"])


@contextmanager
def _about(outputs: list[Path]) -> Iterator[None]:
    """An error of the operating system that names no file is about what the job makes: its claim, its record."""
    try:
        yield
    except OSError as error:
        if error.filename is None and outputs:
            error.filename = str(outputs[0])
        raise


def _boundary(job: dict) -> Boundary:
    log = os.environ.get(LOG)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for folder in (cache, *(Path(path) for path in job.get("folders", ()))):
        try:
            folder.mkdir(parents=True, exist_ok=True)  # what appears later in a folder with closed ones is unreadable
        except OSError:
            pass
    results, roots = os.path.realpath(job["results"]), tuple(dict.fromkeys(map(os.path.realpath, job["roots"])))
    return Boundary(
        job=job["name"],
        results=results,
        roots=roots,
        links=find_links(results, roots),
        opens=frozenset(map(os.path.realpath, job["opens"])),
        record=Path(log).absolute().with_suffix(".reads.json") if log else None,
    )


@contextmanager
def _own_temporary_folder() -> Iterator[None]:
    """Temporary files in a folder of this job's own, which goes with it; those of killed jobs go now."""
    sweep_temporary(Path(tempfile.gettempdir()))
    try:
        # short: sockets of libraries lie below it, and their paths have a limit
        folder = tempfile.mkdtemp(prefix=f"fujinsplat-{_machine()}-{os.getpid()}-{born(os.getpid())}-")
    except OSError:
        yield  # a full disk: let the command itself say what it cannot write
        return
    before = os.environ.get("TMPDIR")
    os.environ["FUJINSPLAT_SHARED"] = os.path.dirname(folder)
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    try:
        yield
    finally:
        tempfile.tempdir = None
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
        shutil.rmtree(folder, ignore_errors=True)


def sweep_temporary(place: Path) -> int:
    """Remove the temporary folders of jobs of this machine and user whose processes are gone."""
    dead = [
        path
        for path in place.glob(f"fujinsplat-{_machine()}-*")
        if (named := TEMPORARY.fullmatch(path.name)) and born(int(named["pid"])) not in (named["born"], "unknown")
    ]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)  # another user's stays
    return len(dead)


@cache
def _machine() -> str:
    """Six digits for where process numbers mean what they mean here: a machine since its start, and a container."""
    try:
        here = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    except OSError:
        here = ""
    return hashlib.sha256(f"{socket.gethostname()} {here}".encode()).hexdigest()[:6]


def _stop(number: int, frame) -> None:
    """A stopped job clears up what it was writing."""
    raise SystemExit(128 + number)


def last_words(sentence: str) -> None:
    """To standard error; when nobody will find it in that log, to the person's terminal as well."""
    try:
        print(sentence, file=sys.stderr, flush=True)
        said = not _log_is_lost()
    except (OSError, ValueError):
        said = False
    if not said and (terminal := os.environ.get(TERMINAL)):
        try:
            os.write(int(terminal), f"{sentence}\n".encode())
        except (OSError, ValueError):
            pass


def _log_is_lost() -> bool:
    """Whether standard error is a file on a disk without space, where what was printed may not have arrived, or one
    that another run with the same results has deleted to begin its own."""
    try:
        file = os.fstat(2)
        if not stat.S_ISREG(file.st_mode):
            return False
        disk = os.fstatvfs(2)
    except OSError:
        return False
    return not file.st_nlink or disk.f_bavail * disk.f_frsize < 65536
