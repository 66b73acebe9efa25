"""A small world of its own: two painted walls that meet in a corner, seen through smoke and a bent lens.

World axes as a levelled scene has them: x right, y down, z forward. It is photographed as a camera would: RAW mosaic
and JPEG with a tone curve of its own, in card folders, under names that nobody would choose.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from fujinsplat.capture.cameras import OPENGL_TO_OPENCV, Camera
from fujinsplat.capture.lens import Lens, colmap_camera
from fujinsplat.capture.points import write_points
from fujinsplat.core.color import encode
from fujinsplat.demo.sensor import BLACK, CAMERA_TO_SRGB, SRGB_TO_CAMERA, WHITE, write_dng

WIDTH, HEIGHT, FOCAL, BEND = 360, 240, 330.0, -0.08  # of the RAW; the JPEG has half its sides
AIRLIGHT, DENSITY = np.array([0.16, 0.15, 0.14]), 0.45
LENS = Lens("SIMPLE_RADIAL", WIDTH, HEIGHT, (FOCAL, WIDTH / 2, HEIGHT / 2, BEND))
GAIN = 3.0  # the camera's rendering


@dataclass(frozen=True)
class Corner:
    """The painted walls: linear sRGB [900, 1400, 3], laid around the corner."""

    paint: np.ndarray

    @staticmethod
    def make(seed: int) -> "Corner":
        from scipy.ndimage import gaussian_filter

        rng = np.random.default_rng(seed)
        grain = sum(
            weight * gaussian_filter(rng.random((900, 1400, 3)), (size, size, 0))
            for size, weight in ((1.5, 1.0), (4, 3.0), (14, 9.0))
        )
        low, high = np.percentile(grain, [2, 98], axis=(0, 1))
        return Corner(np.clip((grain - low) / (high - low), 0.02, 1) ** 2 * 0.3)

    def seen(self, rays: np.ndarray, viewmat: np.ndarray, smoke: bool) -> np.ndarray:
        """Linear sRGB [..., 3] along camera rays [..., 2]."""
        from scipy.ndimage import map_coordinates

        rotation = viewmat[:3, :3]
        eye = -rotation.T @ viewmat[:3, 3]
        world = np.concatenate([rays, np.ones_like(rays[..., :1])], -1) @ rotation
        nearest, place = np.full(rays.shape[:-1], np.inf), np.zeros((*rays.shape[:-1], 3))
        for side in (-1, 1):  # z = 1 - |x|
            normal = np.array([side, 0.0, 1.0])
            distance = (1 - normal @ eye) / (world @ normal)
            point = eye + distance[..., None] * world
            valid = (distance > 0) & (side * point[..., 0] >= 0) & (distance < nearest)
            nearest = np.where(valid, distance, nearest)
            place = np.where(valid[..., None], point, place)
        u, v = 700 + 300 * np.sqrt(2) * place[..., 0], 450 + 300 * place[..., 1]
        light = np.stack([map_coordinates(self.paint[..., c], [v, u], order=1, mode="mirror") for c in range(3)], -1)
        if not smoke:
            return light
        passes = np.exp(-DENSITY * np.linalg.norm(world, axis=-1) * nearest)[..., None]
        return light * passes + AIRLIGHT * (1 - passes)


def standing(angle: float, rise: float) -> np.ndarray:
    """World to camera [4, 4] at an angle of the sweep."""
    eye = np.array([2.3 * np.sin(angle), rise, -2.3 * np.cos(angle)])
    forward = np.array([0, 0, 0.2]) - eye
    forward /= np.linalg.norm(forward)
    right = np.cross([0, 1.0, 0], forward)
    right /= np.linalg.norm(right)
    viewmat = np.eye(4)
    viewmat[:3, :3] = np.stack([right, np.cross(forward, right), forward])
    viewmat[:3, 3] = -viewmat[:3, :3] @ eye
    return viewmat


def sweep(count: int) -> list[np.ndarray]:
    return [standing(np.radians(-24 + 48 * k / (count - 1)), -0.3 + 0.22 * np.cos(2.4 * k)) for k in range(count)]


def pixels(width: int, height: int) -> np.ndarray:
    return np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), -1)


def photograph(world: Corner, viewmat: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(mosaic uint16 [HEIGHT, WIDTH], JPEG uint8 of half its sides) through the bent lens and the smoke."""
    rays = colmap_camera(LENS).cam_from_img(pixels(WIDTH, HEIGHT).reshape(-1, 2)).reshape(HEIGHT, WIDTH, 2)
    camera = world.seen(rays, viewmat, smoke=True) @ SRGB_TO_CAMERA.T
    camera = np.clip(camera + rng.normal(0, 0.0008, camera.shape), 0, 1)
    light = camera[..., 1].copy()
    light[0::2, 0::2], light[1::2, 1::2] = camera[0::2, 0::2, 0], camera[1::2, 1::2, 2]
    mosaic = np.rint(BLACK + light * (WHITE - BLACK)).astype(np.uint16)
    balanced = camera / (SRGB_TO_CAMERA @ np.ones(3))
    small = balanced.reshape(HEIGHT // 2, 2, WIDTH // 2, 2, 3).mean((1, 3)) @ CAMERA_TO_SRGB.T
    return mosaic, shown(small)


def shown(linear: np.ndarray) -> np.ndarray:
    """The camera's rendering of linear sRGB, 8 bit."""
    return np.rint(encode(1 - np.exp(-GAIN * np.clip(linear, 0, None))) * 255).astype(np.uint8)


def odd_name(number: int) -> str:
    scrambled = number * 7 % 11
    return [f"{{shot}} {scrambled:02d}", f"Küche'{scrambled:02d}\"", f"DSC{scrambled:05d}"][number % 3]


def write_card(folder: Path, world: Corner, viewmats: list[np.ndarray]) -> dict[str, int]:
    """The smoky files alone, as a card holds them; which view each name is."""
    rng = np.random.default_rng(1)
    names = {}
    for number, viewmat in enumerate(viewmats):
        place = folder / "DCIM" / f"{100 + number % 2}FUJIN"
        place.mkdir(parents=True, exist_ok=True)
        mosaic, jpeg = photograph(world, viewmat, rng)
        write_dng(place / f"{odd_name(number)}.DNG", mosaic)
        Image.fromarray(jpeg).save(place / f"{odd_name(number).lower()}.jpg", quality=95, subsampling=0)
        names[odd_name(number)] = number
    return names


def write_scene(home: Path, world: Corner, viewmats: list[np.ndarray]) -> None:
    """The same photographs as a scene folder that brings the true poses, lens and points."""
    rng = np.random.default_rng(1)
    (home / "train").mkdir(parents=True)
    frames = []
    for number, viewmat in enumerate(viewmats):
        mosaic, jpeg = photograph(world, viewmat, rng)
        write_dng(home / "train" / f"{number:04d}.dng", mosaic)
        Image.fromarray(jpeg).save(home / "train" / f"{number:04d}.jpg", quality=95, subsampling=0)
        matrix = np.linalg.inv(viewmat) @ OPENGL_TO_OPENCV
        frames.append({"file_path": f"train/{number:04d}.jpg", "transform_matrix": matrix.tolist()})
    value = {"fl_x": FOCAL, "fl_y": FOCAL, "cx": WIDTH / 2, "cy": HEIGHT / 2, "w": WIDTH, "h": HEIGHT, "k1": BEND}
    (home / "transforms_train.json").write_text(json.dumps({**value, "frames": frames}))
    x, y = rng.uniform(-1, 1, 1500), rng.uniform(-0.8, 0.8, 1500)
    xyz = np.stack([x, y, 1 - np.abs(x)], -1).astype(np.float32)
    write_points(home / "point3d.ply", xyz, np.full((1500, 3), 128, np.uint8))


def held_views(world: Corner) -> list[tuple[Camera, np.ndarray]]:
    """Clean views from new places through a pinhole: (camera, picture encoded float [h, w, 3])."""
    width, height, focal = WIDTH // 2, HEIGHT // 2, FOCAL / 2
    K = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])
    rays = (pixels(width, height) - [width / 2, height / 2]) / focal
    found = []
    for number, angle in enumerate((-14.0, 3.0, 17.0)):
        viewmat = standing(np.radians(angle), -0.3)
        picture = shown(world.seen(rays, viewmat, smoke=False)) / 255.0
        found.append((Camera(f"held{number}", width, height, K, viewmat), picture))
    return found
