"""Capture one part of a scene: decode its pictures in parallel and write the folder whole or not at all."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fujinsplat.capture.cameras import Camera, read_cameras, same_aspect
from fujinsplat.capture.frame import EXIF_TURNS, read_frame, stored_size
from fujinsplat.capture.grid import limited, resize_rgb
from fujinsplat.capture.layout import FOLDERS, Scene, View, find_scene, folded, part_views
from fujinsplat.capture.lens import straighten_raw, straighten_rgb
from fujinsplat.capture.pairs import Alignment, Thumb, fit, light_of, measure, moved_places, thumb, wrong_pairs
from fujinsplat.capture.parallel import each_view
from fujinsplat.capture.picture import read_rgb
from fujinsplat.capture.points import scene_points, write_points
from fujinsplat.capture.poses import match, match_source, read_poses
from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, atomic_folder, read_json, write_json
from fujinsplat.core.progress import say
from fujinsplat.core.settings import CaptureSettings

DECODED = (".npy", ".png", ".json")  # what folders of views hold
# RAW and RGB are compared on so many views, at this size
ALIGNED_ON, ALIGNED_SIDE = 5, 1000
# views are cut to a common size where each keeps this share of its area: 4:3 beside 16:9 keeps three quarters
ONE_SIZE = 0.74


@dataclass(frozen=True)
class SourceOutputs:
    """What `capture_source` writes: the folder of views and three files."""

    views: Path
    cameras: Path
    points: Path
    manifest: Path


def _save_png(path: Path, rgb_encoded: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(rgb_encoded).save(path, compress_level=4)


@dataclass(frozen=True)
class _Part:
    """What holds for every view of a part: `alignment` of RAW and RGB, and which of the two the poses speak of."""

    folder: Path
    poses: str  # where they came from, for messages
    settings: CaptureSettings
    alignment: Alignment | None
    poses_of_raw: bool


def _decode(part: _Part, view: View, camera: Camera, twin: bool) -> tuple[dict[str, Any], Thumb | None]:
    """Decode one view into the part's folder; what views.json and the manifest say about it. A clean twin gets the grid
    that its source view has."""
    size = camera.photograph if twin else None
    frame = read_frame(view, part.settings, size, part.settings.max_side, camera.photograph)
    if not same_aspect(camera.photograph, frame.size):
        raise UserError(
            f"{part.poses} gives {camera.stem} a picture of {camera.photograph[0]}x{camera.photograph[1]}, but "
            f"{view.rgb or view.raw} has {frame.rgb_size[0]}x{frame.rgb_size[1]}; "
            "use the pictures that the poses were made from"
        )
    raw_linear, rgb_encoded, notes = frame.raw_linear, frame.rgb_encoded, frame.notes
    if part.alignment is not None:
        raw_linear, rgb_encoded = _aligned(part.alignment, part.poses_of_raw, raw_linear, rgb_encoded)
        moved = "RGB moved onto the RAW" if part.poses_of_raw else "RAW moved onto the RGB"
        notes += (f"the camera corrects its lens in the RGB: {moved} by up to {part.alignment.largest:.1f} pixels",)
    small = thumb(view, raw_linear, rgb_encoded)
    fitted = camera if twin else camera.straightened(*frame.size)
    if fitted.lens is not None:
        raw_linear, rgb_encoded = straighten_raw(fitted.lens, raw_linear), straighten_rgb(fitted.lens, rgb_encoded)
        notes += (f"{fitted.lens.model} lens straightened",)
    if fitted.cut is not None:
        left, top = fitted.cut[:2]
        inside = slice(top, top + fitted.height), slice(left, left + fitted.width)
        raw_linear, rgb_encoded = raw_linear[inside], rgb_encoded[inside]
    np.save(part.folder / f"{view.stem}.npy", raw_linear)
    _save_png(part.folder / f"{view.stem}.png", rgb_encoded)
    item = {
        "stem": view.stem,
        "white_balance": frame.white_balance,
        "camera_matrix": frame.camera_matrix,
        "raw_size": list(frame.raw_size),
        "rgb_size": list(frame.rgb_size),
        "size": [rgb_encoded.shape[1], rgb_encoded.shape[0]],
        "turns": frame.turns,
        "notes": list(notes),
        "camera": replace(fitted, turns=frame.turns),
    }
    return item, small


def _aligned(
    alignment: Alignment, poses_of_raw: bool, raw_linear: np.ndarray, rgb_encoded: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """RAW and RGB pixel on pixel: the one that the poses do not speak of is moved, in linear light."""
    from fujinsplat.capture.resample import cubic

    height, width = raw_linear.shape[:2]
    places = moved_places(alignment, width, height, inverse=poses_of_raw)
    if not poses_of_raw:
        moved = cubic(raw_linear, places, 1, width, height, np.float32(65535))
        return np.rint(moved).astype(np.uint16), rgb_encoded
    moved = cubic(light_of(rgb_encoded), places, 1, width, height, np.float32(1))
    return raw_linear, np.rint(encode(moved.astype(np.float64)) * 255).astype(np.uint8)


def find_alignment(
    views: Sequence[View], cameras: Sequence[Camera], settings: CaptureSettings, threads: int = 1
) -> Alignment | None:
    """One alignment of RAW and RGB for all views of a scene, measured on a few of them; None where the two lie on one
    another already, where there is nothing to compare, or where no lens correction explains the difference."""
    both = [(view, camera) for view, camera in zip(views, cameras, strict=True) if view.raw and view.rgb]
    chosen = [both[i] for i in sorted({round(i) for i in np.linspace(0, len(both) - 1, ALIGNED_ON)})] if both else []

    def places(number: int) -> tuple[np.ndarray, tuple[int, int]]:
        view, camera = chosen[number]
        frame = read_frame(view, settings, max_side=ALIGNED_SIDE, shape=camera.photograph)  # lying as it is decoded
        return measure(frame.raw_linear, frame.rgb_encoded), frame.size

    measured = each_view(places, len(chosen), threads, "RAW against RGB")
    if not measured:
        return None
    size = measured[0][1]
    found = fit(np.concatenate([rows for rows, other in measured if other == size]), size)
    if found is None or not found.needed:
        return None
    if found.residual > 0.5 * found.largest:
        say(
            f"RAW and RGB lie up to {found.largest:.1f} pixels apart (of {size[0]}x{size[1]}) in a way that no lens "
            "correction explains; they are used as they are"
        )
        return None
    say(f"the camera corrects its lens in the RGB alone: {found.describe()}; the two are aligned")
    return found


def _cut_to_one_size(folder: Path, decoded: Sequence[dict[str, Any]]) -> None:
    """Views of nearly one size (two lenses straightened, a border more or less) are cut to one, about their middle;
    where that would lose much, each keeps its own."""
    from PIL import Image

    width, height = (min(item["size"][axis] for item in decoded) for axis in (0, 1))
    if any(width * height < ONE_SIZE * item["size"][0] * item["size"][1] for item in decoded):
        return
    for item in decoded:
        camera = item["camera"]
        if (camera.width, camera.height) == (width, height):
            continue
        left, top = (camera.width - width) // 2, (camera.height - height) // 2
        files = folder / f"{item['stem']}.npy", folder / f"{item['stem']}.png"
        np.save(files[0], np.load(files[0])[top : top + height, left : left + width])
        with Image.open(files[1]) as image:
            rgb_encoded = np.array(image)[top : top + height, left : left + width]
        _save_png(files[1], rgb_encoded)
        K = camera.K - np.array([[0, 0, left], [0, 0, top], [0, 0, 0]])
        item["camera"] = replace(camera, width=width, height=height, K=K, cut=(left, top, camera.width, camera.height))
        item["size"] = [width, height]
        item["notes"].append(f"cut from {camera.width}x{camera.height} to the scene's common {width}x{height}")


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


def _decoded(
    part: _Part, views: Sequence[View], cameras: Sequence[Camera], threads: int, what: str, twins: bool = False
) -> list[dict[str, Any]]:
    """Every view of a part, and then whether each RAW and RGB belong together."""
    compared = (lambda done: wrong_pairs([small for _, small in done])) if part.settings.check_pairs else None
    done = each_view(lambda i: _decode(part, views[i], cameras[i], twins), len(views), threads, what, compared)
    return [item for item, _ in done]


def capture_source(
    root: Path | str,
    name: str,
    outputs: SourceOutputs,
    settings: CaptureSettings,
    threads: int = 1,
    found: Path | None = None,
) -> None:
    """The smoky source views, the cameras of source and held views, and the points. Opens no clean or held picture.

    `found`: the folder in which structure from motion left its model, for scenes that bring no poses or points.
    """
    scene = find_scene(root, name)
    views = part_views(scene, "source")
    if len(views) < 2:
        raise UserError(
            f"{scene.rgb_home / FOLDERS['source']} holds one view, and a scene needs at least two; "
            "add photographs from other positions"
        )
    with ExitStack() as stack:
        # everything is made beside its place and renamed together at the end; this also finds an unwritable place now
        manifest = stack.enter_context(atomic_file(outputs.manifest))
        points = stack.enter_context(atomic_file(outputs.points))
        cameras = stack.enter_context(atomic_file(outputs.cameras))
        folder = stack.enter_context(atomic_folder(outputs.views, DECODED))

        default_size = stored_size(views[0])
        poses = read_poses(scene, default_size, found)
        where = str(poses.files[0])
        stems = {folded(view.stem): view.stem for view in views}
        source, dropped = match_source(poses, stems, where, str(scene.rgb_home / FOLDERS["source"]), settings)
        views = [view for view in views if folded(view.stem) not in dropped]
        xyz, rgb, points_from = scene_points(scene, found)

        alignment = find_alignment(views, source, settings, threads) if settings.check_pairs else None
        part = _Part(folder, where, settings, alignment, poses.of_raw)
        decoded = _decoded(part, views, source, threads, f"{name}: source")
        _cut_to_one_size(folder, decoded)
        _write_views(folder, decoded)
        held = _held_cameras(list(poses.held.values()), source[0], default_size, settings.max_side)
        fitted = [item["camera"] for item in decoded]
        write_json(cameras, {"source": [c.to_json() for c in fitted], "held": [c.to_json() for c in held]})
        write_points(points, xyz, rgb)
        about = _manifest(scene, settings, views, decoded, poses.files, points_from, len(xyz), len(held))
        aligned = None if alignment is None else asdict(alignment) | {"onto": "raw" if poses.of_raw else "rgb"}
        write_json(manifest, about | {"dropped": dict(sorted(dropped.items())), "alignment": aligned})
    _say_notes(name, "source", decoded)
    for stem, reason in sorted(dropped.items()):
        say(f"{name}: {stems[stem]} is left out: {reason}")


def _held_cameras(held: list[Camera], source: Camera, size: tuple[int, int], max_side: int | None) -> list[Camera]:
    """Held cameras on the grid of the camera's pictures, whose size the source RGB tells: held pictures stay shut."""
    scale_x, scale_y = size[0] / source.width, size[1] / source.height
    grids = [limited((round(camera.width * scale_x), round(camera.height * scale_y)), max_side) for camera in held]
    scaled = [camera.straightened(*grid) for camera, grid in zip(held, grids, strict=True)]
    return sorted(scaled, key=lambda camera: folded(camera.stem))


