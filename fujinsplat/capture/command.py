"""`fujinsplat capture`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import SettingsOption, ThreadsOption, stage_app

app = stage_app("Decode a scene once: linear RAW, camera RGB, cameras, points.")

Root = Annotated[Path, typer.Argument(help="The dataset's folder.")]
SceneName = Annotated[str, typer.Argument(help="The scene's name.")]
Cameras = Annotated[Path, typer.Option(help="cameras.json that `capture source` wrote.")]


def _prepare(settings: str | None, threads: int | None):
    """(settings, views decoded at once). Each of them is one thread's work, so LibRaw itself gets one."""
    from fujinsplat.core.runtime import use_threads
    from fujinsplat.core.settings import CaptureSettings
    from fujinsplat.core.validation import stage_settings

    workers = use_threads(threads)
    use_threads(1)
    return stage_settings(CaptureSettings, settings), workers


@app.command()
def source(
    root: Root,
    scene: SceneName,
    out: Annotated[Path | None, typer.Option(help="Folder for everything whose place is not named below.")] = None,
    views: Annotated[Path | None, typer.Option(help="Folder of the source views [OUT/source].")] = None,
    cameras: Annotated[Path | None, typer.Option(help="Poses and intrinsics [OUT/cameras.json].")] = None,
    points: Annotated[Path | None, typer.Option(help="Point cloud [OUT/points.ply].")] = None,
    manifest: Annotated[Path | None, typer.Option(help="Where everything came from [OUT/manifest.json].")] = None,
    found: Annotated[
        Path | None, typer.Option(help="What `fujinsplat capture poses` made, for a scene without poses or points.")
    ] = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """The smoky source views, the cameras of source and held views, and the points."""
    from fujinsplat.core.errors import UserError

    if out is not None:
        views, cameras = views or out / "source", cameras or out / "cameras.json"
        points, manifest = points or out / "points.ply", manifest or out / "manifest.json"
    if views is None or cameras is None or points is None or manifest is None:
        raise UserError("name the output folder with --out, or all of --views, --cameras, --points and --manifest")
    chosen, workers = _prepare(settings, threads)
    from fujinsplat.capture.decode import SourceOutputs, capture_source

    capture_source(root, scene, SourceOutputs(views, cameras, points, manifest), chosen, workers, found)


@app.command()
def poses(
    root: Root,
    scene: SceneName,
    out: Annotated[Path, typer.Option(help="Folder of the COLMAP model and poses.json.")],
    settings: SettingsOption = None,
    motion: Annotated[
        str | None, typer.Option(help="What differs from the defaults of structure from motion: JSON, or a YAML file.")
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Poses, lenses and points of a scene that brings none; only the points where it brings poses."""
    from fujinsplat.core.runtime import use_threads
    from fujinsplat.core.settings import CaptureSettings, MotionSettings
    from fujinsplat.core.validation import stage_settings

    chosen, how = stage_settings(CaptureSettings, settings), stage_settings(MotionSettings, motion)
    workers = use_threads(threads)
    from fujinsplat.capture.motion.find import find_scene_poses

    find_scene_poses(root, scene, out, how, chosen, workers)


@app.command()
def clean(
    root: Root,
    scene: SceneName,
    cameras: Cameras,
    out: Annotated[Path, typer.Option(help="Folder of the clean twins.")],
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """The clean twins of the source views."""
    chosen, workers = _prepare(settings, threads)
    from fujinsplat.capture.decode import capture_clean

    capture_clean(root, scene, cameras, out, chosen, workers)


@app.command()
def held(
    root: Root,
    scene: SceneName,
    cameras: Cameras,
    out: Annotated[Path, typer.Option(help="Folder of the held references.")],
    threads: ThreadsOption = None,
) -> None:
    """The held references: camera RGB alone."""
    _, workers = _prepare(None, threads)
    from fujinsplat.capture.decode import capture_held

    capture_held(root, scene, cameras, out, workers)
