"""`compile_label`: one draw (c, t) of the correction distribution to the action that undoes it [supp. F].

A draw is a veil of linear light, `H = t J + (1 - t) c`. Both compilers are deterministic and need neither randomness
nor a user's files: `published` is the paper's rule, `fitted` the same structure refined until it inverts the veil.
"""

from typing import Literal

import numpy as np
import torch

from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.flow.layout import COUPLINGS, SEGMENTS, pack

KNEE = SynthesisSettings.model_fields["knee"].default
Method = Literal["published", "fitted"]


def compile_label(
    pivot, contrast, method: Method = "published", *, K: int = COUPLINGS, M: int = SEGMENTS, knee: float = KNEE
) -> tuple[torch.Tensor, float]:
    """One draw, pivot `[3]` in linear light and contrast in (0, 1], to (action float64 `[P]`, black floor).

    The floor is an encoded value: clean colours are clamped to it before the action is inverted, so that each of them
    lies on the rising part of the curves.
    """
    pivots = np.asarray(pivot, np.float64).reshape(1, -1)
    actions, floors = compile_labels(pivots, np.asarray([contrast], np.float64), method, K=K, M=M, knee=knee)
    return actions[0], float(floors[0])


def compile_labels(
    pivots, contrasts, method: Method = "published", *, K: int = COUPLINGS, M: int = SEGMENTS, knee: float = KNEE
) -> tuple[torch.Tensor, torch.Tensor]:
    """Many draws, pivots `[B, 3]` and contrasts `[B]`, to (actions float64 `[B, P]`, floors `[B]`)."""
    pivots, contrasts = np.asarray(pivots, np.float64), np.asarray(contrasts, np.float64)
    if pivots.ndim != 2 or pivots.shape[1] != 3 or contrasts.shape != pivots.shape[:1]:
        raise ValueError(f"draws need pivots [B, 3] and contrasts [B], not {pivots.shape} and {contrasts.shape}")
    if not np.isfinite(pivots).all() or not (pivots > 0).all():
        raise ValueError("a pivot colour must be positive and finite in every channel")
    if not ((contrasts > 0) & (contrasts <= 1)).all():
        raise ValueError("a contrast must lie in (0, 1]")
    if method == "published":
        from fujinsplat.synthesis.published_labels import compile_published

        curves, couplings, floors = compile_published(pivots, contrasts, K, M, knee)
    elif method == "fitted":
        from fujinsplat.synthesis.fitted_labels import compile_fitted

        curves, couplings, floors = compile_fitted(pivots, contrasts, K, M)
    else:
        raise ValueError(f"label compiler {method!r} is neither published nor fitted")
    return pack(torch.from_numpy(curves), torch.from_numpy(couplings)), torch.from_numpy(floors)
