"""Writing that is whole or absent: write beside, then rename.

A killed job, a full disk or a second run in the same folder must never leave something that looks finished.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from fujinsplat.core.claims import may_publish
from fujinsplat.core.errors import UserError

NEARLY_NOTHING = 65536  # bytes free on a disk that a failed write has filled


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A name beside `path`; a folder left under it is removed, and an OS error of writing becomes one sentence."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        if error.filename is not None and not _within(Path(error.filename), path.parent):
            raise  # an input's fault, not this output's
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"cannot write {path}: {reason}; {_remedy(error.errno)}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remedy(number: int | None) -> str:
    """What helps against a failed write."""
    if number == errno.EDQUOT:
        return "free space of yours (the disk has a quota), or choose a writable results folder elsewhere"
    if number == errno.EFBIG:
        return "raise the limit on the size of files (ulimit -f), or choose a writable results folder elsewhere"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "choose a results folder that you may write to"
    if number in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY):
        return "correct the path, or move away what lies there"
    return "free space or choose a writable results folder"


def explained(error: OSError) -> str | None:
    """One sentence for an error of the operating system that a user can mend; None for any other."""
    name, reason = error.filename, (error.strerror or str(error)).lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"cannot write{f' {name}' if name else ''}: {reason}; {_remedy(error.errno)}"
    if name is None or isinstance(name, int):
        return None
    path = Path(os.fsdecode(name))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        # asked without pathlib, whose answer may be the same error again
        hidden = not os.access(path.parent, os.X_OK) or (os.path.exists(path) and not os.access(path, os.R_OK))
        if error.errno != errno.EROFS and hidden:
            return f"{path} cannot be read: {reason}; give yourself the right to read it"
        return f"{path}: {reason}; choose a folder that you may read and write"
    if error.errno == errno.ENOENT:
        return f"{path} does not exist; build it first or correct the path"
    if error.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO):
        return f"{path}: {reason}; correct the path, or restore what lies there"
    return None


@contextmanager
def _as_os_errors(folder: Path) -> Iterator[None]:
    """Libraries report a failed write in ways of their own; here it becomes the operating system's error again.

    Rust ones quote its number; torch does not, but then the disk is full while its file still lies there.
    """
    try:
        yield
    except (OSError, UserError):
        raise
    except Exception as error:
        quoted = re.search(r"\(os error (\d+)\)", str(error))
        full = folder.is_dir() and shutil.disk_usage(folder).free < NEARLY_NOTHING
        if not quoted and not full:
            raise
        number = int(quoted.group(1)) if quoted else errno.ENOSPC
        raise OSError(number, os.strerror(number)) from error


def _within(path: Path, folder: Path) -> bool:
    path, folder = path.absolute(), folder.absolute()
    return folder in (path, *path.parents) or path in folder.parents


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path with the same suffix; on success it replaces `path`, on any error it vanishes."""
    path = Path(path)
    with _beside(path) as temporary:
        # keep the suffix: writers such as matplotlib and numpy choose the format by it
        temporary = temporary.with_name(temporary.name + path.suffix)
        try:
            with _as_os_errors(path.parent):
                yield temporary
            os.chmod(temporary, 0o666 & ~_umask())  # some writers make private files; a group shares results
            may_publish(path)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path | str, kinds: tuple[str, ...] | None = None) -> Iterator[Path]:
    """Yields a fresh temporary folder; on success it replaces `path` (and what was there), on any error it vanishes.

    `kinds`: suffixes of what is made there. A folder that a person names may be the wrong one: where it holds anything
    else, it is not replaced.
    """
    path = Path(path)
    if kinds is not None:
        _check_kinds(path, kinds)
    with _beside(path) as temporary:
        temporary.mkdir()
        with _as_os_errors(path.parent):
            yield temporary
        may_publish(path)
        if path.exists():
            old = path.with_name(f".{path.name}.{uuid4().hex[:8]}.old")
            os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(temporary, path)


def _check_kinds(path: Path, kinds: tuple[str, ...]) -> None:
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file, where a folder is to be made; name another place")
    for file in path.rglob("*"):
        if file.suffix not in kinds and not file.is_dir() and not file.name.startswith("."):
            raise UserError(
                f"{path} holds {str(file.relative_to(path))!r}, which is not of the kind that is made there and would "
                "be lost; name another folder, or move it"
            )


def write_json(path: Path | str, value: Any) -> None:
    """Sorted keys and a fixed layout, so equal content is an equal file. NaN is refused: it is not JSON."""
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: Path | str) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except OSError as error:
        raise UserError(explained(error) or f"{path}: {error}; restore the file") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid JSON ({error}); build it again or restore the file") from None


def sha256(path: Path | str) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksum(path: Path | str) -> str:
    """Of a file, or of everything in a folder: names and contents."""
    path = Path(path)
    if not path.is_dir():
        return sha256(path)
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        digest.update(f"{file.relative_to(path)}\0{sha256(file)}\0".encode())
    return digest.hexdigest()


def write_tensors(path: Path | str, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    """A safetensors file of torch tensors or numpy arrays whose bytes follow from its content alone.

    The library writes metadata in a random order; the header is put in sorted order before the file appears.
    """
    numpy = all(type(tensor).__module__ == "numpy" for tensor in tensors.values())
    if numpy:
        import numpy as np
        from safetensors.numpy import save_file

        # the library saves arrays as they lie in memory
        tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    else:
        from safetensors.torch import save_file
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata)
        with temporary.open("r+b") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(size))
            header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
            text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
            stream.seek(8)
            stream.write(text.ljust(size))
