"""What the controller is trained for [supp. G]: coefficients, the picture they make, and colour maps as functions."""

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from fujinsplat.core.settings import ControllerSettings
from fujinsplat.flow import apply
from fujinsplat.flow.layout import curve_size
from fujinsplat.flow.photometric import Target, photometric


def parameter_loss(predicted: Tensor, label: Tensor, K: int, M: int, beta: float) -> Tensor:
    """Smooth L1 on tanh-squashed coefficients `[B, P]`: mean over the K + 1 curve blocks plus that of the couplings."""
    curves = curve_size(K, M)
    predicted, label = torch.tanh(predicted), torch.tanh(label)
    tone = smooth_l1_loss(predicted[:, :curves], label[:, :curves], beta=beta)  # equal blocks: the mean of their means
    return tone + smooth_l1_loss(predicted[:, curves:], label[:, curves:], beta=beta)


def reconstruction_loss(
    predicted: Tensor, base: Tensor, target: Target, K: int, M: int, s: ControllerSettings
) -> Tensor:
    """L1 in linear light, encoded L1 and an out-of-range penalty of the corrected pixels; base, target `[B, N, 3]`."""
    return photometric(apply(base, predicted, K, M), target, s.weight_encoded, s.weight_range).mean()


def function_loss(predicted: Tensor, label: Tensor, probes: Tensor, K: int, M: int) -> Tensor:
    """L1 between what two actions do to probe colours `[n, 3]`, in whatever coefficients they are written (supp. D)."""
    colours = probes.expand(len(predicted), -1, -1).contiguous()
    with torch.no_grad():
        wanted = apply(colours, label, K, M)
    return (apply(colours, predicted, K, M) - wanted).abs().mean()
