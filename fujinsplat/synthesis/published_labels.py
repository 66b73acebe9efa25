"""The published label compiler: one draw (pivot c, contrast t) to one action, coefficient for coefficient [supp. F].

The label undoes the veil `H = t J + (1 - t) c` of linear light. Its achromatic part is one curve, copied to the three
channels of the LAST curve block; its chromatic part is a constant offset per channel, spread over the couplings.
"""

import numpy as np

from fujinsplat.core.color import decode, encode
from fujinsplat.flow.layout import COUPLING_BOUND, KNOTS, LOGIT_BOUND, channels

INCREMENT_FLOOR = 1e-6
OFFSET_LIMIT = 0.9 * COUPLING_BOUND
LOGIT_LIMIT = 0.999999  # of LOGIT_BOUND: an increment beyond its reach is held there, so that a coefficient is finite
KNOT_LIMIT = 0.999  # of COUPLING_BOUND, for the same reason
BLACK = 1e-3  # nodes up to here belong to the toe
RISING = 1e-3  # slope of the shared target above which a knot counts as rising


def soft_positive(x: np.ndarray, width: float) -> np.ndarray:
    """max(x, 0) with its corner replaced by a hyperbola of the given width."""
    return 0.5 * (x + np.sqrt(x * x + width * width))


def soft_unit(x: np.ndarray, width: float) -> np.ndarray:
    """x held to [0, 1] with both corners rounded: the smooth maximum with 0, then the smooth minimum of that with 1."""
    return 1 - soft_positive(1 - soft_positive(x, width), width)


def target_curve(encoded: np.ndarray, pivot: np.ndarray, contrast: np.ndarray, knee: float) -> np.ndarray:
    """F(x) of supp. F on encoded x: decode, remove the veil, encode; both knees smoothed, renormalised to hit 0 and 1.

    pivot and contrast broadcast against `encoded`; pivot is in linear light.
    """

    def smoothed(linear):
        clean = (linear - (1 - contrast) * pivot) / contrast
        return encode(np.clip(soft_unit(clean, knee), 0, 1))

    low, high = smoothed(0.0 * contrast), smoothed(1.0 + 0.0 * contrast)
    return np.clip((smoothed(decode(encoded)) - low) / (high - low), 0, 1)


def curve_coefficients(increments: np.ndarray) -> np.ndarray:
    """Increments `[..., M]` to the coefficients whose bounded softmax gives them back."""
    increments = np.maximum(increments, INCREMENT_FLOOR)
    logs = np.log(increments / increments.sum(axis=-1, keepdims=True))
    logs = logs - logs.mean(axis=-1, keepdims=True)
    return np.arctanh(np.clip(logs / LOGIT_BOUND, -LOGIT_LIMIT, LOGIT_LIMIT))


def channel_weights(K: int) -> np.ndarray:
    """`[3]`: how much of a constant each channel receives over the K stages (1 per s1, 1/2 per s2)."""
    weights = np.zeros(3)
    for stage in range(K):
        _, second, third = channels(stage)
        weights[second] += 1.0
        weights[third] += 0.5
    return weights


def chromatic_offsets(pivot: np.ndarray, contrast: np.ndarray, M: int, knee: float) -> np.ndarray:
    """`[B, 3]`: the displacement along the shared curve that reproduces each channel's own curve, averaged over the
    knots where the shared curve rises."""
    knots = np.arange(M + 1) / M
    x, t = knots[None, None, :], contrast[:, None, None]
    shared = target_curve(x, pivot.mean(axis=1)[:, None, None], t, knee)  # [B, 1, M + 1]
    own = target_curve(x, pivot[:, :, None], t, knee)  # [B, 3, M + 1]
    slope = np.gradient(shared, 1 / M, axis=-1)
    rising = slope > RISING
    displacement = np.where(rising, (own - shared) / np.where(rising, slope, 1.0), 0.0)
    return np.clip(displacement.sum(axis=-1) / np.maximum(rising.sum(axis=-1), 1), -OFFSET_LIMIT, OFFSET_LIMIT)


def compile_published(
    pivot: np.ndarray, contrast: np.ndarray, K: int, M: int, knee: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Curves `[B, K+1, 3, M]`, couplings `[B, K, 3, 9]` and the encoded black floor `[B]` of draws (c, t)."""
    batch = len(contrast)
    knots = np.arange(M + 1) / M
    shared = target_curve(knots[None], pivot.mean(axis=1)[:, None], contrast[:, None], knee)
    coefficients = curve_coefficients(np.diff(shared, axis=-1))
    curves = np.zeros((batch, K + 1, 3, M))
    curves[:, K] = coefficients[:, None]

    couplings = np.zeros((batch, K, 3, KNOTS))
    offsets, weights = chromatic_offsets(pivot, contrast, M, knee), channel_weights(K)
    share = np.divide(offsets, weights, where=weights > 0, out=np.zeros((batch, 3)))
    constants = np.arctanh(np.clip(share / COUPLING_BOUND, -KNOT_LIMIT, KNOT_LIMIT))
    for stage in range(K):
        _, second, third = channels(stage)
        couplings[:, stage, 0] = constants[:, second, None]
        couplings[:, stage, 1] = constants[:, third, None]

    nodes = np.cumsum(realised_increments(coefficients), axis=-1)  # node 0 is 0, and never above black
    floor = np.take_along_axis(nodes, (nodes > BLACK).argmax(axis=-1)[:, None], axis=-1)[:, 0]
    return curves, couplings, floor


def realised_increments(coefficients: np.ndarray) -> np.ndarray:
    """The increments the operator makes of coefficients `[..., M]`: the bounded softmax of supp. C."""
    g = np.tanh(coefficients)
    g = g - g.mean(axis=-1, keepdims=True)
    z = LOGIT_BOUND * g / np.maximum(1.0, np.abs(g).max(axis=-1, keepdims=True))
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
