"""A smooth, closed camera path through the source cameras: video frames, and poses that the export is tuned at."""

from dataclasses import replace

import numpy as np

from fujinsplat.capture import Camera
from fujinsplat.core.errors import UserError


def camera_path(cameras: list[Camera], frames: int) -> list[Camera]:
    """`frames` cameras named 0000, 0001, … that pass every given camera once, in a short round, and come back.

    Positions follow a Catmull-Rom spline, directions the shortest turn between neighbours; lens and size are the first
    camera's.
    """
    if len(cameras) < 2:
        raise UserError("a camera path needs at least two source cameras; render single views with --views instead")
    poses = [np.linalg.inv(camera.viewmat) for camera in _short_round(cameras)]
    centres = np.stack([pose[:3, 3] for pose in poses])
    made = []
    for frame in range(frames):
        at = frame / frames * len(poses)
        pose = np.eye(4)
        pose[:3, :3] = _turned(poses[int(at)], poses[(int(at) + 1) % len(poses)], at - int(at))
        pose[:3, 3] = _spline(centres, at)
        made.append(replace(cameras[0], stem=f"{frame:04d}", viewmat=np.linalg.inv(pose)))
    return made


def _short_round(cameras: list[Camera]) -> list[Camera]:
    """Nearest neighbour next, starting with the first camera."""
    left = list(cameras)
    order = [left.pop(0)]
    centre = {id(camera): -camera.viewmat[:3, :3].T @ camera.viewmat[:3, 3] for camera in cameras}
    while left:
        here = centre[id(order[-1])]
        order.append(left.pop(int(np.argmin([np.linalg.norm(centre[id(camera)] - here) for camera in left]))))
    return order


def _turned(start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    """The rotation nearest to the weighted mean of two poses' rotations: on the shortest turn from one to the other."""
    u, _, vt = np.linalg.svd((1 - share) * start[:3, :3] + share * end[:3, :3])
    return u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt


def _spline(points: np.ndarray, at: float) -> np.ndarray:
    """Closed Catmull-Rom spline through `points [N, 3]` at parameter `at` in [0, N)."""
    i, t, n = int(at), at - int(at), len(points)
    a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
