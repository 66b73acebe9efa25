"""The objective's large sums with their gradients in one pass: the CPU twin of `objective`'s plain functions."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fujinsplat.kernels.fastmath import OPTIONS as FAST
from fujinsplat.kernels.jit import kernel

if TYPE_CHECKING:
    from fujinsplat.core.settings import IspSettings

# exact division: a predicted level that equals the camera's must differ from it by zero, or its sign would count
OPTIONS = {**FAST, "fastmath": {"contract", "nsz"}}
_ZERO, _ONE = np.float32(0), np.float32(1)
_FULL = np.float32(255)


@njit(inline="always", **OPTIONS)
def _q8(encoded):
    held = min(max(encoded, _ZERO), _ONE)
    return np.rint(held * _FULL) / _FULL


@kernel(**OPTIONS)
def _photometric(front, encoded, target, patch_target, side, w_mse, w_l1, w_patch, w_range, g_front, g_encoded):
    """Fills both gradients; returns (photometric loss, range loss). Pixels come first, patches behind."""
    pixels, patches = target.shape[0], patch_target.shape[0]
    seen = pixels + patches * side
    square, absolute, patch, outside = 0.0, 0.0, 0.0, 0.0
    by_square, by_absolute = np.float32(2 * w_mse / (3 * pixels)), np.float32(w_l1 / (3 * pixels))
    for i in range(pixels):
        for c in range(3):
            error = _q8(encoded[i, c]) - target[i, c]
            square += error * error
            absolute += abs(error)
            g_encoded[i, c] = by_square * error + by_absolute * np.sign(error)
    for p in range(patches):
        first = pixels + p * side
        for c in range(3):
            total = 0.0
            for i in range(first, first + side):
                total += _q8(encoded[i, c])
            error = total / side - patch_target[p, c]
            patch += error * error
            slope = np.float32(2 * w_patch * error / (3 * patches * side))
            for i in range(first, first + side):
                g_encoded[i, c] = slope
    by_range = np.float32(2 * w_range / (3 * seen))
    for i in range(seen):
        for c in range(3):
            x = front[i, c]
            excess = min(x, _ZERO) + max(x - _ONE, _ZERO)
            outside += excess * excess
            g_front[i, c] = by_range * excess
    g_front[seen:] = _ZERO
    g_encoded[seen:] = _ZERO
    matched = w_mse * square / (3 * pixels) + w_l1 * absolute / (3 * pixels)
    if patches:
        matched += w_patch * patch / (3 * patches)
    return matched, w_range * outside / (3 * seen)


class _Photometric(torch.autograd.Function):
    @staticmethod
    def forward(ctx, front, encoded, target, patch_target, side, settings):
        gradients = torch.empty_like(front), torch.empty_like(encoded)
        weights = (settings.weight_mse, settings.weight_l1, settings.weight_patch, settings.weight_range)
        found, shown, wanted, patch = (t.detach().numpy() for t in (front, encoded, target, patch_target))
        by_front, by_encoded = (g.numpy() for g in gradients)
        matched, outside = _photometric(found, shown, wanted, patch, side, *weights, by_front, by_encoded)
        ctx.save_for_backward(*gradients)
        both, alone = front.new_tensor(matched + outside), front.new_tensor(matched)
        ctx.mark_non_differentiable(alone)
        return both, alone

    @staticmethod
    def backward(ctx, upstream, _):
        return *(upstream * g for g in ctx.saved_tensors), None, None, None, None


def photometric_and_range(
    front: Tensor, encoded: Tensor, target: Tensor, patch_target: Tensor, side: int, settings: "IspSettings"
) -> tuple[Tensor, Tensor]:
    """(weighted photometric, patch and range terms together; the first two alone, without gradient)."""
    return _Photometric.apply(front, encoded, target, patch_target, side, settings)
