"""The calibration objective of supplement B: what the base should match, and how regular it should stay.

The Jacobian term exists twice: `jacobian: output` is the published one, `jacobian: front` ours, chosen by the fidelity
of the base on source views.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import relu

from fujinsplat.core.settings import IspSettings
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.reference import RESIDUAL, Operands

# `jacobian: front`: how far the map from RAW to the lattice output may depart from the initial front at no cost
LARGEST_SCALE = 4.0
SMALLEST_SCALE = 1 / 8
# `jacobian: output`: limits of log(1 + |J|^2), log(1 + s_max) and log s_min of the map from RAW to encoded RGB
LARGEST_NORM, LARGEST_STRETCH, SMALLEST_STRETCH = math.log(28), math.log(9), math.log(0.02)
SAMPLED = 4096  # differences that are drawn of each lattice and order


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


def jacobians(probed: Tensor, step: float) -> Tensor:
    """Forward differences `[N, 3, 3]` of a map whose outputs at `probe(...)` are `probed` `[4 N, 3]`: row j is
    d out / d raw_j."""
    origin, *moved = probed.reshape(4, -1, 3)
    return torch.stack([(end - origin) / step for end in moved], dim=1)


def output_safety(probed_encoded: Tensor, step: float) -> Tensor:
    """The published penalty: of the whole map's Jacobian, from RAW to encoded RGB at `probe(...)`.

    Squared excess of log(1 + |J|^2) and log(1 + s_max), squared lack of log s_min, and a mirrored orientation.
    """
    rows, tiny = jacobians(probed_encoded, step), 1e-12
    scale = torch.linalg.svdvals(rows)  # [N, 3], descending
    size = relu(torch.log1p(rows.square().sum(dim=(-2, -1))) - LARGEST_NORM).square()
    stretch = relu(torch.log1p(scale[:, 0]) - LARGEST_STRETCH).square()
    lack = relu(SMALLEST_STRETCH - scale[:, 2].clamp_min(tiny).log()).square()
    mirrored = relu(-torch.linalg.det(rows) / scale.prod(dim=-1).clamp_min(tiny)).square()
    return (size + stretch + lack + mirrored).mean()


def front_safety(probed: Tensor, step: float, initial_front: Tensor) -> Tensor:
    """Penalty on the singular values and orientation of the map from RAW, by finite differences.

    `probed` `[4 N, 3]` is the map's linear output at `probe(...)`: through gains, matrix and lattice, before Tone257
    (whose slope is positive by construction). Jacobians are taken relative to the initial front, which makes every
    quantity dimensionless: 1 means "as the initial front". Logarithmic excesses are squared; a mirrored Jacobian costs
    1. All terms are zero for a base near its initial front.
    """
    relative = torch.linalg.solve(initial_front, jacobians(probed, step))
    scale = torch.linalg.svdvals(relative)  # [N, 3], descending
    tiny = 1e-6
    trace = relative.diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 3
    excess = relu((trace.clamp_min(tiny) / LARGEST_SCALE).log()).square()
    excess = excess + relu((scale[:, 0].clamp_min(tiny) / LARGEST_SCALE).log()).square()
    lack = relu((SMALLEST_SCALE / scale[:, 2].clamp_min(tiny)).log()).square()
    orientation = relu(-torch.linalg.det(relative) / scale.detach().prod(dim=-1).clamp_min(tiny**3))
    return (excess + lack + orientation).mean()


def difference_places(side: int, order: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where SAMPLED differences of `order` start in a flat `[side, side, side, 3]` table, and the step to the next
    node; axes, positions and channels are drawn evenly."""
    axis = torch.randint(3, (SAMPLED,), generator=generator)
    place = torch.randint(side, (3, SAMPLED), generator=generator)
    along = torch.randint(side - order, (SAMPLED,), generator=generator)
    place[axis, torch.arange(SAMPLED)] = along
    channel = torch.randint(3, (SAMPLED,), generator=generator)
    steps = torch.tensor([3 * side * side, 3 * side, 3])
    return (place * steps[:, None]).sum(dim=0) + channel, steps[axis]


def sampled_energy(nodes: Tensor, order: int, generator: torch.Generator, bounded: bool = False) -> Tensor:
    """Mean square of freshly drawn differences of a lattice `[side, side, side, 3]`; `bounded`: of 0.1 tanh of it."""
    start, step = (t.to(nodes.device) for t in difference_places(nodes.shape[0], order, generator))
    flat = nodes.reshape(-1)
    values = [flat[start + k * step] for k in range(order + 1)]
    values = [RESIDUAL * torch.tanh(v) for v in values] if bounded else values
    for _ in range(order):
        values = [after - before for before, after in pairwise(values)]
    return values[0].square().mean()


def energies(base: BaseISP, order: int, generator: torch.Generator) -> Tensor:
    """Energy of an order of both lattices, each on its own: of what they add to the latent."""
    coarse = sampled_energy(base.g9, order, generator)
    return coarse + sampled_energy(base.r33, order, generator, bounded=True)


def curvature(operands: Operands) -> Tensor:
    """Mean squared second differences of the shaper's and the tone curve's nodes (the identity has none)."""
    shaper, tone = (torch.diff(curve, n=2, dim=1).square().mean() for curve in (operands.shaper, operands.tone))
    return shaper + tone


def front_size(base: BaseISP) -> Tensor:
    """Mean squares of what calibration adds to exposure, white balance and matrix."""
    exposure, white_balance, generator = (parameter.square().mean() for parameter in base.front_parameters())
    return exposure + white_balance + generator


def smoothness(base: BaseISP, operands: Operands, settings: IspSettings, generator: torch.Generator) -> Tensor:
    """The weighted shape terms that look at parameters alone."""
    first, second = (energies(base, order, generator) for order in (1, 2))
    rest = second + curvature(operands) + front_size(base)
    return settings.weight_lattice * first + settings.weight_smooth * rest
