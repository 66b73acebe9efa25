"""A slanted wall with a square before it, photographed through known smoke: exact depth, procedural colours."""

from dataclasses import dataclass

import numpy as np
import torch

from fujinsplat.capture import Camera

AIRLIGHT = np.array([0.15, 0.13, 0.11])
WIDTH, HEIGHT = 96, 64


@dataclass
class Capture:
    views: torch.Tensor
    clean: torch.Tensor
    transmission: torch.Tensor
    depth: torch.Tensor
    cameras: list[Camera]
    points: np.ndarray

    @property
    def trusted(self) -> torch.Tensor:
        return torch.ones_like(self.depth, dtype=torch.bool)


def colour(world: np.ndarray) -> np.ndarray:
    """Smooth and checkered albedo `[..., 3]`, black in places."""
    x, y, z = np.moveaxis(world, -1, 0)
    cells = np.sin(5 * x + 2 * z) * np.sin(4 * y - z) + 0.4 * np.sin(17 * x - 3 * np.sin(3 * y)) * np.sin(
        19 * y + 2 * x
    )
    waves = [0.5 + 0.5 * np.sin(3 * x + k) * np.cos(2.5 * y + 2 * k) for k in range(3)]
    return np.where(cells[..., None] > 0, 0.35 * np.stack(waves, -1), 0.01 + 0.04 * np.stack(waves, -1))


def camera(k: int, count: int, scale: int = 1) -> Camera:
    angle = 0.5 * (2 * k / max(count - 1, 1) - 1)
    centre = np.array([3.2 * np.sin(angle), 0.3 * np.cos(5.0 * k), 3.5 - 3.2 * np.cos(angle)])
    forward = np.array([0, 0, 3.5]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross([0.0, 1.0, 0.0], forward)
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    viewmat = np.eye(4)
    viewmat[:3, :3], viewmat[:3, 3] = rotation, -rotation @ centre
    K = np.array([[90.0, 0, WIDTH / 2], [0, 90.0, HEIGHT / 2], [0, 0, 1]])
    return Camera(f"{k:03d}", WIDTH, HEIGHT, K, viewmat).scaled(scale * WIDTH, scale * HEIGHT)


def rays(view: Camera) -> np.ndarray:
    """Through pixel centres, `[h, w, 3]`, of z = 1 in the camera's frame."""
    y, x = np.mgrid[0 : view.height, 0 : view.width] + 0.5
    return np.stack([(x - view.K[0, 2]) / view.K[0, 0], (y - view.K[1, 2]) / view.K[1, 1], np.ones_like(x)], -1)


def look(view: Camera) -> tuple[np.ndarray, np.ndarray]:
    """z `[h, w]` and colour `[h, w, 3]`: the wall z = 4.5 + x / 4, and a square at z = 2.8."""
    rotation, centre = view.viewmat[:3, :3], -view.viewmat[:3, :3].T @ view.viewmat[:3, 3]
    ray = rays(view) @ rotation
    wall = (4.5 + centre[0] / 4 - centre[2]) / (ray[..., 2] - ray[..., 0] / 4)
    box = (2.8 - centre[2]) / ray[..., 2]
    hit = centre + box[..., None] * ray
    z = np.where((np.abs(hit[..., :2]) < 0.6).all(-1), box, wall)
    return z, colour(centre + z[..., None] * ray)


def capture(count: int = 10, change: float = 0.35, noise: float = 3e-4, seed: int = 0, scale: int = 1) -> Capture:
    """`count` views, `scale` times as large; their optical depths differ by `change` (deviation), tilted."""
    rng = np.random.default_rng(seed)
    cameras = [camera(k, count, scale) for k in range(count)]
    y, x = np.mgrid[0 : scale * HEIGHT, 0 : scale * WIDTH]
    x, y = (x + 0.5) / (scale * WIDTH) * 2 - 1, (y + 0.5) / (scale * HEIGHT) * 2 - 1
    seen = [look(view) for view in cameras]
    distance = [z * np.linalg.norm(rays(view), axis=-1) for (z, _), view in zip(seen, cameras, strict=True)]
    middle = np.median(distance)
    views, transmission, points = [], [], []
    for (_, clean), far in zip(seen, distance, strict=True):
        layer = 0.7 + change * (rng.normal() + 0.4 * rng.normal() * x + 0.4 * rng.normal() * y)
        T = np.exp(-(np.maximum(layer, 0.05) + 0.35 * far / middle))
        hazy = clean * T[..., None] + AIRLIGHT * (1 - T[..., None])
        views.append(hazy + rng.normal(0, noise, hazy.shape))
        transmission.append(T)
    for (z, _), view in zip(seen, cameras, strict=True):
        rows, columns = rng.integers(0, view.height, 150), rng.integers(0, view.width, 150)
        local = rays(view)[rows, columns] * z[rows, columns][:, None]
        points.append((local - view.viewmat[:3, 3]) @ view.viewmat[:3, :3])

    def tensor(arrays):
        return torch.tensor(np.stack(arrays), dtype=torch.float32)

    depth, clean = tensor([z for z, _ in seen]), tensor([c for _, c in seen])
    return Capture(tensor(views), clean, tensor(transmission), depth, cameras, np.concatenate(points))