def _manifest(
    scene: Scene, settings, views, decoded, pose_files, points_from, points: int, held: int
) -> dict[str, Any]:
    items = []
    for view, item in zip(views, decoded, strict=True):
        about = {key: item[key] for key in ("stem", "raw_size", "rgb_size", "size", "turns", "notes")}
        files = {kind: file and scene.relative(file) for kind, file in (("raw", view.raw), ("rgb", view.rgb))}
        items.append(about | files)
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
    views = {folded(view.stem): view for view in part_views(scene, "clean")}
    source = read_cameras(cameras, "source")
    stems = {folded(camera.stem) for camera in source}
    for camera in source:
        if folded(camera.stem) not in views:
            raise UserError(
                f"source view {camera.stem} of {name} has no clean twin in {scene.rgb_home / FOLDERS['clean']}; "
                "add it, or set clean_twins: false for the dataset"
            )
    left_out = _left_out(cameras)
    for key in sorted(views.keys() - stems - left_out):
        raise UserError(
            f"{views[key].rgb} is the twin of no source view; remove it or add the source view and its pose"
        )
    twins = [replace(views[folded(camera.stem)], stem=camera.stem) for camera in source]
    with atomic_folder(out, DECODED) as folder:
        alignment, of_raw = _read_alignment(cameras)
        part = _Part(folder, str(cameras), settings, alignment, of_raw)
        decoded = _decoded(part, twins, source, threads, f"{name}: clean", twins=True)
        _write_views(folder, decoded)
    _say_notes(name, "clean", decoded)


