"""Monotone regressions behind the initial state, in numpy: is there a tone map at all, and which one is it?"""

import numpy as np
from scipy.linalg import solveh_banded
from scipy.optimize import isotonic_regression

from fujinsplat.isp.reference import SCALE, SEGMENTS, SMALLEST_INCREMENT, TONE_RANGE, UNIT_SOFTPLUS

STEP = 2 * TONE_RANGE / SEGMENTS
NODES = np.linspace(-TONE_RANGE, TONE_RANGE, SEGMENTS + 1)
# weights beside a mean weight of 1 per pixel: bending, another slope than the prior's, black elsewhere than at black
BEND, SLOPE, BLACK = 1e-2, 1e-4, 1e-3


def latent(linear: np.ndarray) -> np.ndarray:
    return np.arcsinh(linear / SCALE)


def sensitivity(linear: np.ndarray) -> np.ndarray:
    """d encoded / d latent at display-linear values: makes latent least squares count encoded errors."""
    linear = np.clip(linear, 0.0, 1.0)
    slope = np.where(linear <= 0.0031308, 12.92, 1.055 / 2.4 * np.maximum(linear, 0.0031308) ** (1 / 2.4 - 1))
    return slope * np.sqrt(linear**2 + SCALE**2)


def explained(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(share of y's variance that an increasing function of x explains, root mean square of the rest)."""
    order = np.argsort(x, kind="stable")
    y = y[order].astype(np.float64)
    rest = y - isotonic_regression(y).x
    return 1 - rest.var() / max(y.var(), 1e-12), float(np.sqrt(np.mean(rest**2)))


def fit_curve(
    x_latent: np.ndarray, y_latent: np.ndarray, weight: np.ndarray, prior: np.ndarray | None = None
) -> np.ndarray:
    """Node values `[257]` on [-8, 8] of the increasing curve from `x_latent` to `y_latent` (all `[N]`).

    Penalised least squares on the hat functions, ends fixed, then pool-adjacent-violators. Where no pixel looks the
    curve runs parallel to `prior` `[257]`. Without one that is slope 1: a constant gain in bright parts, and in dark
    ones the way to black.
    """
    prior = NODES if prior is None else prior
    position = np.clip((x_latent + TONE_RANGE) / STEP, 0, SEGMENTS - 1e-6)
    low = position.astype(int)
    part = position - low
    # normal equations of the deviation from the prior, in upper banded form: rows are offsets 2, 1, 0
    total = weight.sum()
    deviation = y_latent - np.interp(position, np.arange(SEGMENTS + 1), prior)
    banded = np.zeros((3, SEGMENTS + 1))
    right = np.zeros(SEGMENTS + 1)

    def gather(index, values):
        return np.bincount(index, values, minlength=SEGMENTS + 1)[: SEGMENTS + 1] / total

    banded[2] += gather(low, weight * (1 - part) ** 2) + gather(low + 1, weight * part**2)
    banded[1] += np.roll(gather(low, weight * part * (1 - part)), 1)
    right += gather(low, weight * (1 - part) * deviation) + gather(low + 1, weight * part * deviation)
    for stencil, strength in (((1, -1), SLOPE), ((1, -2, 1), BEND)):
        for start in range(SEGMENTS + 2 - len(stencil)):
            for i, a in enumerate(stencil):
                for j in range(i, len(stencil)):
                    banded[2 - (j - i), start + j] += strength * a * stencil[j]
    banded[2, SEGMENTS // 2] += BLACK
    banded[2, [0, -1]] += 1e6
    fitted = prior + solveh_banded(banded, right)
    fitted = isotonic_regression(fitted, weights=banded[2]).x
    # strictly increasing, with the ends where the identity tails begin
    increments = np.maximum(np.diff(fitted), 0) + 4 * SMALLEST_INCREMENT * 2 * TONE_RANGE
    curve = np.concatenate([[0.0], np.cumsum(increments)])
    return NODES[0] + curve * (2 * TONE_RANGE / curve[-1])


def curve_parameter(curve: np.ndarray) -> np.ndarray:
    """Softplus parameters `[256]` whose curve has the nodes `curve` `[257]`: inverts `reference.curve_deviation`."""
    share = np.diff(curve) / (curve[-1] - curve[0])
    share = (share - 1 / SEGMENTS) / (1 - SEGMENTS * SMALLEST_INCREMENT) + 1 / SEGMENTS
    weight = np.maximum(share * SEGMENTS, 1e-9)  # mean 1: a straight curve is the zero parameter
    return weight + np.log(-np.expm1(-weight)) - UNIT_SOFTPLUS


def apply_curve(curve: np.ndarray, x_latent: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x_latent) < TONE_RANGE, np.interp(x_latent, NODES, curve), x_latent)


def invert_curve(curve: np.ndarray, y_latent: np.ndarray) -> np.ndarray:
    return np.where(np.abs(y_latent) < TONE_RANGE, np.interp(y_latent, curve, NODES), y_latent)
