"""`fujinsplat splat`: train, render."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.errors import UserError
from fujinsplat.core.options import DeviceOption, InputsOption, SettingsOption, ThreadsOption, named_paths, stage_app

app = stage_app("Train, render and export Gaussians.")


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="3DGS PLY for viewers")],
    model: Annotated[Path, typer.Option(help="our linear model (.safetensors), which `render` reads")],
    log: Annotated[Path, typer.Option(help="training log, JSON lines")],
    reconciled: Annotated[Path, typer.Option(help="what stays of the reconciliation, JSON")],
    checkpoints: Annotated[Path, typer.Option(help="folder to resume from; removed after success")],
    inputs: InputsOption = None,
    front: Annotated[str, typer.Option(help="the pictures the row starts from: a part of the kind `front`")] = "base",
    model_part: Annotated[str, typer.Option(help="what is optimised: a part of the kind `model`")] = "gaussians",
    reconcile: Annotated[str, typer.Option(help="what makes the views agree: a part of the kind `reconcile`")] = "none",
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Reconstruct one scene from its developed views, and export it. Killed at any time, the next call continues."""
    from fujinsplat.core.runtime import pick_device, use_threads
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.rows.registries import AllSettings
    from fujinsplat.splat.models import MODELS
    from fujinsplat.splat.reconcilers import RECONCILERS
    from fujinsplat.views.fronts import FRONTS

    given = stage_settings(AllSettings, settings)
    parts = (MODELS[model_part], RECONCILERS[reconcile])
    opened = (*(part.opens(given) for part in parts), FRONTS[front].trains_on(given))
    needs = tuple(dict.fromkeys(need for needs in opened for need in needs))
    paths = named_paths(inputs, ("views", "developed", *needs), f"training {model_part} with reconcile {reconcile}")
    use_threads(threads)
    from fujinsplat.splat.job import Outputs, run
    from fujinsplat.splat.train import Composition, Inputs

    run(
        Inputs(paths),
        Outputs(out, model, log, reconciled),
        Composition.of(given, front, model_part, reconcile),
        checkpoints,
        pick_device(device),
    )


@app.command()
def render(
    model: Annotated[Path, typer.Option(help="the linear model (.safetensors)")],
    cameras: Annotated[Path, typer.Option(help="capture/{scene}/cameras.json; poses only")],
    out: Annotated[Path, typer.Option(help="folder of PNGs; replaced as a whole, unless it holds anything else")],
    views: Annotated[
        str, typer.Option(help="held, source, or path (a smooth round through the source cameras)")
    ] = "held",
    frames: Annotated[int, typer.Option(min=1, help="pictures of --views path")] = 120,
    width: Annotated[int | None, typer.Option(min=1, help="picture width (default: the camera's own)")] = None,
    medium: Annotated[bool, typer.Option("--medium", help="through the model's medium instead of without it")] = False,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Pictures of a trained scene. Poses and intrinsics are all it reads besides the model."""
    from fujinsplat.core.runtime import pick_device, use_threads

    use_threads(threads)
    from fujinsplat.capture import read_cameras
    from fujinsplat.core.progress import say
    from fujinsplat.splat.foreign import copy_folder, stored_pictures
    from fujinsplat.splat.model import Gaussians
    from fujinsplat.splat.path import camera_path
    from fujinsplat.splat.render import render_folder, resized

    if views not in ("held", "source", "path"):
        raise UserError(f"--views is {views!r}; choose held, source or path")
    chosen = read_cameras(cameras, "held" if views == "held" else "source")
    if views == "path":
        chosen = camera_path(chosen, frames)
    if not chosen:
        raise UserError(f"{cameras} has no {views} cameras; choose other --views")
    kept = stored_pictures(model, "medium" if medium else "clean")
    if kept is not None:
        say(f"{copy_folder(kept, [camera.stem for camera in chosen], model, out)} pictures of another program in {out}")
        return
    gaussians = Gaussians.load(model, pick_device(device))
    count = render_folder(gaussians, [resized(camera, width) for camera in chosen], out, medium)
    say(f"{count} pictures of {len(gaussians)} Gaussians in {out}")
