"""The public Monotone Color Flow: `apply` and `invert`, and the one place that decides which implementation runs."""

import torch

from fujinsplat.flow import reference
from fujinsplat.flow.layout import COUPLINGS, SEGMENTS, check


def apply(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """Develop encoded colours with an action: `T_p(rgb)`.

    rgb `[B, ..., 3]` with action `[B, P]`, or rgb `[..., 3]` with one action `[P]`; float32 or float64, differentiable
    in both (first derivatives; `reference.apply` also takes forward mode). The result has rgb's shape and is never
    clamped.
    """
    return _run("apply", rgb, action, K, M)


def invert(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """The closed-form inverse: `invert(apply(x, p), p) = x`, inside and outside [0, 1]; shapes as `apply`.

    How exact floating point lets it be depends on how flat the curves are together, because what eight stacked curves
    squeeze below one rounding step is gone. Largest error of `invert(apply(x))` over 200 actions of independent normal
    coefficients with the given deviation, 2,000 colours each in [-1, 2]^3 (K = 7, M = 16):

        deviation        0.05      0.1      0.2      0.3      0.5
        float64         5e-15    1e-13    4e-10    2e-06       1
        float32         3e-06    9e-05     0.1     lost     lost

    so beyond a deviation of about 0.2 (float64) or 0.1 (float32) in all blocks at once the inverse is limited by
    floating point; `apply(invert(y))` stays below 2e-8 in float64 at any size. Actions whose strong coefficients sit
    in one curve block, as compiled labels do, invert to 1e-10 at any size in float64; in float32 to 1e-5, 2e-3 and
    0.02 at deviations 0.3, 1 and 3.
    """
    return _run("invert", rgb, action, K, M)


def _run(direction: str, rgb: torch.Tensor, action: torch.Tensor, K: int, M: int) -> torch.Tensor:
    check(action, K, M)
    if rgb.shape[-1] != 3:
        raise ValueError(f"colours need a last axis of 3 (RGB), not shape {tuple(rgb.shape)}")
    if action.dim() == 1:
        flat, actions = rgb.reshape(1, -1, 3), action[None]
    elif action.dim() == 2 and rgb.dim() >= 2 and rgb.shape[0] == action.shape[0]:
        flat, actions = rgb.reshape(len(rgb), -1, 3) if rgb.numel() else rgb.reshape(len(rgb), 0, 3), action
    else:
        raise ValueError(f"rgb {tuple(rgb.shape)} and action {tuple(action.shape)} do not share a batch")
    dtype = torch.promote_types(rgb.dtype, action.dtype)
    if dtype not in (torch.float32, torch.float64):
        dtype = torch.float32
    result = getattr(implementation(rgb.device), direction)(flat.to(dtype), actions.to(dtype), K, M)
    return result.reshape(rgb.shape)


def implementation(device: torch.device):
    """The module with `apply` and `invert` for tensors on `device`."""
    if device.type == "cpu":
        from fujinsplat.flow import fused

        return fused
    return reference
