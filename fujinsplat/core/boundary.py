"""The boundary of a job: clean twins, held views, and what is fitted to clean twins one by one (actions), cannot be
opened by any code of a job whose rule does not name them.

Two fences are put up before any stage's code is imported. Python's audit events see every `open` of Python itself and
of libraries written in it (pathlib, numpy, PIL, torch); such an open is refused with a sentence, and a job that tried
one fails even where the sentence was caught on its way. Landlock, where the kernel has it, makes the same files
unreadable for native code (LibRaw, safetensors) and for programs that the job starts. What was opened is recorded.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fujinsplat.core.claims import UNFINISHED
from fujinsplat.core.errors import UserError
from fujinsplat.core.versions import processor

APART = "references"  # of results/{dataset}: clean twins and held views, by kind and scene
FITTED = "actions"  # of results/{dataset}: files that know a view's clean twin
PARTS = {"train": "source", "val": "clean", "test": "held"}  # folders of a dataset's scene
CLOSED = ("clean", "held")
DEPTH = 4  # folders between a dataset's root and a part of a scene, at most
LANDLOCK = "FUJINSPLAT_LANDLOCK"  # 0: without


class Trespass(UserError):
    """A job opened what it was not given."""


@dataclass(frozen=True)
class Place:
    """A folder of pictures, or a file made from them one by one; `source`, `clean` or `held` ones."""

    folder: str
    kind: str


def _finished(word: str) -> str:
    """The name of what is still being written beside its place: `.Hayate.1a2b3c4d.part` is Hayate's."""
    return UNFINISHED.sub(r"\1", word)


def find_links(results: str, roots: tuple[str, ...]) -> dict[str, list[str]]:
    """Where links on the way to pictures lead, each with its names here: a scene may lie on another disk."""
    found: dict[str, list[str]] = {}

    def look(folder: str, depth: int) -> None:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        if os.path.dirname(folder) == results:
            entries = [entry for entry in entries if entry.name in (APART, FITTED, "capture")]  # the rest has no places
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if entry.is_symlink():
                target = os.path.realpath(path)
                if f"{folder}/".startswith(f"{target.rstrip('/')}/"):
                    continue  # round in a circle
                found.setdefault(target, []).append(path)
            if depth and entry.is_dir():
                look(path, depth - 1)

    for root in (results, *roots):
        look(root, DEPTH)
    return found


