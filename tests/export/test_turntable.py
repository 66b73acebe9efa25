"""The turntable swings where the photographs were taken and keeps what they look at in view."""

import numpy as np

from fujinsplat.capture.cameras import Camera
from fujinsplat.export.turntable import facing, looked_at, turntable_path

UP = np.array([0.0, -1.0, 0.0])
K = np.array([[100.0, 0, 60], [0, 100.0, 40], [0, 0, 1]])


def sweep(count: int = 15) -> list[Camera]:
    angles = np.linspace(-0.5, 0.5, count)
    eyes = [np.array([3 * np.sin(a), -0.5 + 0.1 * np.cos(5 * a), -3 * np.cos(a)]) for a in angles]
    return [Camera(str(i), 120, 80, K, facing(eye, np.zeros(3), UP)) for i, eye in enumerate(eyes)]


def test_the_point_that_all_cameras_look_at():
    poses = np.stack([np.linalg.inv(camera.viewmat) for camera in sweep()])
    assert np.abs(looked_at(poses[:, :3, 3], poses[:, :3, 2])).max() < 0.05


def test_parallel_cameras_look_ahead():
    centres = np.array([[x, 0.0, 0.0] for x in range(5)])
    point = looked_at(centres, np.tile([0.0, 0.0, 1.0], (5, 1)))
    assert np.isfinite(point).all() and point[2] > 0.5


def test_the_path_is_closed_upright_and_within_the_cameras():
    cameras = sweep()
    path = turntable_path(cameras, 24)
    eyes = np.stack([np.linalg.inv(camera.viewmat)[:3, 3] for camera in path])
    steps = np.linalg.norm(np.diff(np.vstack([eyes, eyes[:1]]), axis=0), axis=1)
    assert steps.max() < 3 * steps.mean()
    own = np.stack([np.linalg.inv(camera.viewmat)[:3, 3] for camera in cameras])
    middle = own.mean(0)
    assert np.linalg.norm(eyes - middle, axis=1).max() <= np.linalg.norm(own - middle, axis=1).max()
    for camera in path:
        pose = np.linalg.inv(camera.viewmat)
        assert np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3)) and np.linalg.det(pose[:3, :3]) > 0
        assert -pose[:3, 1] @ UP > 0.9
        x, y, z = (camera.viewmat @ [0, 0, 0, 1])[:3]
        assert z > 0 and abs(x / z) < 0.1 and abs(y / z) < 0.1
