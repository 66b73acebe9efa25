"""Cameras in OpenCV axes (x right, y down, z forward): checks, scaling, and cameras.json."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fujinsplat.capture.lens import Lens
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.reading import check_size, check_stem

# how far R^T R may lie from the identity: pose files carry six digits or so
RIGID_TOLERANCE = 1e-3
# pose files and pictures may differ in size, not in shape
ASPECT_TOLERANCE = 0.02
# OpenGL cameras look along -z with y up; OpenCV cameras along +z with y down
OPENGL_TO_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])
# camera axes of a picture turned by a quarter counter-clockwise: what was down is right, what was right is up
QUARTER = np.array([[0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


@dataclass(frozen=True)
class Camera:
    """One view's geometry: `K` [3, 3] in pixels of `width` x `height` (corner of the first pixel at 0, its centre at
    0.5), `viewmat` [4, 4] world to camera. `lens`: the one the photograph was taken through, where that is no pinhole;
    in a pose file's camera `width` and `height` are the photograph's, after `straightened` the pinhole picture's. `cut`
    (left, top, width, height): pixels that were then cut away there, of a picture of that size. `turns`: quarter turns
    counter-clockwise that bring the picture upright, as the photograph's tag says."""

    stem: str
    width: int
    height: int
    K: np.ndarray
    viewmat: np.ndarray
    lens: Lens | None = None
    cut: tuple[int, int, int, int] | None = None
    turns: int = 0

    def scaled(self, width: int, height: int) -> "Camera":
        """The same camera on a picture of another size: pixel edges, not centres, are what scaling keeps."""
        if (width, height) == (self.width, self.height):
            return self
        scale = np.diag([width / self.width, height / self.height, 1.0])
        return replace(self, width=width, height=height, K=scale @ self.K)

    def straightened(self, width: int, height: int) -> "Camera":
        """A pose file's camera for a photograph of `width` x `height` whose pixels are then straightened."""
        if self.lens is None:
            return self.scaled(width, height)
        lens = self.lens.scaled(width, height)
        pinhole_width, pinhole_height, K = lens.pinhole()
        return replace(self, width=pinhole_width, height=pinhole_height, K=K, lens=lens)

    def upright(self) -> "Camera":
        """The pinhole camera of the picture turned upright: what `np.rot90(picture, turns)` shows."""
        camera = replace(self, turns=0, lens=None, cut=None)
        for _ in range(self.turns % 4):
            (fx, _, cx), (_, fy, cy) = camera.K[:2]
            K = np.array([[fy, 0.0, cy], [0.0, fx, camera.width - cx], [0.0, 0.0, 1.0]])
            viewmat = QUARTER @ camera.viewmat
            camera = replace(camera, width=camera.height, height=camera.width, K=K, viewmat=viewmat)
        return camera

    @property
    def photograph(self) -> tuple[int, int]:
        """(width, height) of the picture before it is straightened."""
        if self.lens is not None:
            return self.lens.width, self.lens.height
        return (self.width, self.height) if self.cut is None else self.cut[2:]

    def to_json(self) -> dict:
        value = {
            "stem": self.stem,
            "width": self.width,
            "height": self.height,
            "K": self.K.tolist(),
            "viewmat": self.viewmat.tolist(),
        }
        lens = {} if self.lens is None else {"lens": self.lens.to_json()}
        cut = {} if self.cut is None else {"cut": list(self.cut)}
        return {**value, **lens, **cut, **({"turns": self.turns} if self.turns else {})}

    @staticmethod
    def from_json(value: dict) -> "Camera":
        return Camera(
            str(value["stem"]),
            int(value["width"]),
            int(value["height"]),
            np.asarray(value["K"], np.float64).reshape(3, 3),
            np.asarray(value["viewmat"], np.float64).reshape(4, 4),
            Lens.from_json(value["lens"]) if value.get("lens") else None,
            _four(value["cut"]) if value.get("cut") else None,
            int(value.get("turns", 0)) % 4,
        )


