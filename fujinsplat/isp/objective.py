"""The calibration objective of supplement B: what the base should match, and how regular it should stay."""

import torch
from torch import Tensor
from torch.nn.functional import relu

from fujinsplat.config import IspSettings
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.reference import Operands

# Jacobian safety: how far the map from RAW to the lattice output may depart from the initial front at no cost
LARGEST_SCALE = 4.0
SMALLEST_SCALE = 1 / 8


def q8(encoded: Tensor) -> Tensor:
    """Clamped and rounded to 8 bits in value, the identity in gradient (straight-through)."""
    return encoded + ((encoded.clamp(0, 1) * 255).round() / 255 - encoded).detach()


def photometric(encoded: Tensor, target: Tensor, settings: IspSettings) -> Tensor:
    """Mean squared and mean absolute error of quantized `encoded` `[N, 3]` against camera RGB / 255."""
    error = q8(encoded) - target
    return settings.weight_mse * error.square().mean() + settings.weight_l1 * error.abs().mean()


def patch_means(encoded: Tensor, target_means: Tensor) -> Tensor:
    """Mean squared error of the RGB means of patches `[patches, side * side, 3]`."""
    return (q8(encoded).mean(dim=1) - target_means).square().mean()


def out_of_range(front: Tensor) -> Tensor:
    """Squared hinge of the front's linear output below 0 and above 1."""
    return (relu(-front).square() + relu(front - 1).square()).mean()


def probe(raw_linear: Tensor, step: float) -> Tensor:
    """The pixels `[N, 3]` themselves and moved by `step` along each channel: `[4 N, 3]`, for finite differences."""
    moves = torch.cat([torch.zeros(1, 3), torch.eye(3)]).to(raw_linear) * step
    return (raw_linear + moves[:, None]).reshape(-1, 3)


def jacobian_safety(probed: Tensor, step: float, initial_front: Tensor) -> Tensor:
    """Penalty on the singular values and orientation of the map from RAW, by finite differences.

    `probed` `[4 N, 3]` is the map's linear output at `probe(...)`: through gains, matrix and lattice, before Tone257
    (whose slope is positive by construction). Jacobians are taken relative to the initial front, which makes every
    quantity dimensionless: 1 means "as the initial front". Logarithmic excesses are squared; a mirrored Jacobian costs
    1. All terms are zero for a base near its initial front.
    """
    origin, *moved = probed.reshape(4, -1, 3)
    rows = torch.stack([(end - origin) / step for end in moved], dim=1)  # [N, 3, 3]: row j is d out / d raw_j
    relative = torch.linalg.solve(initial_front, rows)
    scale = torch.linalg.svdvals(relative)  # [N, 3], descending
    tiny = 1e-6
    trace = relative.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 3
    excess = relu((trace.clamp_min(tiny) / LARGEST_SCALE).log()).square()
    excess = excess + relu((scale[:, 0].clamp_min(tiny) / LARGEST_SCALE).log()).square()
    lack = relu((SMALLEST_SCALE / scale[:, 2].clamp_min(tiny)).log()).square()
    orientation = relu(-torch.linalg.det(relative) / scale.detach().prod(dim=-1).clamp_min(tiny**3))
    return (excess + lack + orientation).mean()


def _energy(nodes: Tensor, axes: tuple[int, ...], order: int) -> Tensor:
    """Sum of squared differences of `order` along `axes`."""
    return sum(torch.diff(nodes, n=order, dim=axis).square().sum() for axis in axes)


def lattice_energy(lattice: Tensor, order: int) -> Tensor:
    """First- or second-order energy of the latent action sampled at the 33^3 nodes: a sum, so that nodes no pixel
    reads feel it beside Adam's epsilon and follow their neighbours."""
    return _energy(lattice, (0, 1, 2), order)


def curvature(operands: Operands) -> Tensor:
    """Sum of squared second differences of the shaper's and the tone curve's nodes (the identity has none)."""
    return _energy(operands.shaper, (1,), 2) + _energy(operands.tone, (1,), 2)


def front_size(base: BaseISP) -> Tensor:
    """L2 of what calibration adds to exposure, white balance and matrix."""
    return sum(parameter.square().sum() for parameter in base.front_parameters())
