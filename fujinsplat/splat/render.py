"""Pictures from trained Gaussians: poses and intrinsics in, 8-bit PNGs out. No photograph is opened here."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.files import atomic_folder
from fujinsplat.progress import progress
from fujinsplat.splat.loss import display
from fujinsplat.splat.model import Gaussians


def camera_tensors(camera: Camera, device) -> tuple[Tensor, Tensor, int, int]:
    """(viewmat, K, width, height) as `Gaussians.render` takes them."""
    viewmat = torch.tensor(camera.viewmat, dtype=torch.float32, device=device)
    return viewmat, torch.tensor(camera.K, dtype=torch.float32, device=device), camera.width, camera.height


@torch.no_grad()
def render_encoded(gaussians: Gaussians, camera: Camera) -> Tensor:
    """What `camera` sees: display-encoded `[H, W, 3]` in [0, 1]."""
    device = gaussians.parameters["means"].device
    return display(gaussians.render(*camera_tensors(camera, device))[0])


def resized(camera: Camera, width: int | None) -> Camera:
    """The camera at another picture width, same shape."""
    if width is None:
        return camera
    return camera.scaled(width, max(1, round(camera.height * width / camera.width)))


def render_folder(gaussians: Gaussians, cameras: Iterable[Camera], out: Path) -> int:
    """One `{stem}.png` per camera into `out`, which appears whole; returns how many."""
    from PIL import Image

    cameras = list(cameras)
    with atomic_folder(out) as folder:
        for camera in progress(cameras, "pictures"):
            picture = (render_encoded(gaussians, camera).cpu().numpy() * 255 + 0.5).astype(np.uint8)
            Image.fromarray(picture).save(folder / f"{camera.stem}.png")
    return len(cameras)
