"""The Monotone Color Flow in plain torch, as supplement C writes it; any device, float32 or float64, differentiable.

    T_p = C_{K+1} . K_K . C_K … K_1 . C_1        curves C act on each channel, couplings K mix channels

Colours are encoded RGB, not limited to [0, 1]: every block is a bijection of all reals.

Each straight piece of a curve is kept as `a + s v` rather than by its end points. At the zero action every slope is
exactly 1 and every intercept exactly 0, so the identity is exact for any input, however far out in the tails; and since
slopes are positive, an infinite intermediate value can never turn into NaN.
"""

import torch

from fujinsplat.flow.layout import COUPLING_BOUND, COUPLINGS, KNOTS, LOGIT_BOUND, SEGMENTS, channels, split


def apply(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """`rgb [B, N, 3]` through `action [B, P]`."""
    curves, couplings = split(action, K, M)
    tables = curve_tables(curves)
    knots = COUPLING_BOUND * torch.tanh(couplings)
    u = list(rgb.unbind(-1))
    for k in range(K):
        u = [curve(u[c], *(t[:, k, c] for t in tables)) for c in range(3)]
        u = couple(u, knots[:, k], channels(k))
    u = [curve(u[c], *(t[:, K, c] for t in tables)) for c in range(3)]
    return torch.stack(u, dim=-1)


def invert(rgb: torch.Tensor, action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> torch.Tensor:
    """The closed-form inverse of `apply`, block by block in reverse order; same shapes."""
    curves, couplings = split(action, K, M)
    tables = curve_tables(curves)
    knots = COUPLING_BOUND * torch.tanh(couplings)
    u = list(rgb.unbind(-1))
    u = [curve_inverse(u[c], *(t[:, K, c] for t in tables)) for c in range(3)]
    for k in reversed(range(K)):
        u = uncouple(u, knots[:, k], channels(k))
        u = [curve_inverse(u[c], *(t[:, k, c] for t in tables)) for c in range(3)]
    return torch.stack(u, dim=-1)


def curve_slopes(coefficients: torch.Tensor) -> torch.Tensor:
    """Slopes M·delta of the M pieces: the bounded softmax of supp. C, `[..., M]`; all exactly 1 at zero.

    Logits lie in [-5, 5], so no slope falls below 1 / (1 + e^10 (M-1)) · M and none reaches M.
    """
    g = torch.tanh(coefficients)
    g = g - g.mean(dim=-1, keepdim=True)
    z = LOGIT_BOUND * g / g.abs().amax(dim=-1, keepdim=True).clamp_min(1.0)
    e = torch.exp(z)
    return e * e.shape[-1] / e.sum(dim=-1, keepdim=True)


def curve_tables(coefficients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Per piece, all `[..., M]`: its left node n_j, its slope, and its intercept n_j - slope · j/M."""
    slopes = curve_slopes(coefficients)
    M = slopes.shape[-1]
    nodes = (slopes.cumsum(dim=-1) - slopes) / M
    left = torch.arange(M, dtype=slopes.dtype, device=slopes.device) / M
    return nodes, slopes, nodes - slopes * left


def curve(v: torch.Tensor, nodes: torch.Tensor, slopes: torch.Tensor, intercepts: torch.Tensor) -> torch.Tensor:
    """One channel `v [B, N]` through its curve `[B, M]`; the end pieces go on outside [0, 1]."""
    M = slopes.shape[-1]
    piece = (v.detach() * M).clamp(0, M - 1).long()
    return intercepts.gather(1, piece) + slopes.gather(1, piece) * v


def curve_inverse(y: torch.Tensor, nodes: torch.Tensor, slopes: torch.Tensor, intercepts: torch.Tensor) -> torch.Tensor:
    """The rightmost piece whose left node is <= y (the first piece below 0), solved for its input."""
    piece = torch.searchsorted(nodes[:, 1:].detach().contiguous(), y.detach().contiguous(), right=True)
    return (y - intercepts.gather(1, piece)) / slopes.gather(1, piece)


def conditioner(u: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
    """A 9-knot piecewise-linear spline `knots [B, 9]` read at `u [B, N]` clamped to [0, 1]."""
    position = u.clamp(0, 1) * (KNOTS - 1)
    left = position.detach().clamp(0, KNOTS - 2).long()
    low, high = knots.gather(1, left), knots.gather(1, left + 1)
    return low + (position - left) * (high - low)


def couple(u: list[torch.Tensor], knots: torch.Tensor, order: tuple[int, int, int]) -> list[torch.Tensor]:
    """Coupling stage: u_j += s1(u_i), then u_l += (s2(u_i) + s3(u_j)) / 2, with `knots [B, 3, 9]`."""
    i, j, l = order
    u = list(u)
    u[j] = u[j] + conditioner(u[i], knots[:, 0])
    u[l] = u[l] + 0.5 * (conditioner(u[i], knots[:, 1]) + conditioner(u[j], knots[:, 2]))
    return u


def uncouple(u: list[torch.Tensor], knots: torch.Tensor, order: tuple[int, int, int]) -> list[torch.Tensor]:
    """The inverse of `couple`: u_l first, because it was conditioned on the already updated u_j."""
    i, j, l = order
    u = list(u)
    u[l] = u[l] - 0.5 * (conditioner(u[i], knots[:, 1]) + conditioner(u[j], knots[:, 2]))
    u[j] = u[j] - conditioner(u[i], knots[:, 0])
    return u