def _four(sides: Iterable[int]) -> tuple[int, int, int, int]:
    left, top, wide, high = (int(side) for side in sides)
    return left, top, wide, high


def read_cameras(path: Path | str, part: str = "source") -> list[Camera]:
    """The cameras of `part` ("source" or "held") from cameras.json, in its order."""
    value = read_json(path)
    try:
        cameras = [Camera.from_json(item) for item in value[part]]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise UserError(f"{path} is not a cameras.json of the capture stage; build it again") from None
    for camera in cameras:
        _possible(camera, path)
    if len({camera.stem for camera in cameras}) < len(cameras):
        raise UserError(f"{path} has two {part} cameras of one name; build it again with the capture stage")
    return cameras


def _possible(camera: Camera, path: Path | str) -> None:
    """A camera that can see: what training would otherwise find out after an hour, or never."""
    remedy = "build it again with the capture stage"
    check_stem(camera.stem, path)
    check_size(f"{path}, camera {camera.stem}", camera.width, camera.height, remedy)
    focal = camera.K[[0, 1], [0, 1]]
    if not np.isfinite(camera.K).all() or (focal <= 0).any() or abs(np.linalg.det(camera.K)) < 1e-12:
        raise UserError(f"{path}, camera {camera.stem}: K is not finite or has no inverse; {remedy}")
    rigid(camera.viewmat, f"{path}, camera {camera.stem}")


def rigid(matrix, where: str) -> np.ndarray:
    """`matrix` ([4, 4] or [3, 4]) as a float64 rigid motion [4, 4], or a UserError that starts with `where`."""
    remedy = "export the poses again as unscaled camera-to-world matrices"
    try:
        pose = np.asarray(matrix, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{where}: the pose is not a matrix of numbers; {remedy}") from None
    if pose.shape == (3, 4):
        pose = np.vstack([pose, [0.0, 0.0, 0.0, 1.0]])
    if pose.shape != (4, 4):
        raise UserError(f"{where}: the pose has shape {pose.shape} instead of 4x4; {remedy}")
    if not np.isfinite(pose).all():
        raise UserError(f"{where}: the pose holds non-finite numbers; {remedy}, or remove the frame")
    rotation = pose[:3, :3]
    off = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if off > RIGID_TOLERANCE or np.linalg.det(rotation) < 0 or np.abs(pose[3] - [0, 0, 0, 1]).max() > 1e-6:
        raise UserError(f"{where}: the pose is not rigid (rotation plus shift, no scale, no mirror); {remedy}")
    return pose


def intrinsics(focal_x: float, focal_y: float, center_x: float, center_y: float, size, where: str) -> np.ndarray:
    """`K` [3, 3] for a picture of `size` (width, height), or a UserError: focal lengths are positive, the centre is
    inside the picture."""
    values = np.array([focal_x, focal_y, center_x, center_y], np.float64)
    if not (np.isfinite(values).all() and (values[:2] > 0).all()):
        raise UserError(f"{where}: focal length or principal point is not a positive number; export the poses again")
    if not (0 < center_x < size[0] and 0 < center_y < size[1]):
        raise UserError(
            f"{where}: the principal point ({center_x:g}, {center_y:g}) lies outside the picture of "
            f"{size[0]}x{size[1]}; give the size these intrinsics belong to as w and h"
        )
    return np.array([[focal_x, 0.0, center_x], [0.0, focal_y, center_y], [0.0, 0.0, 1.0]])


def same_aspect(a: tuple[int, int], b: tuple[int, int], tolerance: float = ASPECT_TOLERANCE) -> bool:
    """Whether two sizes (width, height) have one shape, to `tolerance` or the rounding of one pixel."""
    ratio = (a[0] * b[1]) / (a[1] * b[0])
    slack = max(tolerance, 1.0 / min(*a, *b))
    return 1 / (1 + slack) <= ratio <= 1 + slack
