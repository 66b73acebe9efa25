"""`fujinsplat develop`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fujinsplat.options import DeviceOption, ThreadsOption, stage_app
from fujinsplat.runtime import use_threads

app = stage_app("Apply a controller to a scene.")


@app.callback()
def _group() -> None:
    pass


@app.command()
def scene(
    out: Annotated[Path, typer.Option(help="Actions and base output of every view, .safetensors.")],
    kind: Annotated[
        Literal["controller", "base", "camera", "expert", "clean"],
        typer.Option(help="Where pictures and actions come from; expert and clean are oracles."),
    ] = "controller",
    source: Annotated[Path | None, typer.Option(help="The scene's smoky views.")] = None,
    clean: Annotated[Path | None, typer.Option(help="Clean twins, for the oracle `clean` alone.")] = None,
    base: Annotated[Path | None, typer.Option(help="The scene's Base ISP.")] = None,
    controller: Annotated[Path | None, typer.Option(help="A trained controller.")] = None,
    actions: Annotated[Path | None, typer.Option(help="Fitted expert actions, for the oracle `expert` alone.")] = None,
    input: Annotated[Literal["raw", "rgb"], typer.Option(help="What the controller sees.")] = "raw",
    shared: Annotated[
        bool, typer.Option("--shared", help="Every view gets the mean of the scene's predictions.")
    ] = False,
    k: Annotated[int, typer.Option("--couplings", min=1, help="K of the variant.")] = 7,
    m: Annotated[int, typer.Option("--knots", min=2, help="M of the variant.")] = 16,
    summary: Annotated[Path | None, typer.Option(help="Scene mean and displacements, .json.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Contact sheet, .png.")] = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Develop every view of one scene."""
    use_threads(threads)
    from fujinsplat.develop.scene import develop_scene, spread
    from fujinsplat.develop.sheet import contact_sheet
    from fujinsplat.develop.store import Developed
    from fujinsplat.files import write_json
    from fujinsplat.runtime import pick_device

    develop_scene(
        kind,
        out,
        source=source,
        clean=clean,
        base=base,
        controller=controller,
        actions=actions,
        input=input,
        shared=shared,
        K=k,
        M=m,
        device=pick_device(device),
    )
    if summary:
        developed = Developed(out)
        write_json(summary, {"kind": kind, "views": developed.stems, **spread(developed.actions, k, m)})
    if sheet:
        contact_sheet(out, sheet, source)


@app.command()
def sheet(
    developed: Annotated[Path, typer.Argument(help="A developed scene.")],
    out: Annotated[Path, typer.Option(help="Contact sheet, .png.")],
    source: Annotated[Path | None, typer.Option(help="Adds the camera's column.")] = None,
    clean: Annotated[Path | None, typer.Option(help="Adds the clean twins; for the analysis.")] = None,
    views: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 12,
) -> None:
    """A contact sheet: camera, base, corrected, clean twin."""
    from fujinsplat.develop.sheet import contact_sheet

    contact_sheet(developed, out, source, clean, views)
