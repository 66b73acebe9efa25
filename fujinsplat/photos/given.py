"""Poses that somebody has already: a COLMAP model in any of its folders, or nerfstudio's transforms.json.

They are taken as they are. Only the names change: the pictures have safe names by now, so the poses are written once
more as a COLMAP model (text) that speaks of those, with the points where there are some.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from fujinsplat.capture.cameras import Camera
from fujinsplat.capture.colmap import colmap_points, named_cameras
from fujinsplat.capture.layout import POINT_NAMES, View, colmap_files, colmap_models, folded
from fujinsplat.capture.lens import Lens
from fujinsplat.capture.points import read_points
from fujinsplat.capture.poses import named_transforms, picture_stem
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_folder, read_json

TRANSFORMS = ("transforms.json", "transforms_train.json")


@dataclass(frozen=True)
class Given:
    """Cameras with the name that the source gives each picture; `xyz` float32 [N, 3], `rgb` uint8 [N, 3], or None."""

    source: Path
    cameras: list[tuple[str, Camera]]
    xyz: np.ndarray | None
    rgb: np.ndarray | None


def given_poses(place: Path, size: tuple[int, int], required: bool) -> Given | None:
    """The poses at `place` (a folder or a transforms file); `size` holds where the file gives none. None when there are
    none and none are `required`."""
    if not place.exists():
        raise UserError(f"{place} does not exist; name the folder of a COLMAP model, or a transforms.json")
    files = [place] if place.is_file() else [place / name for name in TRANSFORMS if (place / name).is_file()]
    if files:
        return _transforms(files[0], size)
    models = colmap_models(place)
    if models:
        model = max(models, key=lambda folder: colmap_files(folder, "images")[0].stat().st_size)
        has_points = bool(colmap_files(model, "points3D"))
        xyz, rgb = colmap_points(model) if has_points else (None, None)
        return Given(model, named_cameras(model), *((xyz, rgb) if xyz is not None and len(xyz) else (None, None)))
    if required:
        raise UserError(
            f"{place} holds no transforms.json and no COLMAP model (cameras, images and points3D, .bin or .txt, in it "
            "or in sparse/0); name the folder that does"
        )
    return None


def _transforms(file: Path, size: tuple[int, int]) -> Given:
    cameras = named_transforms(file, size)
    value = read_json(file)
    names = [value.get("ply_file_path"), *POINT_NAMES]
    found = next((path for name in names if name and (path := file.parent / str(name)).is_file()), None)
    return Given(file, cameras, *(read_points(found) if found else (None, None)))


def cameras_of(given: Given, views: list[View]) -> dict[str, Camera]:
    """The given cameras by the stems of the views they belong to; poses of other pictures are refused."""
    named = _matched(given, views)
    if len(named) < 2:
        theirs = ", ".join(sorted(camera.stem for _, camera in given.cameras)[:3])
        ours = ", ".join(sorted(file.name for view in views[:3] for file in view.files)[:3])
        raise UserError(
            f"{given.source} has poses for {theirs}…, but the photographs are called {ours}…; give the poses of these "
            "very files, or none, so that they are found"
        )
    return named


def write_given(given: Given, views: list[View], out: Path) -> None:
    """The model under the views' own names in the folder `out`."""
    lenses: dict[Lens, int] = {}
    images = []
    for number, (stem, camera) in enumerate(sorted(cameras_of(given, views).items()), start=1):
        lens = camera.lens or _pinhole(camera)
        which = lenses.setdefault(lens, len(lenses) + 1)
        numbers = [*_quaternion(camera.viewmat[:3, :3]), *camera.viewmat[:3, 3]]
        images += [f"{number} {' '.join(repr(float(n)) for n in numbers)} {which} {stem}.png", ""]
    with atomic_folder(out) as folder:
        (folder / "cameras.txt").write_text(
            "".join(
                f"{number} {lens.model} {lens.width} {lens.height} {' '.join(repr(float(p)) for p in lens.params)}\n"
                for lens, number in lenses.items()
            )
        )
        (folder / "images.txt").write_text("\n".join(images) + "\n")
        if given.xyz is not None and given.rgb is not None:
            rows = zip(given.xyz.tolist(), given.rgb.tolist(), strict=True)
            (folder / "points3D.txt").write_text(
                "".join(f"{i} {x} {y} {z} {r} {g} {b} 0\n" for i, ((x, y, z), (r, g, b)) in enumerate(rows, start=1))
            )


def _matched(given: Given, views: list[View]) -> dict[str, Camera]:
    """Cameras by the stem of the view they belong to. Cards begin their numbers again in each folder, so a pose belongs
    to the photograph with which it shares the most of its path, counted from the end."""
    homes: dict[str, list[tuple[tuple[str, ...], View]]] = {}
    for view in views:
        for file in view.files:
            homes.setdefault(folded(file.stem), []).append((_tail(file.absolute().parent), view))
    taken: dict[str, tuple[int, str, Camera]] = {}
    for name, camera in given.cameras:
        folders = _tail(PurePosixPath(name.replace("\\", "/")).parent)
        shared: dict[str, int] = {}
        for home, view in homes.get(folded(picture_stem(name)), []):
            shared[view.stem] = max(shared.get(view.stem, 0), _in_common(folders, home))
        best = [stem for stem, count in shared.items() if count == max(shared.values())]
        if len(best) > 1:
            could = [str(view.files[-1]) for view in views if view.stem in best[:2]]
            raise UserError(
                f"{given.source} has a pose for {name}, which could be {could[0]} or {could[1]}; give the pictures' "
                "folders there, or rename the photographs, or find poses anew with --poses none"
            )
        if not best:
            continue
        count, other, _ = taken.get(best[0], (-1, "", camera))
        if count == shared[best[0]]:
            raise UserError(
                f"{given.source} has two poses for one photograph ({other} and {name}); remove one of them there"
            )
        if count < shared[best[0]]:
            taken[best[0]] = shared[best[0]], name, camera
    return {stem: camera for stem, (_, _, camera) in taken.items()}


def _tail(folder: PurePosixPath | Path) -> tuple[str, ...]:
    """The names of the folders, the innermost first."""
    return tuple(folded(part) for part in reversed(folder.parts))


def _in_common(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _pinhole(camera: Camera) -> Lens:
    params = camera.K[0, 0], camera.K[1, 1], camera.K[0, 2], camera.K[1, 2]
    return Lens("PINHOLE", camera.width, camera.height, tuple(float(p) for p in params))


def _quaternion(rotation: np.ndarray) -> list[float]:
    """w x y z of a rotation [3, 3]."""
    import pycolmap

    x, y, z, w = pycolmap.Rotation3d(rotation).quat
    return [w, x, y, z]
