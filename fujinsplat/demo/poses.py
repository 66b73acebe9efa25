"""Where the photographer stands: a sweep in front of the room, and held views in between."""

import math

import numpy as np

from fujinsplat.demo.render import Camera

FOCAL = 0.92  # over the picture's width: about 57 degrees across


def facing(eye: np.ndarray, target: np.ndarray, roll: float = 0.0) -> np.ndarray:
    """Columns right, down, forward of a camera at `eye` that looks at `target`."""
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    down = np.cross(forward, right)
    c, s = math.cos(roll), math.sin(roll)
    return np.stack([c * right + s * down, -s * right + c * down, forward], 1)


def _stand(target: np.ndarray, along: float, rise: float, reach: float, aim: np.ndarray, roll: float):
    """Position and rotation at `along` in [-1, 1] of the sweep, `rise` in [-1, 1] of its height."""
    angle = 0.62 * along
    eye = target + np.array([reach * math.sin(angle), -reach * math.cos(angle), 0.62 + 0.3 * rise])
    return eye, facing(eye, target + aim, roll)


def sweep(target: np.ndarray, count: int, width: int, height: int, rng: np.random.Generator) -> list[Camera]:
    """Source cameras: there and back along an arc at two heights, hand-held."""
    cameras = []
    for k in range(count):
        there = 2 * k < count
        half = (count + 1) // 2
        position = k / max(half - 1, 1) if there else 1 - (k - half) / max(count - half - 1, 1)
        along = 2 * position - 1 + rng.normal(0, 0.04)
        rise = (-0.55 if there else 0.55) + rng.normal(0, 0.18)
        aim = rng.normal(0, (0.09, 0.05, 0.06))
        eye, rotation = _stand(target, along, rise, 2.55 + rng.normal(0, 0.1), aim, rng.normal(0, 0.015))
        cameras.append(Camera(eye, rotation, FOCAL * width, width, height))
    return cameras


def between(target: np.ndarray, count: int, width: int, height: int, rng: np.random.Generator) -> list[Camera]:
    """Held cameras: new positions inside the sweep, at middle height."""
    cameras = []
    for k in range(count):
        along = 1.5 * ((k + 0.5) / count - 0.5) + rng.normal(0, 0.04)
        aim = rng.normal(0, (0.06, 0.04, 0.04))
        eye, rotation = _stand(target, along, rng.uniform(-0.35, 0.35), 2.55 + rng.normal(0, 0.06), aim, 0.0)
        cameras.append(Camera(eye, rotation, FOCAL * width, width, height))
    return cameras


def transforms(cameras: list[Camera], stems: list[str], folder: str) -> dict:
    """transforms_*.json: camera-to-world matrices with OpenGL axes (x right, y up, z back)."""
    first = cameras[0]
    frames = []
    for camera, stem in zip(cameras, stems, strict=True):
        matrix = np.eye(4)
        matrix[:3, :3] = camera.rotation * np.array([1.0, -1.0, -1.0])
        matrix[:3, 3] = camera.position
        frames.append({"file_path": f"{folder}/{stem}.JPG", "transform_matrix": matrix.tolist()})
    return {
        "camera_angle_x": 2 * math.atan(0.5 * first.width / first.focal),
        "fl_x": first.focal,
        "fl_y": first.focal,
        "cx": first.width / 2,
        "cy": first.height / 2,
        "w": first.width,
        "h": first.height,
        "frames": frames,
    }
