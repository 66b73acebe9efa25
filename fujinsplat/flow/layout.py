"""How an action's coefficients are laid out [supp. C].

An action of K couplings and M curve segments is one vector `[P]`: first K + 1 curve blocks of 3 channels x M, then K
coupling blocks of 3 conditioners x 9 knots. The paper's K = 7 and M = 16 give 384 + 189 = 573.
"""

import torch

COUPLINGS = 7
SEGMENTS = 16
KNOTS = 9
COUPLING_BOUND = 0.155
LOGIT_BOUND = 5.0


def size(K: int = COUPLINGS, M: int = SEGMENTS) -> int:
    """Number of coefficients P of an action with K couplings and M curve segments."""
    return curve_size(K, M) + K * 3 * KNOTS


def curve_size(K: int = COUPLINGS, M: int = SEGMENTS) -> int:
    """Number of curve coefficients: `action[..., :curve_size]` are curves, the rest couplings."""
    return (K + 1) * 3 * M


def split(action: torch.Tensor, K: int = COUPLINGS, M: int = SEGMENTS) -> tuple[torch.Tensor, torch.Tensor]:
    """`[..., P]` to curves `[..., K+1, 3, M]` and couplings `[..., K, 3, 9]` (views, no copy)."""
    check(action, K, M)
    lead = action.shape[:-1]
    curves, couplings = action.split([curve_size(K, M), K * 3 * KNOTS], dim=-1)
    return curves.reshape(*lead, K + 1, 3, M), couplings.reshape(*lead, K, 3, KNOTS)


def pack(curves: torch.Tensor, couplings: torch.Tensor) -> torch.Tensor:
    """The inverse of `split`: curves `[..., K+1, 3, M]`, couplings `[..., K, 3, 9]` to `[..., P]`."""
    return torch.cat([curves.flatten(-3), couplings.flatten(-3)], dim=-1)


def check(action: torch.Tensor, K: int, M: int) -> None:
    """A vector of another size belongs to another K and M: say which, instead of a shape error deep inside."""
    if K < 0 or M < 2:
        raise ValueError(f"an action needs K >= 0 couplings and M >= 2 segments, not K={K}, M={M}")
    if action.shape[-1] != size(K, M):
        raise ValueError(
            f"an action with K={K} couplings and M={M} segments has {size(K, M)} coefficients, not {action.shape[-1]}"
        )


def channels(stage: int) -> tuple[int, int, int]:
    """Cyclic channel order (i, j, l) of coupling stage `stage` = 0 … K-1: i is read, j and l are written in turn."""
    return stage % 3, (stage + 1) % 3, (stage + 2) % 3


def zeros(*batch: int, K: int = COUPLINGS, M: int = SEGMENTS, **options) -> torch.Tensor:
    """The identity action, `[*batch, P]`."""
    return torch.zeros(*batch, size(K, M), **options)


def average(actions: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
    """The mean action over the first axis, `[V, P]` to `[P]`; `weights [V]` need not sum to one.

    Coefficients are averaged, as the scene-shared action of Sec. 3.4 is; the mean of two actions is again an action.
    """
    if weights is None:
        return actions.mean(dim=0)
    weights = weights.to(actions)
    return (weights[:, None] * actions).sum(dim=0) / weights.sum()


def probe_grid(side: int = 9, **options) -> torch.Tensor:
    """The Cartesian grid `linspace(0, 1, side)^3` of encoded colours, `[side^3, 3]`, blue fastest [supp. D, E]."""
    axis = torch.linspace(0, 1, side, **options)
    return torch.cartesian_prod(axis, axis, axis)
