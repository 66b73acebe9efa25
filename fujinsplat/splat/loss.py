"""The photometric objective (1 - w) L1 + w (1 - SSIM) between display-encoded pictures [supp. G].

Both pictures receive a gradient: the render, for the Gaussians, and the developed target, for the delta-ISP. Also
here: the display encoding of a linear render, with a cheap gradient.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from fujinsplat.splat import display_kernel
from fujinsplat.splat import loss_kernel as kernel


def _fused(picture: Tensor) -> bool:
    """Whether the kernels do it: float32 on the CPU."""
    return picture.device.type == "cpu" and picture.dtype == torch.float32


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
    """Mean structural similarity of `[H, W, 3]` pictures: 11-tap Gaussian window of deviation 1.5, zeros outside."""
    window = torch.as_tensor(kernel.WINDOW, dtype=x.dtype, device=x.device)
    window = (window[:, None] * window[None, :]).expand(3, 1, -1, -1)

    def blur(picture: Tensor) -> Tensor:
        return conv2d(picture.permute(2, 0, 1)[None], window, padding=kernel.RADIUS, groups=3)

    m, n = blur(x), blur(y)
    xx, yy, xy = blur(x * x) - m * m, blur(y * y) - n * n, blur(x * y) - m * n
    c1, c2 = 0.01**2, 0.03**2
    return (((2 * m * n + c1) * (2 * xy + c2)) / ((m * m + n * n + c1) * (xx + yy + c2))).mean()


def photometric_loss(rendered_encoded: Tensor, target_encoded: Tensor, weight: float) -> Tensor:
    """(1 - weight) L1 + weight (1 - SSIM) of `[H, W, 3]` encoded pictures, differentiable in both."""
    if _fused(rendered_encoded):
        return _Photometric.apply(rendered_encoded, target_encoded, weight)
    l1 = (rendered_encoded - target_encoded).abs().mean()
    return (1 - weight) * l1 + weight * (1 - ssim(rendered_encoded, target_encoded))


class _Display(torch.autograd.Function):
    """clamp to [0, 1], sRGB-encode; the derivative of the power is taken from its value, not by a second power."""

    @staticmethod
    def forward(ctx, linear: Tensor) -> Tensor:
        clamped = linear.clamp(0, 1)
        power = clamped.clamp_min(0.0031308) ** (1 / 2.4)
        toe = clamped <= 0.0031308
        ctx.save_for_backward(linear, power, toe)
        return torch.where(toe, clamped * 12.92, power.mul_(1.055).sub_(0.055))

    @staticmethod
    def backward(ctx, v: Tensor) -> Tensor:
        linear, encoded, toe = ctx.saved_tensors  # `encoded` holds 1.055 x^(1/2.4) - 0.055
        slope = (encoded + 0.055) / (2.4 * linear.clamp_min(0.0031308))
        slope = torch.where(toe, 12.92, slope)
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


def psnr(a: Tensor, b: Tensor) -> float:
    """Peak signal-to-noise ratio of two pictures in [0, 1], dB; capped at 100 so that logs stay plain numbers."""
    return min(100.0, -10 * float(torch.log10((a.detach() - b.detach()).square().mean() + 1e-12)))
