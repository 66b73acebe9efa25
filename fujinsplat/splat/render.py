"""Pictures from trained Gaussians: poses and intrinsics in, 8-bit PNGs out. No photograph is opened here."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.core.files import atomic_folder
from fujinsplat.core.progress import progress
from fujinsplat.splat.model import Gaussians


def camera_tensors(camera: Camera, device) -> tuple[Tensor, Tensor, int, int]:
    """(viewmat, K, width, height) as `Gaussians.render` takes them."""
    viewmat = torch.tensor(camera.viewmat, dtype=torch.float32, device=device)
    return viewmat, torch.tensor(camera.K, dtype=torch.float32, device=device), camera.width, camera.height


@torch.no_grad()
def render_encoded(gaussians: Gaussians, camera: Camera) -> Tensor:
    """What `camera` sees, without any medium: display-encoded `[H, W, 3]` in [0, 1]."""
    device = gaussians.parameters["means"].device
    return gaussians.display(gaussians.render(*camera_tensors(camera, device))[0])


@torch.no_grad()
def render_through_medium(gaussians: Gaussians, camera: Camera) -> Tensor:
    """What `camera` sees through the model's medium: display-encoded `[H, W, 3]` in [0, 1]."""
    from fujinsplat.splat.media.stored import through_medium

    device = gaussians.parameters["means"].device
    return gaussians.display(through_medium(gaussians, *camera_tensors(camera, device)))


def resized(camera: Camera, width: int | None) -> Camera:
    """The camera at another picture width, same shape."""
    if width is None:
        return camera
    return camera.scaled(width, max(1, round(camera.height * width / camera.width)))


def render_folder(gaussians: Gaussians, cameras: Iterable[Camera], out: Path, medium: bool = False) -> int:
    """One `{stem}.png` per camera into `out`, which appears whole; returns how many. `medium`: through the medium."""
    from PIL import Image

    cameras = list(cameras)
    render = render_through_medium if medium else render_encoded
    with atomic_folder(out, (".png",)) as folder:
        for camera in progress(cameras, "pictures"):
            picture = (render(gaussians, camera).cpu().numpy() * 255 + 0.5).astype(np.uint8)
            Image.fromarray(picture).save(folder / f"{camera.stem}.png")
    return len(cameras)
