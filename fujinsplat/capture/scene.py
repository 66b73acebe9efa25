"""Capture one part of a scene: decode its pictures in parallel and write the folder whole or not at all."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fujinsplat.capture.cameras import Camera, read_cameras, same_aspect
from fujinsplat.capture.grid import AspectError, on_one_grid
from fujinsplat.capture.layout import FOLDERS, Scene, View, find_scene, part_views
from fujinsplat.capture.picture import read_rgb, rgb_size
from fujinsplat.capture.points import scene_points, write_points
from fujinsplat.capture.poses import match, read_poses
from fujinsplat.capture.raw import read_raw
from fujinsplat.config import CaptureSettings
from fujinsplat.errors import UserError
from fujinsplat.files import atomic_file, atomic_folder, write_json
from fujinsplat.progress import progress, say

# decoded views in memory at once, however many cores there are
MOST_IN_FLIGHT = 4
T = TypeVar("T")


@dataclass(frozen=True)
class SourceOutputs:
    """What `capture_source` writes: the folder of views and three files."""

    views: Path
    cameras: Path
    points: Path
    manifest: Path


def _in_parallel(function: Callable[[int], T], count: int, threads: int, what: str) -> list[T]:
    """`function(0…count-1)` on a few threads (LibRaw and numpy release the interpreter); the first failure ends it."""
    with ThreadPoolExecutor(max(1, min(threads, count, MOST_IN_FLIGHT))) as pool:
        futures = [pool.submit(function, number) for number in range(count)]
        try:
            return [future.result() for future in progress(futures, what, unit="view")]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _save_png(path: Path, rgb_encoded: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(rgb_encoded).save(path, compress_level=4)


def _decode(view: View, folder: Path, settings: CaptureSettings, size: tuple[int, int] | None) -> dict[str, Any]:
    """Decode one view into `folder`; what views.json and the manifest say about it."""
    raw = read_raw(view.raw, settings)
    rgb, orientation = read_rgb(view.rgb)
    rgb_was = rgb.shape[1], rgb.shape[0]
    try:
        pair = on_one_grid(raw, rgb, size)
    except AspectError:
        raise UserError(
            f"{view.raw} ({raw.size[0]}x{raw.size[1]}) and {view.rgb} ({rgb_was[0]}x{rgb_was[1]}) differ in aspect"
            + (f", or from the {size[0]}x{size[1]} of the source view" if size else "")
            + "; use the uncropped RGB of the same shot"
        ) from None
    notes = raw.notes + pair.notes
    if orientation != 1:
        notes += (f"EXIF orientation {orientation} of the RGB not applied: pixels are used as stored",)
    np.save(folder / f"{view.stem}.npy", pair.raw_linear)
    _save_png(folder / f"{view.stem}.png", pair.rgb_encoded)
    return {
        "stem": view.stem,
        "white_balance": raw.white_balance,
        "camera_matrix": raw.camera_matrix,
        "raw_size": list(raw.size),
        "rgb_size": list(rgb_was),
        "size": [pair.rgb_encoded.shape[1], pair.rgb_encoded.shape[0]],
        "notes": list(notes),
    }


def _write_views(folder: Path, decoded: Sequence[dict[str, Any]]) -> None:
    keys = ("stem", "white_balance", "camera_matrix")
    write_json(folder / "views.json", [{key: item[key] for key in keys} for item in decoded])


def _say_notes(scene: str, part: str, decoded: Sequence[dict[str, Any]]) -> None:
    """One line per part, and one per kind of note with the number of views it holds for."""
    say(f"{scene}: {len(decoded)} {part} views")
    counts: dict[str, int] = {}
    for item in decoded:
        for note in item["notes"]:
            counts[note] = counts.get(note, 0) + 1
    for note, count in counts.items():
        say(f"{scene}: {note} ({count} views)")


def _fitted(camera: Camera, item: dict[str, Any], view: View, where: str) -> Camera:
    """The pose file's camera on the grid that was stored."""
    if not same_aspect((camera.width, camera.height), tuple(item["rgb_size"])):
        raise UserError(
            f"{where} gives {camera.stem} a picture of {camera.width}x{camera.height}, but {view.rgb} has "
            f"{item['rgb_size'][0]}x{item['rgb_size'][1]}; use the pictures that the poses were made from"
        )
    return camera.scaled(*item["size"])


