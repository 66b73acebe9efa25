"""`fujinsplat export`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import DeviceOption, ThreadsOption, stage_app
from fujinsplat.core.runtime import use_threads

app = stage_app("Cleared views for other programs, a turntable, a page of one scene.")

Cameras = Annotated[Path, typer.Option(help="cameras.json of the scene.")]
Points = Annotated[Path, typer.Option(help="points.ply of the scene.")]


@app.command()
def dataset(
    views: Annotated[Path, typer.Option(help="The pictures of the row's front.")],
    developed: Annotated[Path, typer.Option(help="The row's colour actions.")],
    cameras: Cameras,
    points: Points,
    out: Annotated[Path, typer.Option(help="Folder for images/, sparse/0 and transforms.json.")],
    tiff: Annotated[bool, typer.Option(help="16-bit linear TIFF files beside the PNG files.")] = False,
    source: Annotated[Path | None, typer.Option(help="The smoky views, for --tiff with --smoke.")] = None,
    smoke: Annotated[Path | None, typer.Option(help="The scene's estimated smoke, for --tiff.")] = None,
    threads: ThreadsOption = None,
) -> None:
    """The cleared views as a dataset for nerfstudio, gsplat and their like."""
    use_threads(threads)
    from fujinsplat.core.progress import say
    from fujinsplat.export.dataset import linear_light, write_dataset

    linear = linear_light(source or Path(), smoke if source else None) if tiff else None
    say(f"{write_dataset(views, developed, cameras, points, out, linear)} cleared views in {out}")


@app.command()
def scene(
    gaussians: Annotated[Path, typer.Argument(help="The row's PLY.")],
    cameras: Cameras,
    out: Annotated[Path, typer.Option(help="The PLY, upright.")],
) -> None:
    """The Gaussians upright, whatever the frame of the poses."""
    from fujinsplat.core.progress import say
    from fujinsplat.export.scene import write_scene

    if angle := write_scene(gaussians, cameras, out):
        say(f"scene.ply is turned upright by {angle:.0f} degrees; cleared/ keeps the axes of the given poses")


@app.command()
def turntable(
    model: Annotated[Path, typer.Option(help="the linear model (.safetensors)")],
    cameras: Cameras,
    out: Annotated[Path, typer.Option(help="An animated GIF.")],
    frames: Annotated[int, typer.Option(min=2, help="pictures of one turn")] = 48,
    width: Annotated[int, typer.Option(min=16, help="picture width")] = 480,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """A short film around the scene."""
    use_threads(threads)
    from fujinsplat.capture import read_cameras
    from fujinsplat.core.runtime import pick_device
    from fujinsplat.export.turntable import write_turntable
    from fujinsplat.splat.model import Gaussians

    write_turntable(Gaussians.load(model, pick_device(device)), read_cameras(cameras), out, frames, width)


@app.command()
def page(
    scene: Annotated[str, typer.Argument(help="The scene's name.")],
    source: Annotated[Path, typer.Option(help="The smoky views.")],
    cleared: Annotated[Path, typer.Option(help="What `export dataset` wrote.")],
    renders: Annotated[Path, typer.Option(help="Renders at the source poses.")],
    cameras: Cameras,
    points: Points,
    manifest: Annotated[Path, typer.Option(help="manifest.json of the capture stage.")],
    out: Annotated[Path, typer.Option(help="The page.")],
    row: Annotated[str, typer.Option(help="The row's title.")] = "",
    poses: Annotated[Path | None, typer.Option(help="The folder of found poses, where there is one.")] = None,
    smoke: Annotated[Path | None, typer.Option(help="The scene's estimated smoke, where there is one.")] = None,
    turntable: Annotated[Path | None, typer.Option(help="The turntable.")] = None,
    notes: Annotated[Path | None, typer.Option(help="What was left out of the folder (JSON list).")] = None,
) -> None:
    """One page about one scene: before and after, smoke, cameras, what was left out."""
    from fujinsplat.export.page import Inputs, write_page

    given = Inputs(source, cleared, renders, cameras, points, manifest, poses, smoke, turntable, notes)
    write_page(scene, row, given, out)
