"""Code as an input of jobs: a digest of the source files that a command, with the parts it runs, can reach.

Followed are imports of this package at the top of modules and inside functions, names that packages export lazily,
and data files that a module names. Registries are not followed (a job names its parts), nor is what only plans a build:
settings reach a job as parameters, row by row.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
EXPORT = re.compile(r"\"(\w+)\": \"(\w+)\"")
DATA = re.compile(r"\"([\w./-]+\.(?:json|html|css|js|safetensors|mplstyle))\"")
REGISTRY = re.compile(r"^\w+: Registry\[", re.MULTILINE)
COMMAND = re.compile(r"^@app\.command\((?:\"([\w-]+)\")?[^\n]*\)\n(?:@.*\n)*def (\w+)", re.MULTILINE)
CONSTANT = re.compile(r"^[A-Z_]+ = .*", re.MULTILINE)
# no result depends on these: what is said, how options are read, who may write and where
SILENT = {
    f"core/{name}.py"
    for name in "boundary claims errors files jobs lazy options parts progress reading validation".split()
}
SILENT |= {"paths.py", "__init__.py"}


@cache
def stamp(command: str, parts: tuple[str, ...] = ()) -> str:
    """`command`: `splat train`; `parts`: names of the modules that hold the parts it runs."""
    digest = hashlib.sha256()
    for path, text in sorted(_reached(command, parts).items()):
        digest.update(f"{path}\0".encode() + text + b"\0")
    return f"code:{digest.hexdigest()[:16]}"


def stamp_of_files(paths: Iterable[Path]) -> str:
    """Of a user's files, by name, size and time of change: a plan reads none of them. Nothing when there are none."""
    found = [(str(path), (at := path.stat()).st_size, at.st_mtime_ns) for path in paths]
    return f"+files:{hashlib.sha256(repr(found).encode()).hexdigest()[:16]}" if found else ""


def files_of(command: str, parts: tuple[str, ...] = ()) -> list[str]:
    """The files that a stamp is made of, below the package."""
    return sorted(_reached(command, parts))


def _reached(command: str, parts: tuple[str, ...]) -> dict[str, bytes]:
    stage, _, action = command.partition(" ")
    module = PACKAGE / stage / "command.py"
    own = _of_command(module.read_text(), action)
    found = {f"{stage}/command.py": own.encode()}
    waiting = [*_imported(own), *filter(None, map(_file, parts))]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(PACKAGE).as_posix()
        if name in found or name in SILENT or name.startswith("rows/"):
            continue
        if path.name == "settings.py":
            found[name] = "\n".join(CONSTANT.findall(_text(path))).encode()
            continue
        if path.suffix == ".py" and REGISTRY.search(_text(path)):
            continue
        found[name] = path.read_bytes()
        if path.suffix == ".py":
            waiting.extend(_imported(_text(path)))
            waiting.extend(_data(path))
    return found


def _of_command(text: str, action: str) -> str:
    """A command module without the other commands it holds."""
    starts = [(match.start(), match[1] or match[2].replace("_", "-")) for match in COMMAND.finditer(text)]
    if action not in [name for _, name in starts]:
        return text
    ends = [start for start, _ in starts[1:]] + [len(text)]
    bodies = [text[start:end] for (start, name), end in zip(starts, ends, strict=True) if name == action]
    return text[: starts[0][0]] + "".join(bodies)


@cache
def _text(path: Path) -> str:
    return path.read_text()


def _imported(text: str) -> Iterator[Path]:
    for module, names, alone in IMPORT.findall(text):
        base = module or alone
        if base.split(".")[0] != PACKAGE.name:
            continue
        if (path := _file(base)) is not None:
            yield path
        exported = _exports(base)
        for name in re.findall(r"\w+", names):
            if (path := _file(f"{base}.{exported.get(name, name)}")) is not None:
                yield path


@cache
def _exports(package: str) -> dict[str, str]:
    path = _file(package)
    if path is None or path.name != "__init__.py" or "exports(" not in _text(path):
        return {}
    return dict(EXPORT.findall(_text(path)))


def _data(path: Path) -> Iterable[Path]:
    for name in DATA.findall(_text(path)):
        for folder in (path.parent, path.parent / "assets"):
            if (folder / name).is_file():
                yield folder / name


@cache
def _file(module: str) -> Path | None:
    package, *words = module.split(".")
    path = PACKAGE.joinpath(*words)
    if package != PACKAGE.name:
        return None
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if words and file.is_file()), None)
