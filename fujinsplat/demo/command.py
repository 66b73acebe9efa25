"""`fujinsplat demo`: one scene, the external captures, or the whole world."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import SettingsOption, ThreadsOption, stage_app

app = stage_app("Make the embedded demo world from a seed.")


def _ready(settings: str | None, threads: int | None):
    """Settings and thread count, fixed before numba is imported."""
    from fujinsplat.core.runtime import use_threads
    from fujinsplat.core.settings import DemoSettings
    from fujinsplat.core.validation import stage_settings

    return stage_settings(DemoSettings, settings), use_threads(threads)


@app.command()
def scene(
    root: Annotated[Path, typer.Argument(help="The dataset's folder.")],
    name: Annotated[str, typer.Argument(help="Scene name: one of the eight winds, or any other.")],
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Write one scene folder, ROOT/NAME, in RealX3D's layout."""
    chosen, threads = _ready(settings, threads)
    from fujinsplat.demo.world import write_scene

    write_scene(root, name, chosen, threads)


@app.command()
def external(
    folder: Annotated[Path, typer.Argument(help="The folder to write.")],
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Write the smoke-free external captures with their depth maps."""
    chosen, threads = _ready(settings, threads)
    from fujinsplat.demo.external import write_external

    write_external(folder, chosen, threads)


@app.command()
def world(
    root: Annotated[Path, typer.Argument(help="The dataset's folder.")],
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Write all eight scenes and the external captures."""
    chosen, threads = _ready(settings, threads)
    from fujinsplat.core.progress import say
    from fujinsplat.demo.external import write_external
    from fujinsplat.demo.weather import SCENES
    from fujinsplat.demo.world import write_scene

    for name in SCENES:
        write_scene(root, name, chosen, threads)
        say(f"{root / name}")
    write_external(root / "external", chosen, threads)
    say(f"{root / 'external'}")
