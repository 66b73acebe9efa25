"""The structure-from-motion point cloud: x y z red green blue, in the dataset's frame."""

from pathlib import Path

import numpy as np

from fujinsplat.capture.layout import Scene, colmap_folder, is_empty, points_file
from fujinsplat.errors import UserError

GREY = 128  # the colour of points whose file has none


def scene_points(scene: Scene) -> tuple[np.ndarray, np.ndarray, Path]:
    """(xyz float32 [N, 3], rgb uint8 [N, 3], where they came from), finite and at least one."""
    path = points_file(scene)
    if path is not None:
        xyz, rgb = read_points(path)
    else:
        path = colmap_folder(scene)
        if path is None:
            raise UserError(f"{scene.rgb_home} has no point3d.ply and no COLMAP points3D in sparse/0; add one of them")
        from fujinsplat.capture.colmap import colmap_points

        xyz, rgb = _checked(*colmap_points(path), path)
    return xyz, rgb, path


def _checked(xyz: np.ndarray, rgb: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    if not len(xyz):
        raise UserError(f"{path} holds no points; run structure from motion again or export its points")
    bad = int((~np.isfinite(xyz).all(1)).sum())
    if bad:
        raise UserError(
            f"{path}: {bad} of {len(xyz)} points have non-finite coordinates; remove them or export it again"
        )
    return xyz.astype(np.float32), rgb


def read_points(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """(xyz float32 [N, 3], rgb uint8 [N, 3]) of a PLY, ascii or binary; missing colours are grey."""
    from plyfile import PlyData, PlyElementParseError, PlyHeaderParseError

    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path} does not exist; build it first or correct the path")
    if is_empty(path):
        raise UserError(f"{path} is empty (zero bytes); copy or download it again")
    try:
        vertex = PlyData.read(str(path))["vertex"].data
        xyz = np.stack([np.asarray(vertex[axis], np.float64) for axis in "xyz"], axis=-1)
    except (PlyHeaderParseError, PlyElementParseError, KeyError, ValueError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{path} is no readable point cloud with x y z ({reason}); export it again as PLY") from None
    if {"red", "green", "blue"} <= set(vertex.dtype.names):
        rgb = np.stack([np.asarray(vertex[name]) for name in ("red", "green", "blue")], axis=-1)
        if np.issubdtype(rgb.dtype, np.floating):  # some tools write colours in [0, 1]
            rgb = np.rint(np.nan_to_num(rgb) * 255)
        rgb = np.clip(rgb, 0, 255).astype(np.uint8)
    else:
        rgb = np.full((len(xyz), 3), GREY, np.uint8)
    return _checked(xyz, rgb, path)


def write_points(path: Path, xyz: np.ndarray, rgb: np.ndarray) -> None:
    """Binary little-endian PLY of xyz float32 [N, 3] and rgb uint8 [N, 3]."""
    from plyfile import PlyData, PlyElement

    kinds = [(axis, "<f4") for axis in "xyz"] + [(name, "u1") for name in ("red", "green", "blue")]
    vertex = np.empty(len(xyz), kinds)
    for i, axis in enumerate("xyz"):
        vertex[axis] = xyz[:, i]
    for i, name in enumerate(("red", "green", "blue")):
        vertex[name] = rgb[:, i]
    PlyData([PlyElement.describe(vertex, "vertex")], byte_order="<").write(str(path))
