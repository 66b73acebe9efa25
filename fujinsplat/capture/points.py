"""The structure-from-motion point cloud: x y z red green blue, in the dataset's frame."""

from pathlib import Path

import numpy as np

from fujinsplat.capture.layout import Scene, colmap_folder, has_points, is_empty, points_file
from fujinsplat.core.errors import UserError

FEWEST = 4  # points: each one's first size comes from its three nearest
GREY = 128  # the colour of points whose file has none


def scene_points(scene: Scene, found: Path | None = None) -> tuple[np.ndarray, np.ndarray, Path]:
    """(xyz float32 [N, 3], rgb uint8 [N, 3], where they came from), finite and at least one. `found`: the model that
    structure from motion made, for a scene that brings no points."""
    path = points_file(scene)
    if path is not None:
        xyz, rgb = read_points(path)
    else:
        path = found if found is not None and not has_points(scene) else colmap_folder(scene)
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
    with np.errstate(over="ignore"):
        stored = xyz.astype(np.float32)
    if not np.isfinite(stored).all():
        raise UserError(
            f"{path} has coordinates beyond {np.finfo(np.float32).max:.2g}; export it again, in scene units"
        )
    if len(xyz) < FEWEST:
        raise UserError(f"{path} holds {len(xyz)} points, and training needs {FEWEST}; run structure from motion again")
    return stored, rgb


def read_points(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """(xyz float32 [N, 3], rgb uint8 [N, 3]) of a PLY, ascii or binary; missing colours are grey."""
    from plyfile import PlyData

    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path} does not exist; build it first or correct the path")
    if is_empty(path):
        raise UserError(f"{path} is empty (zero bytes); copy or download it again")
    try:
        _check_counts(path)
        vertex = PlyData.read(str(path))["vertex"].data
        xyz = np.stack([np.asarray(vertex[axis], np.float64) for axis in "xyz"], axis=-1)
    except UserError:
        raise
    except PermissionError:
        raise UserError(f"{path} cannot be read: permission denied; give yourself the right to read it") from None
    except Exception as error:  # the parser raises many kinds for a damaged file
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


def _check_counts(path: Path) -> None:
    """No element can have more entries than the file has bytes: said before memory is taken for them."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(65536).split(b"end_header")[0]
    for line in head.splitlines():
        words = line.split()
        if (
            len(words) == 3
            and words[0] == b"element"
            and words[2].lstrip(b"-").isdigit()
            and not 0 <= int(words[2]) <= size
        ):
            raise UserError(
                f"{path} is no readable point cloud with x y z ({int(words[2])} entries in a file of {size} bytes); "
                "export it again as PLY"
            )


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
