"""`fujinsplat smoke`: estimate, points, show."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import SettingsOption, ThreadsOption, stage_app
from fujinsplat.core.runtime import use_threads

app = stage_app("Measure the smoke of a scene from its own views.")

Source = Annotated[Path, typer.Option("--source", help="The scene's smoky views.")]
Cameras = Annotated[Path, typer.Option("--cameras", help="capture/{scene}/cameras.json; poses only.")]


@app.command()
def estimate(
    source: Source,
    cameras: Cameras,
    points: Annotated[Path, typer.Option(help="Points of the scene, .ply.")],
    out: Annotated[Path, typer.Option(help="The smoke, .safetensors.")],
    numbers: Annotated[Path | None, typer.Option(help="What was measured and how well, .json.")] = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Airlight and transmission of every view; warns where the capture does not determine them."""
    use_threads(threads)
    from fujinsplat.core.files import write_json
    from fujinsplat.core.progress import say
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.smoke.settings import SmokeSettings

    chosen = stage_settings(SmokeSettings, settings)
    from fujinsplat.capture import read_cameras, read_points
    from fujinsplat.smoke.depth import point_depth
    from fujinsplat.smoke.estimation import estimate as measure
    from fujinsplat.smoke.light import hazy_light

    poses = read_cameras(cameras, "source")
    hazy, _ = hazy_light(source, poses)
    depth = point_depth(read_points(points)[0], poses)
    smoke = measure(hazy, poses, depth.z, depth.trusted, chosen)
    smoke.save(out)
    if numbers:
        write_json(numbers, smoke.statistics)
    for words in smoke.statistics["words"]:
        say(f"warning: {words}")
    low, high = min(smoke.statistics["transmission"]), max(smoke.statistics["transmission"])
    say(f"{len(smoke)} views, transmission {low:.2f}-{high:.2f}")


@app.command()
def points(
    source: Source,
    cameras: Cameras,
    out: Annotated[Path, typer.Option(help="The points, .ply.")],
    threads: ThreadsOption = None,
) -> None:
    """Points triangulated from the smoky views alone, with the known poses."""
    use_threads(threads)
    from fujinsplat.capture import read_cameras, write_points
    from fujinsplat.core.progress import say
    from fujinsplat.smoke.light import hazy_light
    from fujinsplat.smoke.triangulate import points_from_views

    poses = read_cameras(cameras, "source")
    xyz, rgb = points_from_views(hazy_light(source, poses)[0], poses)
    write_points(out, xyz, rgb)
    say(f"{len(xyz)} points in {out}")


@app.command()
def show(
    smoke: Annotated[Path, typer.Argument(help="smoke/{scene}.safetensors")],
    source: Source,
    cameras: Cameras,
    base: Annotated[Path, typer.Option(help="The scene's Base ISP, for the camera's colours.")],
    out: Annotated[Path, typer.Option(help="The picture, .png; NAME.airlight.png stands beside it.")],
) -> None:
    """Draw an estimate: hazy and cleared views, transmission, trust; and the airlight's fit."""
    from fujinsplat.smoke.figure import write_figures

    for path in write_figures(smoke, source, cameras, base, out):
        typer.echo(str(path))
