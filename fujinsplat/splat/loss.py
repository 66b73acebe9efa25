"""The photometric objective (1 - w) L1 + w (1 - SSIM) between display-encoded pictures [supp. G].

Both pictures receive a gradient: the render, for the Gaussians, and the developed target, for the delta-ISP. Also
here: the display encoding of a linear render, with a cheap gradient.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from fujinsplat.core import color, gpu
from fujinsplat.splat import display_kernel
from fujinsplat.splat import loss_kernel as kernel


def _fused(picture: Tensor) -> bool:
    """Whether the kernels do it: float32 on the CPU."""
    return not gpu.holds(picture) and picture.dtype == torch.float32


class _Photometric(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, y: Tensor, weight: float) -> Tensor:
        height, width, _ = x.shape
        n, both = x.numel(), ctx.needs_input_grad[1]
        strips = -(-3 * width // kernel.STRIP)
        similarity, distance = np.empty((height, strips), np.float32), np.empty((height, strips), np.float32)
        v_x, v_y = np.empty(n, np.float32), np.empty(n if both else 0, np.float32)
        kernel.photometric(
            x.detach().contiguous().numpy().reshape(-1), y.detach().contiguous().numpy().reshape(-1),
            height, 3 * width, np.float32(weight), both, np.empty(4 * n, np.float32), v_x, v_y, similarity, distance,
        )  # fmt: skip
        ctx.gradients = torch.from_numpy(v_x).view_as(x), torch.from_numpy(v_y).view_as(y) if both else None
        l1, ssim = distance.sum(dtype=np.float64) / n, similarity.sum(dtype=np.float64) / n
        return torch.tensor((1 - weight) * l1 + weight * (1 - ssim), dtype=torch.float32)

    @staticmethod
    def backward(ctx, v):
        v_x, v_y = ctx.gradients
        return v_x * v, None if v_y is None else v_y * v, None


def ssim(x: Tensor, y: Tensor) -> Tensor:
    """Mean structural similarity of `[H, W, 3]` pictures: 11-tap Gaussian window of deviation 1.5, zeros outside.

    The window is a product of two, so rows and columns are blurred one after the other, all five moments at once; the
    colours of a pixel stay beside each other, and the taps along a row lie three apart.
    """
    height, width, _ = x.shape
    down, along = _windows(x.dtype, x.device)
    moments = torch.stack([x, y, x * x, y * y, x * y]).view(5, 1, height, 3 * width)
    blurred = conv2d(moments, down, padding=(kernel.RADIUS, 0))
    m, n, xx, yy, xy = conv2d(blurred, along, padding=(0, 3 * kernel.RADIUS), dilation=(1, 3)).unbind(0)
    xx, yy, xy = xx - m * m, yy - n * n, xy - m * n
    c1, c2 = 0.01**2, 0.03**2
    return (((2 * m * n + c1) * (2 * xy + c2)) / ((m * m + n * n + c1) * (xx + yy + c2))).mean()


@cache
def _windows(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """The window's two factors as weights of a convolution, kept on the device."""
    taps = torch.as_tensor(kernel.WINDOW, dtype=dtype, device=device)
    return taps.view(1, 1, -1, 1), taps.view(1, 1, 1, -1)


@cache
def _one_kernel_ssim() -> Callable | None:
    """The package fused-ssim where it is installed: the same window and constants, in one kernel."""
    try:
        return import_module("fused_ssim").fused_ssim
    except ImportError:
        return None


def _similarity(x: Tensor, y: Tensor) -> Tensor:
    """`ssim`; in one kernel where it can be, which has gradients for its first picture alone."""
    fused = _one_kernel_ssim()
    if fused is None or y.requires_grad or not gpu.holds(x):
        return ssim(x, y)
    return fused(*(picture.permute(2, 0, 1)[None].contiguous() for picture in (x, y)), padding="same")


def photometric_loss(rendered_encoded: Tensor, target_encoded: Tensor, weight: float) -> Tensor:
    """(1 - weight) L1 + weight (1 - SSIM) of `[H, W, 3]` encoded pictures, differentiable in both."""
    if _fused(rendered_encoded):
        return _Photometric.apply(rendered_encoded, target_encoded, weight)
    l1 = (rendered_encoded - target_encoded).abs().mean()
    return (1 - weight) * l1 + weight * (1 - _similarity(rendered_encoded, target_encoded))


class _Display(torch.autograd.Function):
    """clamp to [0, 1], sRGB-encode; the derivative of the power is taken from its value, not by a second power."""

    @staticmethod
    def forward(ctx, linear: Tensor) -> Tensor:
        clamped = linear.clamp(0, 1)
        power = clamped.clamp_min(color.KNEE_LINEAR) ** color.POWER
        toe = clamped <= color.KNEE_LINEAR
        ctx.save_for_backward(linear, power, toe)
        return torch.where(toe, clamped * color.TOE, power.mul_(color.SCALE).sub_(color.OFFSET))

    @staticmethod
    def backward(ctx, v: Tensor) -> Tensor:
        linear, encoded, toe = ctx.saved_tensors  # `encoded` holds the curve above its toe
        slope = (encoded + color.OFFSET) * color.POWER / linear.clamp_min(color.KNEE_LINEAR)
        slope = torch.where(toe, color.TOE, slope)
        return v * slope.masked_fill_((linear < 0) | (linear > 1), 0)


class _FusedDisplay(torch.autograd.Function):
    """The same on the CPU, value and slope in one pass."""

    @staticmethod
    def forward(ctx, linear: Tensor) -> Tensor:
        linear = linear.detach().contiguous()
        encoded, slope = torch.empty_like(linear), torch.empty_like(linear)
        display_kernel.display(*(picture.view(-1).numpy() for picture in (linear, encoded, slope)))
        ctx.slope = slope
        return encoded

    @staticmethod
    def backward(ctx, v: Tensor) -> Tensor:
        return v * ctx.slope


def display(linear: Tensor) -> Tensor:
    """A linear render as it is shown and compared: clamped to [0, 1], sRGB-encoded."""
    return (_FusedDisplay if _fused(linear) else _Display).apply(linear)
