"""scene.ply: a row's Gaussians upright, as viewers expect them, in whatever frame the poses were given."""

import shutil
from pathlib import Path

import numpy as np

from fujinsplat.capture import read_cameras
from fujinsplat.capture.motion.level import upright_turn
from fujinsplat.core.files import atomic_file

UPRIGHT = 0.5  # degrees that are no slope


def write_scene(gaussians: Path, cameras: Path, out: Path) -> float:
    """The PLY turned so that the cameras' up is -y, or a copy where it is already; degrees of the turn. Its rotation
    stands in the file, so that there is a way back to the dataset's frame."""
    rotation = upright_turn(np.stack([camera.upright().viewmat for camera in read_cameras(cameras)]))
    angle = float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))
    if angle < UPRIGHT:
        with atomic_file(out) as temporary:
            shutil.copyfile(gaussians, temporary)
        return 0.0
    from fujinsplat.splat.ply import read_ply, write_ply
    from fujinsplat.splat.turned import turned

    rows = " ".join(f"{value:.9g}" for value in rotation.ravel())
    comment = f"FujinSplat: display-encoded SH, upright = R @ dataset frame, R by rows: {rows}"
    write_ply(out, turned(read_ply(gaussians), rotation), (comment,))
    return angle