def capture_source(
    root: Path | str, name: str, outputs: SourceOutputs, settings: CaptureSettings, threads: int = 1
) -> None:
    """The smoky source views, the cameras of source and held views, and the points. Opens no clean or held picture."""
    scene = find_scene(root, name)
    views = part_views(scene, "source")
    with ExitStack() as stack:
        # everything is made beside its place and renamed together at the end; this also finds an unwritable place now
        manifest = stack.enter_context(atomic_file(outputs.manifest))
        points = stack.enter_context(atomic_file(outputs.points))
        cameras = stack.enter_context(atomic_file(outputs.cameras))
        folder = stack.enter_context(atomic_folder(outputs.views))

        default_size = rgb_size(views[0].rgb)
        poses = read_poses(scene, default_size)
        where = str(poses.files[0])
        stems = {view.stem.casefold(): view.stem for view in views}
        source = match(poses.source, stems, where, str(scene.rgb_home / FOLDERS["source"]))
        xyz, rgb, points_from = scene_points(scene)

        decoded = _in_parallel(
            lambda i: _decode(views[i], folder, settings, None), len(views), threads, f"{name}: source"
        )
        _write_views(folder, decoded)
        fitted = [_fitted(*args, where) for args in zip(source, decoded, views, strict=True)]
        held = _held_cameras(list(poses.held.values()), source[0], default_size)
        write_json(cameras, {"source": [c.to_json() for c in fitted], "held": [c.to_json() for c in held]})
        write_points(points, xyz, rgb)
        write_json(manifest, _manifest(scene, settings, views, decoded, poses.files, points_from, len(xyz), len(held)))
    _say_notes(name, "source", decoded)


def _held_cameras(held: list[Camera], source: Camera, size: tuple[int, int]) -> list[Camera]:
    """Held cameras on the grid of the camera's pictures, whose size the source RGB tells: held pictures stay shut."""
    scale_x, scale_y = size[0] / source.width, size[1] / source.height
    scaled = [camera.scaled(round(camera.width * scale_x), round(camera.height * scale_y)) for camera in held]
    return sorted(scaled, key=lambda camera: camera.stem.casefold())


def _manifest(
    scene: Scene, settings, views, decoded, pose_files, points_from, points: int, held: int
) -> dict[str, Any]:
    items = []
    for view, item in zip(views, decoded, strict=True):
        about = {key: item[key] for key in ("stem", "raw_size", "rgb_size", "size", "notes")}
        items.append({**about, "raw": scene.relative(view.raw), "rgb": scene.relative(view.rgb)})
    return {
        "scene": scene.name,
        "layout": scene.layout,
        "settings": settings.model_dump(mode="json"),
        "views": items,
        "held_poses": held,
        "poses": [scene.relative(file) for file in pose_files],
        "points": {"from": scene.relative(points_from), "count": points},
    }


def capture_clean(
    root: Path | str, name: str, cameras: Path, out: Path, settings: CaptureSettings, threads: int = 1
) -> None:
    """The clean twins of the source views in `cameras` (cameras.json), on the same grids and under the same stems."""
    scene = find_scene(root, name)
    views = {view.stem.casefold(): view for view in part_views(scene, "clean")}
    source = read_cameras(cameras, "source")
    stems = {camera.stem.casefold() for camera in source}
    for camera in source:
        if camera.stem.casefold() not in views:
            raise UserError(
                f"source view {camera.stem} of {name} has no clean twin in {scene.rgb_home / FOLDERS['clean']}; "
                "add it, or set clean_twins: false for the dataset"
            )
    for key in sorted(views.keys() - stems):
        raise UserError(
            f"{views[key].rgb} is the twin of no source view; remove it or add the source view and its pose"
        )
    with atomic_folder(out) as folder:

        def decode(number: int) -> dict[str, Any]:
            camera = source[number]
            view = views[camera.stem.casefold()]
            return _decode(View(camera.stem, view.rgb, view.raw), folder, settings, (camera.width, camera.height))

        decoded = _in_parallel(decode, len(source), threads, f"{name}: clean")
        _write_views(folder, decoded)
    _say_notes(name, "clean", decoded)


def capture_held(root: Path | str, name: str, cameras: Path, out: Path, threads: int = 1) -> None:
    """The held references in `cameras` (cameras.json): camera RGB alone, at its own size."""
    scene = find_scene(root, name)
    folder_name = str(scene.rgb_home / FOLDERS["held"])
    views = {view.stem.casefold(): view for view in part_views(scene, "held")}
    poses = {camera.stem.casefold(): camera for camera in read_cameras(cameras, "held")}
    stems = {key: poses[key].stem if key in poses else view.stem for key, view in views.items()}
    held = match(poses, stems, f"the pose file of {name}", folder_name)
    with atomic_folder(out) as folder:

        def copy(number: int) -> dict[str, Any]:
            camera = held[number]
            view = views[camera.stem.casefold()]
            rgb, orientation = read_rgb(view.rgb)
            size = rgb.shape[1], rgb.shape[0]
            if not same_aspect(size, (camera.width, camera.height)):
                raise UserError(
                    f"{view.rgb} has {size[0]}x{size[1]} pixels but its pose speaks of {camera.width}x{camera.height}; "
                    "use the pictures that the poses were made from"
                )
            _save_png(folder / f"{camera.stem}.png", rgb)
            notes = [] if orientation == 1 else [f"EXIF orientation {orientation} not applied"]
            return {"stem": camera.stem, "size": list(size), "notes": notes}

        decoded = _in_parallel(copy, len(held), threads, f"{name}: held")
        write_json(folder / "views.json", [{"stem": item["stem"], "size": item["size"]} for item in decoded])
    _say_notes(name, "held", decoded)
