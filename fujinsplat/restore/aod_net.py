"""AOD-Net (Li et al., ICCV 2017): five small convolutions give K, and the clean picture is K x - K + 1.

1,761 parameters. The weights are taken from a torch file with the tensors `e_conv1..5.{weight,bias}`, such as
`snapshots/dehazer.pth` of MayankSingal/PyTorch-Image-Dehazing (MIT licence); they are in no package registry.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fujinsplat.core.errors import UserError

# layer -> (which earlier outputs it reads, size of its kernel); output 0 is the picture
LAYERS = {1: ((0,), 1), 2: ((1,), 3), 3: ((1, 2), 5), 4: ((2, 3), 7), 5: ((1, 2, 3, 4), 3)}


def read_weights(path: Path) -> dict[str, Tensor]:
    """The ten tensors, checked for their shapes."""
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(f"{path} is not a torch weights file ({type(error).__name__}); name AOD-Net's") from None
    for layer, (reads, size) in LAYERS.items():
        for kind, shape in (("weight", (3, 3 * len(reads), size, size)), ("bias", (3,))):
            found = tensors.get(f"e_conv{layer}.{kind}") if isinstance(tensors, dict) else None
            if found is None or tuple(found.shape) != shape:
                raise UserError(f"{path} has no e_conv{layer}.{kind} of shape {list(shape)}; name AOD-Net's weights")
    return tensors


@torch.no_grad()
def restore_picture(picture: np.ndarray, weights: dict[str, Tensor]) -> np.ndarray:
    """uint8 `[H, W, 3]` encoded in, uint8 out."""
    hazy = torch.from_numpy(picture.astype(np.float32) / 255).permute(2, 0, 1)[None]
    outputs = [hazy]
    for layer, (reads, size) in LAYERS.items():
        given = torch.cat([outputs[i] for i in reads], 1)
        weight, bias = (weights[f"e_conv{layer}.{kind}"].float() for kind in ("weight", "bias"))
        outputs.append(F.relu(F.conv2d(given, weight, bias, padding=size // 2)))
    clear = (outputs[-1] * hazy - outputs[-1] + 1).clamp(0, 1)
    return (clear[0].permute(1, 2, 0).numpy() * 255 + 0.5).astype(np.uint8)
