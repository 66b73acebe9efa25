"""Monotone regressions behind the initial state, in numpy: is there a tone map at all, and which one is it?"""

import numpy as np
from scipy.linalg import solveh_banded
from scipy.optimize import isotonic_regression

from fujinsplat.core import color
from fujinsplat.isp.reference import CURVE_LIMIT, SCALE, SEGMENTS, TONE_RANGE, UNIT_SOFTPLUS

STEP = 2 * TONE_RANGE / SEGMENTS
NODES = np.linspace(-TONE_RANGE, TONE_RANGE, SEGMENTS + 1)
# weights beside a mean weight of 1 per pixel: bending, another slope than the prior's, black elsewhere than at black
BEND, SLOPE, BLACK = 1e-2, 1e-4, 1e-3
# increments beside their mean that parameters within the limit can make; only their ratio counts
LEAST, MOST = (float(np.logaddexp(0, limit + UNIT_SOFTPLUS)) for limit in (-CURVE_LIMIT, CURVE_LIMIT))
ENCODED_KNEES = (-0.5, 3.9)  # latents between which a curve that ends encoded follows the encoding


def latent(linear: np.ndarray) -> np.ndarray:
    return np.arcsinh(linear / SCALE)


def toned(rgb_encoded: np.ndarray, encoding: str) -> np.ndarray:
    """What the tone curve must end with to give the camera's RGB: linear light before an encoding, or RGB itself."""
    return color.decode(rgb_encoded) if encoding == "srgb" else rgb_encoded


def rest_curve(encoding: str) -> np.ndarray:
    """Node values `[257]` of the curve that a tone keeps to where no pixel looks: the identity; or the sRGB encoding,
    straight on to the ends of the range, where the curve itself ends encoded."""
    if encoding == "srgb":
        return NODES
    low, high = ENCODED_KNEES
    inside = np.linspace(low, high, 512)
    follows = latent(color.encode(SCALE * np.sinh(inside)))
    return np.interp(NODES, [NODES[0], *inside, NODES[-1]], [NODES[0], *follows, NODES[-1]])


def sensitivity(linear: np.ndarray, encoding: str = "srgb") -> np.ndarray:
    """d encoded / d latent at values of `toned`: makes latent least squares count encoded errors."""
    linear = np.clip(linear, 0.0, 1.0)
    slope = color.slope(linear) if encoding == "srgb" else 1.0
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
    ones the way to black. Slopes stay within what curve parameters can make.
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
    steepest = np.diff(isotonic_regression(fitted, weights=banded[2]).x).max() / STEP
    flattest = LEAST * max(1.0, steepest / MOST)
    fitted = isotonic_regression(fitted - flattest * NODES, weights=banded[2]).x + flattest * NODES
    # the ends stay where the identity tails begin
    return NODES[0] + (fitted - fitted[0]) * (2 * TONE_RANGE / (fitted[-1] - fitted[0]))


def curve_parameter(curve: np.ndarray) -> np.ndarray:
    """Softplus parameters `[256]` whose curve has the nodes `curve` `[257]`: inverts `reference.curve_deviation`, for
    curves whose slopes the parameters' limit allows."""
    weight = SEGMENTS * np.diff(curve) / (curve[-1] - curve[0])  # mean 1: a straight curve is the zero parameter
    weight = np.maximum(weight * min(1.0, MOST / weight.max()), LEAST)
    return weight + np.log(-np.expm1(-weight)) - UNIT_SOFTPLUS


def apply_curve(curve: np.ndarray, x_latent: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x_latent) < TONE_RANGE, np.interp(x_latent, NODES, curve), x_latent)


def invert_curve(curve: np.ndarray, y_latent: np.ndarray) -> np.ndarray:
    return np.where(np.abs(y_latent) < TONE_RANGE, np.interp(y_latent, curve, NODES), y_latent)
