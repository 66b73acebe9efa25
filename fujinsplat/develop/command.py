"""`fujinsplat develop`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import (
    DeviceOption,
    InputsOption,
    SettingsOption,
    ThreadsOption,
    named_paths,
    stage_app,
)
from fujinsplat.core.runtime import use_threads

app = stage_app("Give every view of a scene its colour action.")


@app.callback()
def _group() -> None:
    pass


@app.command()
def scene(
    out: Annotated[Path, typer.Option(help="The action of every view, .safetensors.")],
    correction: Annotated[str, typer.Option(help="Where actions come from: a part of the kind `correction`.")],
    inputs: InputsOption = None,
    summary: Annotated[Path | None, typer.Option(help="Scene mean and displacements, .json.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Contact sheet, .png.")] = None,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Give every view of one scene its action. Takes what the correction opens, and nothing else."""
    use_threads(threads)
    from fujinsplat.core.files import write_json
    from fujinsplat.core.runtime import pick_device
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.develop.corrections import CORRECTIONS
    from fujinsplat.rows.registries import AllSettings

    part, given = CORRECTIONS[correction], stage_settings(AllSettings, settings)
    paths = named_paths(inputs, ("views", *part.opens(given)), f"the correction {correction!r}")
    from fujinsplat.develop.inspect import spread
    from fujinsplat.develop.sheet import contact_sheet
    from fujinsplat.develop.store import Developed
    from fujinsplat.views.store import Views

    views, flow = Views(paths["views"]), given.flow
    actions = part.run(paths, views.stems, given, pick_device(device))
    Developed.write(out, actions, views.stems, flow.K, flow.M, part.name)
    if summary:
        write_json(summary, {"correction": part.name, "views": views.stems, **spread(actions, flow.K, flow.M)})
    if sheet:
        contact_sheet(out, paths["views"], sheet)


@app.command()
def sheet(
    developed: Annotated[Path, typer.Argument(help="A developed scene.")],
    views: Annotated[Path, typer.Option(help="The pictures its row starts from: views/{scene}/{front}.safetensors.")],
    out: Annotated[Path, typer.Option(help="Contact sheet, .png.")],
    source: Annotated[Path | None, typer.Option(help="Adds the camera's column.")] = None,
    clean: Annotated[Path | None, typer.Option(help="Adds the clean twins; for the analysis.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 12,
) -> None:
    """A contact sheet: camera, base, corrected, clean twin."""
    from fujinsplat.develop.sheet import contact_sheet

    contact_sheet(developed, views, out, source, clean, most)
