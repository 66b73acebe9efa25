"""Restorers that are not ours, by one contract: a folder of pictures in, a folder with the same names out.

In go 8-bit RGB PNGs named as the views are (`{stem}.png`). Out may come PNG, JPEG, BMP or TIFF: one picture per view,
of the same stem and size, 8-bit RGB. Anything else is refused with the picture's name.
"""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.restore.settings import RestorerSettings

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}
PNG_SIGNATURE, PNG_DEPTH_AT = b"\x89PNG\r\n\x1a\n", 24
NAMED = 3  # names that a sentence lists before it counts the rest


def write_pictures(pictures: dict[str, np.ndarray], folder: Path) -> None:
    from PIL import Image

    for stem, picture in pictures.items():
        Image.fromarray(picture).save(folder / f"{stem}.png")


def read_restored(
    folder: Path, wanted: dict[str, tuple[int, int]], who: str, named: str | None = None
) -> dict[str, np.ndarray]:
    """The pictures of `folder`, one for each stem of `wanted` (stem to height and width); `who` made them.

    `named`: what sentences call a folder that is gone before they are read.
    """
    named = named or str(folder)
    if not folder.is_dir():
        raise UserError(f"{who}: {named} is no folder any more; the program has to write into the one that is there")
    found = _pictures(folder, who, named)
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    if missing:
        others = [f"the folder {path.name!r}" for path in sorted(folder.iterdir()) if path.is_dir()]
        others += [_listed(extra)] if extra else []
        beside = f" (there is {' and '.join(others)})" if others else ""
        raise UserError(f"{who}: no picture of {_listed(missing)} in {named}{beside}; every view needs one of its name")
    if extra:
        raise UserError(f"{who}: {_listed(extra)} in {named} is no view's name; remove it or correct the names")
    return {stem: _read(found[stem], size, who, f"{named}/{found[stem].name}") for stem, size in wanted.items()}


def read_folder(folder: Path) -> dict[str, np.ndarray]:
    """Every picture of a folder, by stem."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; name one with pictures")
    found = _pictures(folder, "restore", str(folder))
    if not found:
        raise UserError(f"{folder} holds no PNG, JPEG, BMP or TIFF; name a folder with pictures")
    return {stem: _read(path, None, "restore", str(path)) for stem, path in found.items()}


def _pictures(folder: Path, who: str, named: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES:
            continue
        if path.stem in found:
            raise UserError(f"{who}: {found[path.stem].name} and {path.name} in {named} are both named {path.stem!r}")
        found[path.stem] = path
    return found


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def _read(path: Path, size: tuple[int, int] | None, who: str, named: str) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with path.open("rb") as stream:
            head = stream.read(PNG_DEPTH_AT + 1)
        with Image.open(path) as image:
            mode, picture = image.mode, np.asarray(image)
    except (OSError, UnidentifiedImageError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(f"{who}: {named} cannot be read as a picture ({error}); restore it again") from None
    # the reader halves the depth of 16-bit PNGs without a word
    deep = head.startswith(PNG_SIGNATURE) and head[PNG_DEPTH_AT] != 8
    if mode != "RGB" or picture.dtype != np.uint8 or deep:
        depth = "16-bit" if deep else mode
        raise UserError(f"{who}: {named} is {depth}, not 8-bit RGB; save it as 8-bit RGB")
    if size is not None and picture.shape[:2] != size:
        (high, wide), (has_high, has_wide) = size, picture.shape[:2]
        raise UserError(
            f"{who}: {named} has {has_wide} x {has_high} pixels and its view {wide} x {high}; "
            "restore at full size (pad instead of cropping)"
        )
    return picture


def by_folder(pictures: dict[str, np.ndarray], by: RestorerSettings, scene: str) -> dict[str, np.ndarray]:
    assert by.folder is not None
    folder = Path(by.folder.replace("{scene}", scene)).expanduser()
    return read_restored(folder, {stem: picture.shape[:2] for stem, picture in pictures.items()}, f"restorer {by.by}")


def arguments(by: RestorerSettings, scene: str, given: Path, made: Path) -> list[str]:
    """The command as a list; what is put in stays one argument, whatever its spaces."""
    values = {"{input}": str(given), "{output}": str(made), "{scene}": scene}
    values["{weights}"] = str(Path(by.weights).expanduser().absolute()) if by.weights else ""
    return filled(by.command or "", values)


def filled(command: str, values: dict[str, str]) -> list[str]:
    """A command as a list of arguments, with its marks replaced."""
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise UserError(f"the command {command!r} cannot be read ({error}); correct its quotes") from None
    for mark, value in values.items():
        parts = [part.replace(mark, value) for part in parts]
    return parts


def by_command(pictures: dict[str, np.ndarray], by: RestorerSettings, scene: str) -> dict[str, np.ndarray]:
    """Run the program once for all pictures of a scene, in temporary folders that vanish afterwards."""
    with TemporaryDirectory() as name:
        given, made = Path(name) / "input", Path(name) / "output"
        given.mkdir()
        made.mkdir()
        write_pictures(pictures, given)
        parts = arguments(by, scene, given, made)
        who = f"restorer {by.by} ({Path(parts[0]).name})" + (f" of scene {scene}" if scene else "")
        run_program(parts, by.directory, by.minutes, who)
        return read_restored(made, {stem: picture.shape[:2] for stem, picture in pictures.items()}, who, "{output}")


def run_program(parts: list[str], directory: str | None, minutes: float, who: str) -> None:
    """Somebody's program to its end; its failure is one sentence with the last thing it said.

    It has a session of its own, so that what it started ends with it when time is up or this process is stopped.
    """
    where = None if directory is None else Path(directory).expanduser()
    if where is not None and not where.is_dir():
        raise UserError(f"{who}: its `directory` {directory} is no folder; correct the path")
    with _signals_raise():
        try:
            process = subprocess.Popen(
                parts,
                cwd=where,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{who} cannot be started ({error}); correct its command") from None
        with process:
            try:
                printed = "".join(process.communicate(timeout=60 * minutes))
            except BaseException as error:
                _end(process)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise UserError(
                    f"{who} did not finish in {minutes:g} minutes; raise `minutes` or look at the program"
                ) from None
    if process.returncode:
        said = [line.strip() for line in printed.splitlines() if line.strip()] or ["no message"]
        raise UserError(
            f"{who} failed with code {process.returncode}: {said[-1]}; "
            "run its command by hand, on folders of your own, to see more"
        )


@contextmanager
def _signals_raise() -> Iterator[None]:
    """What would end this process at once (a closed terminal, `kill`) raises instead: the program has to end first."""

    def stop(number: int, _frame) -> None:
        raise SystemExit(128 + number)

    main = threading.current_thread() is threading.main_thread()
    deadly = [n for n in (signal.SIGTERM, signal.SIGHUP) if main and signal.getsignal(n) is signal.SIG_DFL]
    try:
        for number in deadly:
            signal.signal(number, stop)
        yield
    finally:
        for number in deadly:
            signal.signal(number, signal.SIG_DFL)


def _end(process: subprocess.Popen) -> None:
    """End a program and whatever it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it has ended
