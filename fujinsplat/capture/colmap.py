"""A COLMAP model's cameras and points (text or binary), read with pycolmap."""

from pathlib import Path

import numpy as np

from fujinsplat.capture.cameras import Camera, intrinsics, rigid
from fujinsplat.capture.poses import UNDISTORT, picture_stem
from fujinsplat.errors import UserError


def _read(folder: Path):
    import pycolmap

    for file in sorted(folder.iterdir()):
        if file.suffix == ".bin" and file.is_file() and file.stat().st_size == 0:
            raise UserError(f"{file} is empty (zero bytes); run COLMAP again or copy the model again")
    model = pycolmap.Reconstruction()
    try:
        # read, not the constructor: the two kinds of files are chosen as layout.colmap_files does
        (model.read_binary if (folder / "images.bin").is_file() else model.read_text)(str(folder))
    except Exception as error:  # pycolmap raises many kinds, all of them about the files
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{folder} is no readable COLMAP model ({reason}); run COLMAP again or copy it again") from None
    return model


def colmap_cameras(folder: Path) -> dict[str, Camera]:
    """Cameras of the registered images by folded stem, in pixels of COLMAP's picture size."""
    model = _read(folder)
    cameras: dict[str, Camera] = {}
    for image in sorted((model.images[i] for i in model.reg_image_ids()), key=lambda image: image.name):
        where = f"{folder}, image {image.name}"
        camera = model.cameras[image.camera_id]
        if any(camera.params[i] for i in camera.extra_params_idxs()) or not camera.is_perspective:
            raise UserError(f"{where}: the {camera.model_name} camera has lens distortion; {UNDISTORT}")
        stem = picture_stem(image.name)
        if stem.casefold() in cameras:
            raise UserError(f"{where}: another image of the model has that name too; register each view once")
        K = intrinsics(
            camera.focal_length_x,
            camera.focal_length_y,
            camera.principal_point_x,
            camera.principal_point_y,
            (camera.width, camera.height),
            where,
        )
        viewmat = rigid(image.cam_from_world().matrix(), where)
        cameras[stem.casefold()] = Camera(stem, int(camera.width), int(camera.height), K, viewmat)
    if not cameras:
        raise UserError(f"{folder} has no registered image; run COLMAP's mapper again")
    return cameras


def colmap_points(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(xyz float64 [N, 3], rgb uint8 [N, 3]) in the order of the points' numbers."""
    points = _read(folder).points3D
    order = sorted(points)
    xyz = np.array([points[i].xyz for i in order], np.float64).reshape(-1, 3)
    rgb = np.array([points[i].color for i in order], np.uint8).reshape(-1, 3)
    return xyz, rgb