@dataclass
class Boundary:
    """`results`: the folder of all datasets' results; `roots`: datasets as they came; `opens`: closed folders that the
    job's rule names. Paths are absolute and real; `links` gives the other names that real paths have there."""

    job: str
    results: str
    roots: tuple[str, ...]
    opens: frozenset[str]
    links: dict[str, list[str]] = field(default_factory=dict)
    record: Path | None = None
    fence: str = "Python's audit events"
    refused: set[str] = field(default_factory=set)
    seen: set[Place] = field(default_factory=set)

    # which folder is which

    def place_of(self, path: str) -> Place | None:
        """The folder of pictures that a real path lies in (or is), by its own name or by one that a link gives it."""
        if (place := self._place(path)) is not None or not self.links:
            return place
        places = [place for name in self._linked(path) if (place := self._place(name)) is not None]
        return min(places, key=lambda place: (self.shut(place), place.kind not in CLOSED), default=None)

    def _linked(self, path: str) -> Iterator[str]:
        end = len(path)
        while end > 0:
            for name in self.links.get(path[:end], ()):
                yield name + path[end:]
            end = path.rfind("/", 0, end)

    def _place(self, path: str) -> Place | None:
        if path.startswith(self.results + "/"):
            words = path[len(self.results) + 1 :].split("/")
            if words[-1].startswith(".") and words[-1].endswith(".claim"):
                return None  # who makes it: core/claims.py
            if len(words) >= 3 and words[1] == FITTED:
                return Place("/".join([self.results, *words[:-1], _finished(words[-1])]), "clean")
            if len(words) >= 4 and words[1] == APART and words[2] in CLOSED:
                return Place("/".join([self.results, *words[:3], _finished(words[3])]), words[2])
            if len(words) >= 4 and words[1] == "capture" and words[3] == "source":
                return Place("/".join([self.results, *words[:4]]), "source")
        for root in self.roots:
            if path.startswith(root + "/"):
                words = [_finished(word) for word in path[len(root) + 1 :].split("/")]
                for i, word in enumerate(words[: DEPTH + 1]):
                    if i and word in PARTS:
                        return Place("/".join([root, *words[: i + 1]]), PARTS[word])
        return None

    def shut(self, place: Place | None) -> bool:
        return place is not None and place.kind in CLOSED and not self._given(place.folder)

    def _given(self, folder: str) -> bool:
        names = (folder, os.path.realpath(folder)) if self.links else (folder,)
        return any(f"{name}/".startswith(f"{given}/") for given in self.opens for name in names)

    # the fence of Python

    def watch(self) -> None:
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple) -> None:
        if event in ("open", "os.link"):
            self._opened(arguments[0])
        elif event == "os.rename":
            self._opened(arguments[0])
            self._moved(os.fsdecode(arguments[0]))
        elif event == "os.symlink":
            self._opened(os.path.join(os.path.dirname(os.fsdecode(arguments[1])), os.fsdecode(arguments[0])), False)
        elif event == "subprocess.Popen":
            words = arguments[1] if isinstance(arguments[1], (list, tuple)) else str(arguments[1]).split()
            for word in words:
                self._opened(word, meant=False)

    def _opened(self, path, meant: bool = True) -> None:
        if isinstance(path, int) or path is None:
            return
        path = os.fsdecode(path)
        if path.startswith(self._libraries) and "/../" not in path:
            return
        real = os.path.realpath(path)
        # by both names: a link into a closed folder, and a link in one that leads elsewhere
        for name in dict.fromkeys((real, os.path.abspath(path))):
            place = self.place_of(name)
            if place is None:
                continue
            if self.shut(place):
                self.refused.add(os.path.relpath(name))
                raise Trespass(self.sentence(name, place))
            if meant and place not in self.seen:
                self.seen.add(place)
                self._note(place)

    @cached_property
    def _libraries(self) -> tuple[str, ...]:
        """What Python and its packages consist of; none of it is anybody's picture."""
        folders = (sys.prefix, sys.base_prefix, "/usr", "/sys", "/dev")
        pictures = (self.results, *self.roots, *self.links)
        return tuple(
            f"{folder}/" for folder in folders if folder != "/" and not any(p.startswith(folder) for p in pictures)
        )

    def _moved(self, path: str) -> None:
        """A folder above closed ones would take them to where nobody knows them."""
        real = os.path.realpath(path)
        if self._above(real) and not self._given("/".join(map(_finished, real.split("/")))):
            self.refused.add(os.path.relpath(real))
            raise Trespass(f"{self.job} must not move {os.path.relpath(real)}: clean twins or held views lie in it")

    def sentence(self, path: str, place: Place) -> str:
        what, need = {"clean": "a clean twin", "held": "a held view"}[place.kind], place.kind
        if place.folder.startswith(self.results) and place.folder[len(self.results) :].split("/")[2] == FITTED:
            what, need = "fitted to clean twins", FITTED
        return (
            f"{self.job} must not open {os.path.relpath(path)}: it is {what}, which its rule does not name; "
            f"add {need} to the part's needs, or do not read it"
        )

    # what was opened

    def _note(self, place: Place) -> None:
        """At once and by appending, so that processes a job forks are heard too."""
        if self.record is not None:
            line = json.dumps({"folder": place.folder, "kind": place.kind}) + "\n"
            fd = os.open(self._notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(fd, line.encode())
            finally:
                os.close(fd)

    @property
    def _notes(self) -> str:
        assert self.record is not None
        return f"{self.record}.notes"

    def begin_record(self) -> None:
        if self.record is not None:
            self.record.parent.mkdir(parents=True, exist_ok=True)
            self.record.unlink(missing_ok=True)
            Path(self._notes).unlink(missing_ok=True)

    def finish_record(self, outputs: list[str]) -> None:
        """The record of the whole job; and a failure where it tried what it must not, even if it went on."""
        places = set(self.seen)
        if self.record is not None:
            notes = Path(self._notes)
            if notes.exists():
                places |= {Place(**json.loads(line)) for line in notes.read_text().splitlines()}
            opened = {
                kind: sorted({os.path.relpath(place.folder) for place in places if place.kind == kind})
                for kind in ("source", *CLOSED)
            }
            content = {
                "job": self.job,
                "outputs": sorted(outputs),
                "given": sorted(map(os.path.relpath, self.opens)),
                "opened": {kind: folders for kind, folders in opened.items() if folders},
                "refused": sorted(self.refused),
                "fence": self.fence,
                "processor": processor(),
            }
            temporary = self.record.with_name(f"{self.record.name}.new")
            temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
            temporary.replace(self.record)
            notes.unlink(missing_ok=True)
        if self.refused:
            raise Trespass(f"{self.job} tried to open {sorted(self.refused)[0]}, which its rule does not name")

    # the fence of the kernel

    def close(self) -> str:
        """Put up Landlock's fence where that is possible; returns what holds from now on, in words."""
        from fujinsplat.core import landlock

        abi = landlock.version()
        if not abi or os.environ.get(LANDLOCK) == "0":
            reason = "this kernel has no Landlock" if not abi else f"{LANDLOCK}=0"
            return f"Python's audit events alone ({reason}: native code is not fenced)"
        try:
            landlock.read_only_below(self._walk)
        except OSError as error:
            return f"Python's audit events alone (Landlock: {error.strerror}: native code is not fenced)"
        return f"Python's audit events and Landlock (ABI {abi})"

    def _walk(self, allow: Callable[[str], None]) -> None:
        self._below("/", allow)
        for folder in self.opens:
            # what the job makes is written beside its final place, and writers read what they write
            allow(folder if os.path.exists(folder) else os.path.dirname(folder))

    def _below(self, folder: str, allow: Callable[[str], None]) -> None:
        """Everything in a folder that is not closed; folders that hold something closed are gone into."""
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            path = os.path.join(folder, entry.name)
            try:
                kind = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue
            if stat.S_ISLNK(kind) or self.shut(self.place_of(path)):
                continue
            if stat.S_ISDIR(kind) and self._above(path):
                self._below(path, allow)
            else:
                allow(path)

    def _above(self, folder: str) -> bool:
        """Whether something closed may lie below a folder that is not closed itself."""
        if folder in self._on_the_way:
            return True
        return any(map(self._above_by_name, (folder, *self._linked(folder))))

    @cached_property
    def _on_the_way(self) -> set[str]:
        """All folders that results, datasets and what links lead to lie in, and themselves where they are folders."""
        ends = (self.results, *self.roots, *(os.path.dirname(target) for target in self.links))
        return {str(folder) for end in ends for folder in (Path(end), *Path(end).parents)}

    def _above_by_name(self, folder: str) -> bool:
        if folder.startswith(self.results + "/"):
            words = folder[len(self.results) + 1 :].split("/")
            return len(words) == 1 or words[1] == FITTED or (len(words) <= 3 and words[1] == APART)
        if self._place(folder) is not None:
            return False
        return any(
            folder.startswith(root + "/") and len(folder[len(root) + 1 :].split("/")) < DEPTH for root in self.roots
        )