def _left_out(cameras: Path) -> set[str]:
    """The source views (folded stems) that have no pose and were left out: their twins may stay."""
    manifest = Path(cameras).with_name("manifest.json")
    return set((read_json(manifest) if manifest.is_file() else {}).get("dropped", {}))


def _read_alignment(cameras: Path) -> tuple[Alignment | None, bool]:
    """The source views' alignment of RAW and RGB, from the manifest beside cameras.json."""
    manifest = Path(cameras).with_name("manifest.json")
    value = (read_json(manifest) if manifest.is_file() else {}).get("alignment")
    if not value:
        return None, False
    names = ("zoom", "bend", "largest", "residual")
    return Alignment(tuple(value["shift"]), *(value[name] for name in names)), value["onto"] == "raw"


def capture_held(root: Path | str, name: str, cameras: Path, out: Path, threads: int = 1) -> None:
    """The held references in `cameras` (cameras.json): camera RGB alone, at its own size."""
    scene = find_scene(root, name)
    folder_name = str(scene.rgb_home / FOLDERS["held"])
    views = {folded(view.stem): view for view in part_views(scene, "held")}
    poses = {folded(camera.stem): camera for camera in read_cameras(cameras, "held")}
    stems = {key: poses[key].stem if key in poses else view.stem for key, view in views.items()}
    held = match(poses, stems, f"the pose file of {name}", folder_name)
    with atomic_folder(out, DECODED) as folder:

        def copy(number: int) -> dict[str, Any]:
            camera = held[number]
            view = views[folded(camera.stem)]
            assert view.rgb is not None  # held views are camera RGB
            rgb, orientation = read_rgb(view.rgb)
            size, wanted = (rgb.shape[1], rgb.shape[0]), camera.photograph
            notes = [] if orientation == 1 else [f"EXIF orientation {orientation} not applied"]
            if not same_aspect(size, wanted) and same_aspect(size[::-1], wanted) and EXIF_TURNS.get(orientation, 0) % 2:
                rgb = np.ascontiguousarray(np.rot90(rgb, EXIF_TURNS[orientation]))
                size, notes = size[::-1], [f"turned upright as EXIF orientation {orientation} says"]
            if not same_aspect(size, wanted):
                raise UserError(
                    f"{view.rgb} has {size[0]}x{size[1]} pixels but its pose speaks of {wanted[0]}x{wanted[1]}; "
                    "use the pictures that the poses were made from"
                )
            if camera.lens is not None or size[0] > wanted[0]:
                rgb = rgb if size == wanted else resize_rgb(rgb, wanted)
            if camera.lens is not None:
                rgb = straighten_rgb(camera.lens, rgb)
                notes.append(f"{camera.lens.model} lens straightened")
            size = rgb.shape[1], rgb.shape[0]
            _save_png(folder / f"{camera.stem}.png", rgb)
            return {"stem": camera.stem, "size": list(size), "notes": notes}

        decoded = each_view(copy, len(held), threads, f"{name}: held")
        write_json(folder / "views.json", [{"stem": item["stem"], "size": item["size"]} for item in decoded])
    _say_notes(name, "held", decoded)
