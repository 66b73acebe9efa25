"""The flow on the CPU: tables of straight pieces made by torch, pixels walked by the kernels, gradients through both.

The 573 coefficients meet the pixels only through tables: one (intercept, slope) per piece of each curve and
conditioner. Torch makes the tables, in float64 whatever the pixels are (they are small, and their rounding would reach
every pixel), so that its autograd carries gradients from tables to coefficients; the kernels do the rest.
"""

import torch

from fujinsplat.flow import kernels
from fujinsplat.flow.layout import COUPLING_BOUND, COUPLINGS, KNOTS, SEGMENTS, split
from fujinsplat.flow.reference import curve_tables
from fujinsplat.kernels.simd import COPIES, lanes

# a gradient task's pixels; large pictures make at most about MOST_TASKS, each with accumulators of its own
TASK = 2048
MOST_TASKS = 64


def apply(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """As `reference.apply`: `rgb [B, N, 3]` through `action [B, P]`."""
    return _Walk.apply(rgb, *tables(action, K, M, rgb.dtype, inverse=False), K, M, False)


def invert(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """As `reference.invert`."""
    return _Walk.apply(rgb, *tables(action, K, M, rgb.dtype, inverse=True), K, M, True)


def tables(action: torch.Tensor, K: int, M: int, dtype: torch.dtype, inverse: bool):
    """curves `[B, K+1, 3, 2, W]`, nodes `[B, K+1, 3, W]`, couplings `[B, K, 3, 2, W']`, padded to whole registers.

    Axis 2 of `curves` and `nodes` holds the roles (x, y, z) of the stage that follows, not channels: channel k + role
    modulo 3 at stage k. A curve's inverse on a piece is the line with slope 1/s and intercept -a/s.
    """
    curves, couplings = split(action.double(), K, M)
    nodes, slopes, intercepts = curve_tables(curves)
    if inverse:
        slopes, intercepts = 1 / slopes, -intercepts / slopes
    lines = torch.stack([intercepts, slopes], dim=-2)
    channel = (torch.arange(K + 1)[:, None] + torch.arange(3)) % 3
    block = torch.arange(K + 1)[:, None]
    lines, nodes = lines[:, block, channel], nodes[:, block, channel]

    # s2 and s3 are halved here once instead of at every pixel
    knots = COUPLING_BOUND * torch.tanh(couplings) * couplings.new_tensor([1.0, 0.5, 0.5])[:, None]
    rise = (knots[..., 1:] - knots[..., :-1]) * (KNOTS - 1)
    left = torch.arange(KNOTS - 1, dtype=knots.dtype) / (KNOTS - 1)
    splines = torch.stack([knots[..., :-1] - rise * left, rise], dim=-2)

    count = lanes(dtype.itemsize)
    width, knot_width = (max(count, 1 << (pieces - 1).bit_length()) for pieces in (M, KNOTS - 1))
    return (
        _padded(lines, width).to(dtype),
        _padded(nodes.detach(), width, torch.inf).to(dtype),
        _padded(splines, knot_width).to(dtype),
    )


def _padded(table: torch.Tensor, width: int, value: float = 0.0) -> torch.Tensor:
    return torch.nn.functional.pad(table, (0, width - table.shape[-1]), value=value)


def _flat(tensor: torch.Tensor):
    return tensor.detach().contiguous().view(-1).numpy()


def _wide(table: torch.Tensor) -> tuple[int, ...]:
    return (0,) * (table.shape[-1] // lanes(table.dtype.itemsize))


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rgb, curves, nodes, couplings, K, M, inverse):
        out = torch.empty(rgb.shape, dtype=rgb.dtype)
        B, N, _ = rgb.shape
        tables = _flat(curves), _flat(nodes), _flat(couplings)
        kernels.run(_flat(rgb), _flat(out), B, N, K, M, *tables, _wide(curves), _wide(couplings), inverse)
        ctx.save_for_backward(rgb, curves, nodes, couplings)
        ctx.form = K, M, inverse
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, out_gradient):
        rgb, curves, nodes, couplings = ctx.saved_tensors
        K, M, inverse = ctx.form
        B, N, _ = rgb.shape
        per_task = max(TASK, -(-N // MOST_TASKS // TASK) * TASK)
        tasks = -(-N // per_task)
        in_gradient = torch.empty(rgb.shape, dtype=rgb.dtype)
        sums = [torch.zeros(B * tasks, COPIES * t[0].numel(), dtype=rgb.dtype) for t in (curves, couplings)]
        kernels.gradient(
            _flat(rgb),
            _flat(out_gradient),
            _flat(in_gradient),
            B,
            N,
            K,
            M,
            per_task,
            _flat(curves),
            _flat(nodes),
            _flat(couplings),
            sums[0].numpy(),
            sums[1].numpy(),
            _wide(curves),
            _wide(couplings),
            inverse,
        )
        totals = []
        for total, table in zip(sums, (curves, couplings), strict=True):
            blocks, _, _, width = table.shape[1:]
            total = total.view(B, tasks, blocks, 3, COPIES, width, 2).sum(dim=(1, 4))
            totals.append(total.transpose(-1, -2))
        return in_gradient, totals[0], None, totals[1], None, None, None
