"""Who makes what: a job of the workflow holds its outputs while it runs, and publishes only what it still holds.

A claim is a hidden file beside each output, locked by the process and saying who it is. A Snakemake that is killed
leaves its jobs running, and the next one starts the same jobs again: a job whose Snakemake is gone stops, and what it
would still write is refused. A job that finds its output held by a living run says whose it is. Where a file system
has no locks, and between machines, the claim's words and its time, which the holder keeps fresh, take their place: a
job that is tried again on another machine waits until it is clear whether the one before it lives.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO
from uuid import uuid4

from fujinsplat.core.errors import UserError

FRESH = 60.0  # seconds after which a claim that nobody keeps fresh is a dead one
GRACE = 30.0  # seconds that an orphaned job is given to stop by itself; then it is killed
PATIENCE = 120.0  # seconds after which a claim that nobody gives up is told to the person
TOKEN = "FUJINSPLAT_CLAIM"  # in the environment of a job's own children: whose claim they work under
ABANDONED = 600.0  # seconds after which an unfinished file that no job claims is litter


# what core/files.py calls a file until it is whole
UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{8}\.(?:part(?:\.\w+)?|old)")


class ClaimLost(UserError):
    """This process may no longer publish."""


def born(pid: int) -> str | None:
    """When a process started, which tells it from a later one of the same number; None when there is no such one."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            words = stream.read().rpartition(")")[2].split()
        return None if words[0] in ("Z", "X") else words[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        pass
    try:  # a system without /proc, or one that shows only its own
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return "unknown"


@dataclass(frozen=True)
class Holder:
    """What a claim says of the process that holds it; `parent` is the Snakemake that started it."""

    pid: int
    parent: int
    parent_born: str | None
    folder: str
    job: str
    host: str = field(default_factory=socket.gethostname)
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S"))
    token: str = field(default_factory=lambda: uuid4().hex)
    pid_born: str | None = None

    @property
    def here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def orphaned(self) -> bool:
        """Whether the Snakemake that started it is gone, perhaps before the job could look; of another machine nobody
        can say."""
        return self.here and self.parent != 0 and (not self.parent_born or born(self.parent) != self.parent_born)

    def end(self) -> None:
        """Kill it, unless its number belongs to another process by now. For orphans: they may not publish anyway."""
        if self.here and self.pid_born and born(self.pid) == self.pid_born:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except OSError:
                pass

    def described(self) -> str:
        run = f"of the Snakemake with process {self.parent} in {self.folder}" if self.parent else f"in {self.folder}"
        return f"process {self.pid} on {self.host} ({self.job}, {run}, since {self.since})"


def claim_file(output: Path) -> Path:
    return output.with_name(f".{output.name}.claim")


def read_holder(file: Path) -> Holder | None:
    try:
        return Holder(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


class Claims:
    """The claims of this process on its outputs, from `take` to `release`."""

    def __init__(self, outputs: list[Path], parent: int, job: str):
        self.outputs = [Path(output).absolute() for output in outputs]
        me, parent_born = os.getpid(), born(parent) if parent else None
        self.holder = Holder(me, parent, parent_born, os.getcwd(), job, pid_born=born(me))
        self._held: dict[Path, IO] = {}
        self._stopped, self._looking = threading.Event(), threading.Lock()

    def take(self) -> None:
        self.check()
        try:
            for output in sorted(self.outputs):  # in one order, so that no two jobs wait for each other
                self._take(output)
                sweep_beside(output)
        except BaseException:
            self.release()
            raise
        os.environ[TOKEN] = self.holder.token

    def _take(self, output: Path) -> None:
        file, start, told, beat = claim_file(output), time.monotonic(), False, None
        file.parent.mkdir(parents=True, exist_ok=True)
        while True:
            stream = file.open("a+")
            touched = os.fstat(stream.fileno()).st_mtime_ns
            if _lock(stream) and self._rival(file, stream) is None:
                break
            stream.close()
            other, beat = read_holder(file), beat or touched
            if other is not None and not other.orphaned and (other.here or touched != beat):
                raise UserError(
                    f"{output} is being made by {other.described()}; wait until that run has finished, or stop it"
                )
            waited = time.monotonic() - start
            if other is not None and waited > GRACE:
                other.end()
            if waited > PATIENCE:
                who = other.described() if other else f"whoever holds {file}"
                raise UserError(f"{output} is still held by {who}, which should be gone; end it with kill")
            if other is not None and not told:
                told = True
                why = "whose Snakemake is gone" if other.here else "which may have been killed"
                print(f"{output} is held by {other.described()}, {why}; waiting", file=sys.stderr)
            time.sleep(0.2)
        stream.truncate(0)
        stream.write(json.dumps(asdict(self.holder)))
        stream.flush()
        self._held[file] = stream

    def _rival(self, file: Path, stream: IO) -> Holder | bool | None:
        """Who else has the file that was just locked: a fresh holder on another machine, or nobody of that name."""
        try:
            if not os.path.samestat(os.fstat(stream.fileno()), file.stat()):
                return True  # its last holder has removed it: take the one that others see
        except FileNotFoundError:
            return True
        other = read_holder(file)
        fresh = time.time() - os.fstat(stream.fileno()).st_mtime < FRESH
        return other if other and fresh and (not other.here or not _locks_work(stream)) and _alive(other) else None

    def lost(self) -> str | None:
        """Why this process may not publish any more; None while it may."""
        holder = self.holder
        if holder.orphaned:
            return f"the Snakemake that started this job (process {holder.parent}) is gone"
        for file, stream in self._held.items():
            try:
                same = os.path.samestat(os.fstat(stream.fileno()), file.stat())
            except OSError:
                same = False
            if not same or (current := read_holder(file)) is None or current.token != holder.token:
                other = read_holder(file)
                whose = f"is now held by {other.described()}" if other else "was removed"
                return f"this job's claim {file} {whose}"
        return None

    def check(self) -> None:
        if reason := self.lost():
            raise ClaimLost(f"{reason}; nothing is written, start Snakemake again")

    def watch(self, every: float = 1.0) -> None:
        """Stop this process as soon as its claim or its Snakemake is gone; keep the claims fresh until then."""

        def loop() -> None:
            touched = time.monotonic()
            while not self._stopped.wait(every):
                with self._looking:  # not while claims are given back: the job has ended well
                    reason = None if self._stopped.is_set() else self.lost()
                    if time.monotonic() - touched > FRESH / 6:
                        touched = time.monotonic()
                        for stream in self._held.values():
                            os.utime(stream.fileno())
                if reason:
                    print(f"fujinsplat: {reason}; this job stops", file=sys.stderr, flush=True)
                    os.kill(os.getpid(), signal.SIGTERM)
                    if not self._stopped.wait(GRACE):
                        os._exit(143)
                    return

        threading.Thread(target=loop, daemon=True, name="claims").start()

    def release(self) -> None:
        self._stopped.set()
        with self._looking:
            for file, stream in self._held.items():
                holder = read_holder(file)
                if holder is not None and holder.token == self.holder.token:
                    file.unlink(missing_ok=True)
                stream.close()
            self._held.clear()
        os.environ.pop(TOKEN, None)


def _lock(stream: IO) -> bool:
    """False when another process has it. A file system without locks says yes."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _locks_work(stream: IO) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _alive(holder: Holder) -> bool:
    return born(holder.pid) is not None if holder.here else True


def living_holder(output: Path) -> Holder | None:
    """Who is making this output now; a job whose Snakemake is gone does not count, for it publishes nothing.

    A claim of another machine is looked at until its holder has touched it, or should have.
    """
    file, start = claim_file(Path(output).absolute()), time.monotonic()
    holder, beat = read_holder(file), _touched(file)
    if holder is None or beat is None or holder.orphaned:
        return None
    if holder.here:
        return holder if born(holder.pid) == (holder.pid_born or born(holder.pid)) and _alive(holder) else None
    while time.time() - beat < FRESH and time.monotonic() - start < FRESH:
        time.sleep(0.2)
        if (touched := _touched(file)) is None:
            return None
        if touched != beat:
            return holder
    return None


def _touched(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None


_current: Claims | None = None


def may_publish(path: Path) -> None:
    """Called before anything appears under its final name; a sentence when somebody else is making it."""
    if _current is not None:
        _current.check()
        return
    file = claim_file(Path(path).absolute())
    if not file.exists():
        return
    holder = read_holder(file)
    if holder is None or holder.token == os.environ.get(TOKEN):
        return
    with _opened(file) as stream:
        if stream is not None and _lock(stream):
            return  # left by a killed job
    raise UserError(f"{path} is being made by {holder.described()}; wait until it has finished, or write elsewhere")


@contextmanager
def _opened(file: Path) -> Iterator[IO | None]:
    try:
        stream = file.open("r")
    except OSError:
        yield None
        return
    with stream:
        yield stream


@contextmanager
def holding(outputs: list[Path], parent: int, job: str) -> Iterator[Claims]:
    """This process makes these outputs, for the Snakemake with process number `parent` (0: for nobody)."""
    global _current
    claims = Claims(outputs, parent, job)
    claims.take()
    _current = claims
    try:
        yield claims
    finally:
        _current = None
        claims.release()


# litter


def sweep_beside(output: Path) -> int:
    """Remove what killed jobs left of an output that this process holds."""
    found = [
        *output.parent.glob(f".{_plain(output.name)}.*.part*"),
        *output.parent.glob(f".{_plain(output.name)}.*.old"),
    ]
    for path in found:
        _remove(path)
    return len(found)


def sweep(folder: Path, abandoned: float = ABANDONED) -> int:
    """Remove unfinished files below `folder` that no process holds or has touched lately, and claims of the dead."""
    count = 0
    for parent, folders, files in os.walk(folder):
        for name in [n for n in folders if _unfinished(n)]:
            folders.remove(name)
            count += _swept(Path(parent), name, abandoned)
        for name in sorted(files, key=lambda name: name.endswith(".claim")):  # a claim tells whether a file is litter
            if _unfinished(name):
                count += _swept(Path(parent), name, abandoned)
            elif name.startswith(".") and name.endswith(".claim"):
                claim = Path(parent) / name
                with _opened(claim) as stream:
                    if stream is not None and _of_this_machine(claim) and _lock(stream):
                        claim.unlink(missing_ok=True)
    return count


def _unfinished(name: str) -> bool:
    return UNFINISHED.fullmatch(name) is not None


def _swept(parent: Path, name: str, abandoned: float) -> int:
    output = parent / UNFINISHED.sub(r"\1", name)
    path = parent / name
    with _opened(claim_file(output)) as stream:
        if stream is not None and not _lock(stream):
            return 0
        try:
            newest = max([path.stat().st_mtime, *(item.stat().st_mtime for item in path.rglob("*"))])
        except OSError:
            return 0
        # a claim that nobody holds is that of a killed job
        if time.time() - newest < abandoned and not (stream is not None and _of_this_machine(claim_file(output))):
            return 0
        _remove(path)
    return 1


def _of_this_machine(claim: Path) -> bool:
    holder = read_holder(claim)
    return holder is not None and holder.here


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _plain(name: str) -> str:
    """A name for `glob` that stands for itself."""
    from glob import escape

    return escape(name)
