"""Poses and intrinsics of a scene's views: from `transforms_*.json`, or else from its COLMAP model.

A pose names its picture by a path with or without folders and extension; only the stem counts, and its case does not.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from fujinsplat.capture.cameras import OPENGL_TO_OPENCV, Camera, intrinsics, rigid
from fujinsplat.capture.layout import (
    DECODED_SUFFIXES,
    FOUND_POSES,
    RAW_SUFFIXES,
    RGB_SUFFIXES,
    Scene,
    colmap_folder,
    folded,
    has_poses,
    part_stems,
    transforms_files,
)
from fujinsplat.capture.lens import Lens
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.settings import CaptureSettings

DISTORTION = ("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")


@dataclass(frozen=True)
class Poses:
    """Cameras by folded stem, in pixels of the size the pose file speaks of (None in `size`: the picture's own)."""

    source: dict[str, Camera]
    held: dict[str, Camera]
    files: tuple[Path, ...]
    complete: bool = False  # the file is the source views' own: every one of them has to be in it
    of_raw: bool = False  # made from the RAW files, not from the camera's RGB


def picture_stem(name: str) -> str:
    """The stem a pose means: `./train/0001`, `images\\0001.JPG` and `0001.png` all mean 0001."""
    path = PurePosixPath(str(name).replace("\\", "/"))
    known = path.suffix.lower() in RGB_SUFFIXES | RAW_SUFFIXES | DECODED_SUFFIXES
    return path.stem if known else path.name


def read_poses(scene: Scene, default_size: tuple[int, int], found: Path | None = None) -> Poses:
    """The poses of source and held views. `default_size` (width, height) is the source RGB's: it holds for pose files
    that give no size of their own. `found`: the model that structure from motion made of the scene, which a scene that
    brings poses of its own does not need."""
    transforms = transforms_files(scene)
    if found is not None and not has_poses(scene):
        from fujinsplat.capture.colmap import colmap_cameras

        about = read_json(found / FOUND_POSES)
        poses = _split(scene, colmap_cameras(found), (found,))
        return replace(poses, of_raw=bool(about.get("of_raw")))
    if "source" in transforms:
        held = read_transforms(transforms["held"], default_size) if "held" in transforms else {}
        files = tuple(transforms[part] for part in ("source", "held") if part in transforms)
        return Poses(read_transforms(transforms["source"], default_size), held, files, complete=True)
    if "all" in transforms:
        file = transforms["all"]
        return _split(scene, read_transforms(file, default_size), (file,))
    folder = colmap_folder(scene)
    if folder is None:
        raise UserError(f"{scene.rgb_home} has no transforms_train.json and no COLMAP model in sparse/0; add one")
    from fujinsplat.capture.colmap import colmap_cameras

    return _split(scene, colmap_cameras(folder), (folder,))


def _split(scene: Scene, cameras: dict[str, Camera], files: tuple[Path, ...]) -> Poses:
    """One model for all views: which part a view belongs to follows from the folder its picture's name is in."""
    source, held = part_stems(scene, "source"), part_stems(scene, "held")
    both = sorted(source.keys() & held.keys())
    if both:
        raise UserError(
            f"{source[both[0]]} is the name of a source view and of a held view, so one pose file cannot tell them "
            f"apart; rename one in {scene.rgb_home}, or give transforms_train.json and transforms_test.json"
        )
    for key, camera in cameras.items():
        if key not in source and key not in held:
            raise UserError(
                f"{files[0]} has a pose for {camera.stem} but neither train/ nor test/ has that picture; add the "
                "picture or remove the pose"
            )
    return Poses(
        {key: camera for key, camera in cameras.items() if key in source},
        {key: camera for key, camera in cameras.items() if key in held},
        files,
    )


def by_stem(named: Iterable[tuple[str, Camera]], source: Path) -> dict[str, Camera]:
    """Cameras by folded stem, from the names that `source` gives their pictures."""
    cameras: dict[str, Camera] = {}
    names: dict[str, str] = {}
    for name, camera in named:
        key = folded(camera.stem)
        if key in cameras:
            raise UserError(
                f"{source}, frame {camera.stem} stands there twice (as {names[key]} and {name}; folders and case do "
                "not count here); remove one of the two, or rename it there and its picture"
            )
        cameras[key], names[key] = camera, name
    return cameras


def read_transforms(path: Path, default_size: tuple[int, int]) -> dict[str, Camera]:
    """Cameras of one transforms file by folded stem."""
    return by_stem(named_transforms(path, default_size), path)


def named_transforms(path: Path, default_size: tuple[int, int]) -> list[tuple[str, Camera]]:
    """(a picture's name as it stands there, its camera) of one transforms file (OpenGL camera-to-world)."""
    value = read_json(path)
    frames = value.get("frames") if isinstance(value, dict) else None
    if not isinstance(frames, list) or not frames:
        raise UserError(f"{path} has no list of frames; export it again from the structure from motion")
    cameras: list[tuple[str, Camera]] = []
    for number, frame in enumerate(frames):
        if not isinstance(frame, dict) or "file_path" not in frame or "transform_matrix" not in frame:
            raise UserError(f"{path}, frame {number} lacks file_path or transform_matrix; export it again")
        stem = picture_stem(frame["file_path"])
        where = f"{path}, frame {stem}"
        camera_to_world = rigid(frame["transform_matrix"], where) @ OPENGL_TO_OPENCV
        width, height, K, lens = _frame_intrinsics({**value, **frame}, default_size, where)
        camera = Camera(stem, width, height, K, np.linalg.inv(camera_to_world), lens)
        cameras.append((str(frame["file_path"]), camera))
    return cameras


def _frame_intrinsics(values: dict, default_size: tuple[int, int], where: str):
    """(width, height, K, lens) from a frame's values over the file's: `fl_x fl_y cx cy`, or `camera_angle_x`, and
    distortion in nerfstudio's names."""

    def number(name: str) -> float | None:
        if values.get(name) is None:
            return None
        try:
            return float(values[name])
        except (TypeError, ValueError):
            raise UserError(f"{where}: {name} is {values[name]!r} instead of a number; correct the file") from None

    size = [number("w") or default_size[0], number("h") or default_size[1]]
    if not all(math.isfinite(side) and side >= 1 for side in size):
        raise UserError(f"{where}: w and h are no picture size; correct the file")
    width, height = (round(side) for side in size)
    focal_x, focal_y = number("fl_x"), number("fl_y")
    for axis, side in (("x", width), ("y", height)):
        angle = number(f"camera_angle_{axis}")
        if angle is not None and not 0 < angle < math.pi:
            raise UserError(
                f"{where}: camera_angle_{axis} is {angle:g} instead of radians between 0 and pi; correct it"
            )
        if angle is not None and axis == "x" and focal_x is None:
            focal_x = 0.5 * side / math.tan(0.5 * angle)
        if angle is not None and axis == "y" and focal_y is None and number("fl_x") is None:
            focal_y = 0.5 * side / math.tan(0.5 * angle)
    if focal_x is None:
        raise UserError(f"{where}: neither fl_x nor camera_angle_x is given; add one of them")
    center_x, center_y = number("cx"), number("cy")
    K = intrinsics(
        focal_x,
        focal_x if focal_y is None else focal_y,
        width / 2 if center_x is None else center_x,
        height / 2 if center_y is None else center_y,
        (width, height),
        where,
    )
    return width, height, K, _frame_lens(values, number, (width, height), K, where)


def _frame_lens(
    values: dict, number: Callable[[str], float | None], size: tuple[int, int], K: np.ndarray, where: str
) -> Lens | None:
    """The lens of a frame: OPENCV (or FULL_OPENCV) from k1 k2 p1 p2 (k3 …), OPENCV_FISHEYE from k1 to k4."""
    pinhole = K[0, 0], K[1, 1], K[0, 2], K[1, 2]
    k1, k2, k3, k4, k5, k6, p1, p2 = (number(name) or 0.0 for name in DISTORTION)
    model = str(values.get("camera_model")).upper()
    if "FISHEYE" in model or values.get("is_fisheye"):
        return Lens("OPENCV_FISHEYE", *size, (*pinhole, k1, k2, k3, k4))
    if any((k4, k5, k6)) and model != "FULL_OPENCV":
        raise UserError(
            f"{where}: k4, k5 or k6 of a camera that is no fisheye mean different things in different programs; "
            "say camera_model FULL_OPENCV if they are OpenCV's, or find the poses again with OPENCV"
        )
    if any((k3, k4, k5, k6)):
        return Lens("FULL_OPENCV", *size, (*pinhole, k1, k2, p1, p2, k3, k4, k5, k6))
    return Lens("OPENCV", *size, (*pinhole, k1, k2, p1, p2)) if any((k1, k2, p1, p2)) else None


def match_source(
    poses: Poses, stems: dict[str, str], where: str, pictures: str, settings: CaptureSettings
) -> tuple[list[Camera], dict[str, str]]:
    """(cameras of the source views that have a pose, in their order; the others by folded stem, with the reason).

    Structure from motion seldom registers every view; a file that lists the source views alone has to name them all.
    """
    if poses.complete:
        return match(poses.source, stems, where, pictures), {}
    dropped = {key: f"{where} has no pose for it" for key in stems if key not in poses.source}
    known = {key: stem for key, stem in stems.items() if key in poses.source}
    if len(known) < max(2, settings.min_posed * len(stems)):
        raise UserError(
            f"{where} has poses for {len(known)} of the {len(stems)} views in {pictures}; at least "
            f"{settings.min_posed:.0%} are needed (capture.min_posed): take more views with more overlap, or remove "
            f"those that do not belong ({', '.join(stems[key] for key in list(dropped)[:6])}…)"
        )
    return match(poses.source, known, where, pictures), dropped


def match(poses: dict[str, Camera], stems: dict[str, str], where: str, pictures: str) -> list[Camera]:
    """`poses` in the order of `stems` (folded to written); every pose has a picture and every picture a pose."""
    for key in sorted(poses.keys() - stems.keys()):
        raise UserError(
            f"{where} has a pose for {poses[key].stem} but {pictures} has no such picture; add it or remove the pose"
        )
    for key in sorted(stems.keys() - poses.keys()):
        raise UserError(
            f"{pictures} has {stems[key]} but {where} has no pose for it; remove the picture or add its pose"
        )
    return [replace(poses[key], stem=stems[key]) for key in stems]
