"""`fujinsplat splat`: train, render."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.errors import UserError
from fujinsplat.options import DeviceOption, SettingsOption, ThreadsOption, stage_app

app = stage_app("Train, render and export Gaussians.")


@app.command()
def train(
    developed: Annotated[Path, typer.Option(help="developed/{scene}/{variant}.safetensors")],
    cameras: Annotated[Path, typer.Option(help="capture/{scene}/cameras.json; poses only")],
    points: Annotated[Path, typer.Option(help="capture/{scene}/points.ply")],
    out: Annotated[Path, typer.Option(help="3DGS PLY for viewers")],
    model: Annotated[Path, typer.Option(help="our linear model (.safetensors), which `render` reads")],
    log: Annotated[Path, typer.Option(help="training log, JSON lines")],
    alpha: Annotated[Path, typer.Option(help="the delta-ISP's scalars, JSON")],
    checkpoints: Annotated[Path, typer.Option(help="folder to resume from; removed after success")],
    delta: Annotated[bool, typer.Option(help="reconcile the views with the delta-ISP")] = True,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Reconstruct one scene from its developed views, and export it. Killed at any time, the next call continues."""
    from fujinsplat.config import SplatSettings
    from fujinsplat.configfile import stage_settings
    from fujinsplat.runtime import pick_device, use_threads

    chosen = stage_settings(SplatSettings, settings)
    use_threads(threads)
    from fujinsplat.splat.job import Outputs, run
    from fujinsplat.splat.train import Inputs

    run(
        Inputs(developed, cameras, points, delta),
        Outputs(out, model, log, alpha),
        chosen,
        checkpoints,
        pick_device(device),
    )


@app.command()
def render(
    model: Annotated[Path, typer.Option(help="the linear model (.safetensors)")],
    cameras: Annotated[Path, typer.Option(help="capture/{scene}/cameras.json; poses only")],
    out: Annotated[Path, typer.Option(help="folder of PNGs, replaced as a whole")],
    views: Annotated[
        str, typer.Option(help="held, source, or path (a smooth round through the source cameras)")
    ] = "held",
    frames: Annotated[int, typer.Option(min=1, help="pictures of --views path")] = 120,
    width: Annotated[int | None, typer.Option(min=1, help="picture width (default: the camera's own)")] = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Pictures of a trained scene. Poses and intrinsics are all it reads besides the model."""
    from fujinsplat.runtime import pick_device, use_threads

    use_threads(threads)
    from fujinsplat.capture import read_cameras
    from fujinsplat.progress import say
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
    gaussians = Gaussians.load(model, pick_device(device))
    count = render_folder(gaussians, [resized(camera, width) for camera in chosen], out)
    say(f"{count} pictures of {len(gaussians)} Gaussians in {out}")
