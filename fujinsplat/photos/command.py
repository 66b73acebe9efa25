"""`fujinsplat photos FOLDER`: from a folder of smoky photographs to a clean scene, with one command."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import SettingsOption


def photos(
    folder: Annotated[Path, typer.Argument(help="Your photographs: RAW files, JPG or PNG, at any depth.")],
    out: Annotated[
        Path | None, typer.Option(help="Where everything goes [./NAME-fujinsplat]. Nothing in FOLDER is changed.")
    ] = None,
    poses: Annotated[
        Path | None,
        typer.Option(
            help="Poses that you have: a COLMAP model's folder, or a transforms.json. `none`: find them anew."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look in some minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The best there is; on a CPU that takes hours.")] = False,
    row: Annotated[str | None, typer.Option(help="The row of config.yaml that clears the smoke [smoke].")] = None,
    size: Annotated[int | None, typer.Option(min=64, help="Working size: longer side in pixels.")] = None,
    tiff: Annotated[
        bool, typer.Option("--tiff", help="16-bit linear TIFF files of the cleared views as well.")
    ] = False,
    settings: SettingsOption = None,
    cores: Annotated[int | None, typer.Option(min=1, help="CPU cores (default: all).")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Prepare and show what would run, then stop.")] = False,
) -> None:
    """A folder of smoky photographs in, a clean 3D scene out. Interrupted, the same command goes on where it stood."""
    from fujinsplat.core.errors import UserError
    from fujinsplat.photos.run import Request, run

    if quick and full:
        raise UserError("--quick and --full contradict each other; choose one")
    preset = "quick" if quick else "full" if full else "usual"
    run(Request(folder, out, poses, preset, row, size, tiff, settings, cores, plan))
