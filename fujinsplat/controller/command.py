"""`fujinsplat controller`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fujinsplat.core.options import DeviceOption, SettingsOption, ThreadsOption, stage_app
from fujinsplat.core.runtime import use_threads
from fujinsplat.core.settings import ControllerSettings
from fujinsplat.core.validation import stage_settings

app = stage_app("Train the scene-agnostic controller, or import its weights.")


@app.callback()
def _group() -> None:
    pass


@app.command()
def train(
    shards: Annotated[list[Path], typer.Argument(help="All shards of one recipe's observations.")],
    out: Annotated[Path, typer.Option(help="The controller, .safetensors.")],
    losses: Annotated[Path | None, typer.Option(help="Losses of every step, .csv.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Loss curves, .png.")] = None,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Train on synthetic observations: fixed steps, final iterate. A killed run goes on where it stopped."""
    use_threads(threads)
    given = stage_settings(ControllerSettings, settings)
    from fujinsplat.controller.run import train_to_files

    train_to_files(shards, out, losses, figure, given, device)


@app.command(name="import")
def import_(
    weights: Annotated[Path, typer.Argument(help="The authors' weights: a dict of tensors (.pt, .safetensors).")],
    out: Annotated[Path, typer.Option(help="The controller, .safetensors.")],
    input: Annotated[str, typer.Option(help="What the weights were trained on: raw or rgb.")] = "raw",
    k: Annotated[int, typer.Option("--couplings", min=1)] = 7,
    m: Annotated[int, typer.Option("--knots", min=2)] = 16,
    presentations: Annotated[
        int, typer.Option(min=1, max=8, help="How often it looks at a view, turned; 1, the authors': once.")
    ] = 1,
) -> None:
    """Read trained weights, tensors only; nothing in the file is ever executed."""
    from fujinsplat.controller.store import import_weights, save

    save(import_weights(weights, k, m), out, input=input, source="imported", presentations=str(presentations))


@app.command()
def assess(
    results: Annotated[
        Path, typer.Argument(help="A dataset's results folder: capture/, base/, actions/, population.json.")
    ],
    controller: Annotated[
        list[Path], typer.Option(help="A controller; {scene} in its name stands for the scene. May be repeated.")
    ],
    scene: Annotated[list[str], typer.Option(help="A scene. May be repeated.")],
    out: Annotated[Path | None, typer.Option(help="The table, .json.")] = None,
    labels: Annotated[
        Literal["published", "fitted"], typer.Option(help="Compiler of the oracle labels.")
    ] = "published",
    threads: ThreadsOption = None,
) -> None:
    """Compare source views with their clean twins: base, oracle (c, t), controller, expert. Analysis only."""
    use_threads(threads)
    from fujinsplat.controller.assess import assess_files

    assess_files(results, controller, scene, out, labels)
