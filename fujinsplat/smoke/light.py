"""The light smoke is measured in and rows are trained on: white-balanced camera-linear, at the size of the cameras.

Where a capture has no RAW, what stands in its place is the camera's picture decoded to linear sRGB (the capture stage
says so); its tone curve and 8 bits are not linear light, so expect less than from RAW.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import Camera, SourceViews
from fujinsplat.core.errors import UserError
from fujinsplat.smoke.settings import SmokeSettings
from fujinsplat.smoke.targets import SmokeTargets


def hazy_light(source: Path, cameras: list[Camera]) -> tuple[Tensor, Tensor]:
    """(`[V, h, w, 3]` white-balanced camera-linear views at the cameras' size, white balance `[3]`)."""
    sizes = {(camera.width, camera.height) for camera in cameras}
    if len(sizes) > 1:
        told = ", ".join(f"{width}x{height}" for width, height in sorted(sizes))
        raise UserError(
            f"{source} has views of {len(sizes)} sizes ({told}), and smoke is measured on views of one; leave out the "
            "fewer of them, or build a row that measures no smoke (raw_base)"
        )
    views = SourceViews(source)
    white_balance = views.white_balance(cameras[0].stem).astype(np.float32)
    pictures = [_resized(views.raw(camera.stem) * white_balance, camera) for camera in cameras]
    return torch.stack(pictures), torch.from_numpy(white_balance)


def smoke_light(
    source: Path, base, cameras: list[Camera], xyz: np.ndarray, settings: SmokeSettings, device: str
) -> SmokeTargets:
    """The targets of a training, with what shows them: the white balance and the scene's Base ISP."""
    hazy, white_balance = hazy_light(source, cameras)
    light = SmokeTargets(hazy.to(device), cameras, xyz, settings)
    light.white_balance, light.base = white_balance, base
    return light


def _resized(picture: np.ndarray, camera: Camera) -> Tensor:
    """Area-resized to the camera's size."""
    tensor = torch.from_numpy(np.ascontiguousarray(picture))
    if tensor.shape[:2] == (camera.height, camera.width):
        return tensor
    planes = tensor.permute(2, 0, 1)[None]
    resized = torch.nn.functional.interpolate(planes, (camera.height, camera.width), mode="area")
    return resized[0].permute(1, 2, 0).contiguous()
