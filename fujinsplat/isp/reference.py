"""The Base ISP as supplement B writes it, in plain torch: any device, any float type, differentiable in everything.

Camera-linear RAW `[..., 3]` goes through six modules in a fixed order, colours last:

1. exposure and white balance: `exp(.)` gains                         RAW -> white-balanced linear
2. colour-correction row matrix: parent @ expm(generator)             -> linear display RGB, the "front" output
3. Shaper257: a monotone curve on the rational coordinate             -> where the lattice is read, [0, 1]
4. lattice: G9 + 0.1 tanh(R33), added to the asinh latent             -> linear display RGB
5. Tone257: a monotone residual in the asinh latent                   -> linear display RGB, or encoded RGB
6. output encoding: none (Tone257 ends encoded: published), or sRGB   -> encoded RGB, not clamped

Both lattices are read trilinearly first; the bound acts on what was read: G9(u) + 0.1 tanh(R33(u)).

The curves are kept as deviations from the identity, so a zero parameter vector is the identity of its module.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fujinsplat.core import color

SCALE = 0.05  # of the asinh latent and of the rational coordinate
SEGMENTS = 256  # of Shaper257 and Tone257: 257 nodes
COARSE, FINE = 9, 33  # nodes per side of G9 and R33
RESIDUAL = 0.1  # bound of the fine lattice
TONE_RANGE = 8.0  # Tone257 acts on latents in [-8, 8] and is the identity outside
# softplus is positive for every parameter in exact arithmetic; these keep a sum of it positive and finite in floats
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-30, 1e30
UNIT_SOFTPLUS = math.log(math.e - 1)  # softplus of it is 1: where a zero parameter sits
CURVE_LIMIT = 4.0  # calibration keeps curve parameters within +- this
FIRST_WITH_SECOND: Any = ([0], [1])  # axes to contract; torch declares a number of axes alone


class Operands(NamedTuple):
    """What the pixels meet, made once from the parameters; both the reference and the fused path read these."""

    front: Tensor  # [3, 3] row matrix with the gains inside: linear = raw @ front
    shaper: Tensor  # [3, 257] deviation of the shaper from the identity on [0, 1]
    coarse: Tensor  # [9, 9, 9, 3] G9: latent action at its nodes, axes in the order r, g, b
    fine: Tensor  # [33, 33, 33, 3] R33: bounded by 0.1 tanh after it is read
    tone: Tensor  # [3, 257] deviation of the tone curve from the identity on [-8, 8]


def gains(log_exposure: Tensor, log_white_balance: Tensor) -> Tensor:
    """Channel gains `[3]`. The white balance is mean-centred, so that overall scale belongs to the exposure alone."""
    return torch.exp(log_exposure + log_white_balance - log_white_balance.mean())


def curve_deviation(parameter: Tensor, length: float) -> Tensor:
    """Node deviations `[3, 257]` from the identity of the monotone curve with increments softplus(`[3, 256]`).

    The curve runs from 0 to `length` over 256 equal steps; its ends are fixed, so both deviations there are zero.
    """
    weight = torch.nn.functional.softplus(parameter.double() + UNIT_SOFTPLUS).clamp(SMALLEST_WEIGHT, LARGEST_WEIGHT)
    share = weight / weight.sum(dim=-1, keepdim=True) - 1 / SEGMENTS
    deviation = torch.cumsum(share, dim=-1) * length
    # the last sum is zero up to rounding: say so exactly, or the tails would jump by an ulp
    return torch.nn.functional.pad(deviation[..., :-1], (1, 1)).to(parameter.dtype)


def coarse_to_fine(coarse: Tensor) -> Tensor:
    """G9 `[9, 9, 9, 3]` at the 33^3 nodes.

    33 nodes split each of the 8 coarse cells in exactly 4, and a trilinear function stays trilinear inside a part of
    its cell: reading the result trilinearly equals reading G9 itself.
    """
    position = torch.arange(FINE, dtype=coarse.dtype, device=coarse.device) * ((COARSE - 1) / (FINE - 1))
    node = torch.arange(COARSE, dtype=coarse.dtype, device=coarse.device)
    hat = (1 - (position[:, None] - node).abs()).clamp_min(0)  # [33, 9]
    fine = coarse
    for _ in range(3):  # each turn contracts the first axis and appends its fine twin: r, g, b end up behind the colour
        fine = torch.tensordot(fine, hat, dims=FIRST_WITH_SECOND)
    return fine.permute(1, 2, 3, 0)


def lattice_nodes(g9: Tensor, r33: Tensor) -> Tensor:
    """The latent action G9 + 0.1 tanh(R33) at the fine nodes, `[33, 33, 33, 3]`: for figures and smoothness terms.

    Between nodes the action is not the trilinear reading of these values: `lattice_action` is.
    """
    return (coarse_to_fine(g9) + RESIDUAL * torch.tanh(r33)).contiguous()


def coordinate(linear: Tensor) -> Tensor:
    """Rational lattice coordinate x / (x + 0.05) in [0, 1); 0 for negative input."""
    positive = linear.clamp_min(0)
    return positive / (positive + SCALE)


def read_curve(deviation: Tensor, position: Tensor) -> Tensor:
    """Piecewise-linear deviation `[3, 257]` at `position` `[..., 3]` in [0, 1], each channel on its own curve."""
    scaled = position * SEGMENTS
    low = scaled.detach().floor().clamp(0, SEGMENTS - 1)
    index = low.long() + torch.arange(3, device=position.device) * (SEGMENTS + 1)
    flat = deviation.reshape(-1)
    return torch.lerp(flat[index], flat[index + 1], scaled - low)


def read_lattice(nodes: Tensor, position: Tensor) -> Tensor:
    """Trilinear reading of `nodes` `[side, side, side, 3]` at `position` `[..., 3]` in [0, 1]."""
    side = nodes.shape[0]
    scaled = (position * (side - 1)).reshape(-1, 3)
    low = scaled.detach().floor().clamp(0, side - 2)
    fraction = scaled - low
    x, y, z = low.long().unbind(-1)
    index = (x * side + y) * side + z  # CUDA has no product of integer matrices
    flat = nodes.reshape(-1, 3)
    action = torch.zeros_like(scaled)
    for corner in range(8):
        bits = (corner >> 2 & 1, corner >> 1 & 1, corner & 1)
        x, y, z = (fraction[:, axis] if bit else 1 - fraction[:, axis] for axis, bit in enumerate(bits))
        action = action + (x * y * z)[:, None] * flat[index + (bits[0] * side + bits[1]) * side + bits[2]]
    return action.reshape(position.shape)


def lattice_action(coarse: Tensor, fine: Tensor, position: Tensor) -> Tensor:
    """G9(u) + 0.1 tanh(R33(u)) at `position` `[..., 3]`: each lattice is read, then the fine one is bounded."""
    return read_lattice(coarse, position) + RESIDUAL * torch.tanh(read_lattice(fine, position))


def latent_step(linear: Tensor, action: Tensor) -> Tensor:
    """x + s (sinh(asinh(x/s) + a) - x/s): moves the latent by `action`; exactly x where the action is zero.

    Written with sinh(l + a) - sinh(l) = sinh(l) (cosh(a) - 1) + cosh(l) sinh(a), which has no cancellation.
    """
    half = torch.sinh(action / 2)
    return linear + linear * (2 * half * half) + torch.sqrt(linear * linear + SCALE * SCALE) * torch.sinh(action)


def tone_action(deviation: Tensor, linear: Tensor) -> Tensor:
    """Tone257's residual at `linear` `[..., 3]`: zero outside the latent range [-8, 8]."""
    latent = torch.asinh(linear / SCALE)
    position = (latent / (2 * TONE_RANGE) + 0.5).clamp(0, 1)
    return read_curve(deviation, position)  # the end deviations are zero, so the tails are the identity


def pixels(operands: Operands, raw_linear: Tensor, encoding: str = "srgb") -> tuple[Tensor, Tensor, Tensor]:
    """RAW `[..., 3]` to (front output, lattice output, encoded RGB), each `[..., 3]`; the first two are linear."""
    front = raw_linear @ operands.front
    address = coordinate(front)
    address = (address + read_curve(operands.shaper, address)).clamp(0, 1)
    lattice = latent_step(front, lattice_action(operands.coarse, operands.fine, address))
    toned = latent_step(lattice, tone_action(operands.tone, lattice))
    return front, lattice, color.encode(toned) if encoding == "srgb" else toned
