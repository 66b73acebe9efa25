"""A short film around a trained scene: the camera swings through the room that the photographs were taken from."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from fujinsplat.capture import Camera
from fujinsplat.capture.motion.level import up_direction
from fujinsplat.core.files import atomic_file
from fujinsplat.core.progress import progress

LOOKED_AT = 6  # frames whose colours make the film's palette
SWING = 1.0  # standard deviations of the camera positions: farther out the scene was never seen


def turntable_path(cameras: list[Camera], frames: int) -> list[Camera]:
    """A closed ellipse through the middle of the cameras, along the two directions in which they spread most, looking
    at the point that they look at; upright."""
    cameras = [camera.upright() for camera in cameras]
    poses = np.stack([np.linalg.inv(camera.viewmat) for camera in cameras])
    centres, forwards = poses[:, :3, 3], poses[:, :3, 2]
    middle, focus = centres.mean(0), looked_at(centres, forwards)
    up = up_direction(np.stack([camera.viewmat for camera in cameras]))
    _, spread, axes = np.linalg.svd(centres - middle, full_matrices=False)
    radii = SWING * spread / np.sqrt(len(cameras))
    size = sorted(cameras, key=lambda camera: camera.width * camera.height)[len(cameras) // 2]
    made = []
    for number in range(frames):
        angle = 2 * np.pi * number / frames
        eye = middle + radii[0] * np.sin(angle) * axes[0] + radii[1] * np.cos(angle) * axes[1]
        made.append(replace(size, stem=f"{number:04d}", viewmat=facing(eye, focus, up), lens=None))
    return made


def looked_at(centres: np.ndarray, forwards: np.ndarray) -> np.ndarray:
    """The point [3] nearest to all optical axes; a step ahead of the cameras where these are parallel."""
    across = np.eye(3) - np.einsum("vi,vj->vij", forwards, forwards)
    ahead = centres + forwards * max(np.linalg.norm(np.ptp(centres, axis=0)), 1e-3)
    # a weak pull keeps the point in front of cameras whose axes hardly meet
    pull = 1e-3 * np.eye(3)
    left = across.sum(0) + len(centres) * pull
    right = np.einsum("vij,vj->i", across, centres) + len(centres) * pull @ ahead.mean(0)
    return np.linalg.solve(left, right)


def facing(eye: np.ndarray, target: np.ndarray, up: np.ndarray) -> np.ndarray:
    """World to camera [4, 4] (OpenCV axes) of a camera at `eye` that looks at `target`."""
    forward = target - eye
    forward /= max(np.linalg.norm(forward), 1e-9)
    right = np.cross(forward, up)
    right /= max(np.linalg.norm(right), 1e-9)
    rotation = np.stack([right, np.cross(forward, right), forward])
    viewmat = np.eye(4)
    viewmat[:3, :3], viewmat[:3, 3] = rotation, -rotation @ eye
    return viewmat


def write_turntable(gaussians, cameras: list[Camera], out: Path, frames: int, width: int, seconds: float = 6.0) -> None:
    """An animated GIF that turns once and begins again."""
    from PIL import Image

    from fujinsplat.splat.render import render_encoded, resized

    pictures = []
    for camera in progress(turntable_path(cameras, frames), "turntable"):
        shown = render_encoded(gaussians, resized(camera, min(width, camera.width)))
        pictures.append(Image.fromarray((shown.cpu().numpy() * 255 + 0.5).astype(np.uint8)))
    # one palette for all frames: a palette per frame would flicker
    some = np.concatenate([np.asarray(picture) for picture in pictures[:: -(-frames // LOOKED_AT)]])
    palette = Image.fromarray(some).quantize(255, method=Image.Quantize.MEDIANCUT, kmeans=3)
    quantised = [picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG) for picture in pictures]
    with atomic_file(out) as temporary:
        quantised[0].save(
            temporary,
            "GIF",
            save_all=True,
            append_images=quantised[1:],
            duration=round(1000 * seconds / frames),
            loop=0,
        )
