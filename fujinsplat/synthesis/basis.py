"""A smooth start for fitted labels: the unknowns as a polynomial of (c, t).

Many coefficient vectors realise one colour map (supp. D), so labels fitted one by one wander between neighbouring
draws. Here the wandering is taken out once: fit labels on a design of draws, replace them by their polynomial
regression, fit again from there, and so on. What is left after some rounds is a family that a low-degree polynomial
describes, from which a few damped steps reach full accuracy. The polynomials of the paper's capacity settings lie in
`basis.safetensors` (`fujinsplat synthesis basis` makes them); any other K and M starts from `chain_start`.
"""

from functools import cache
from pathlib import Path

import numpy as np

from fujinsplat.core.color import encode
from fujinsplat.flow.layout import COUPLING_BOUND, channels
from fujinsplat.synthesis.fitted_labels import fidelity, refine
from fujinsplat.synthesis.published_labels import OFFSET_LIMIT, curve_coefficients, target_curve

STORED = Path(__file__).with_name("basis.safetensors")
SETTINGS = ((7, 16), (5, 16), (9, 16), (11, 16), (7, 8), (7, 22), (7, 32))  # the capacity study [Tab. 4]
DEGREE = 6  # in (contrast, level); chromatic terms go to half of it
DARKEST, BRIGHTEST = 0.02, 0.85  # pivot levels of the design
DENSEST, LIGHTEST = 0.12, 0.99  # contrasts of the design


def features(pivot: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Polynomial features `[B, F]` of draws; all vanish at t = 1, where there is no veil to undo."""
    level = pivot.mean(axis=1)
    x = 1 - 2 * np.log(contrast) / np.log(DENSEST * 0.9)
    y = 2 * encode(level) / encode(0.9) - 1
    xs, ys = _chebyshev(x), _chebyshev(y)
    chroma = 4 * (1 - contrast)[:, None] * (pivot - level[:, None])[:, :2]
    columns = []
    for i in range(DEGREE + 1):
        for j in range(DEGREE + 1 - i):
            columns.append(xs[i] * ys[j])
            if i + j <= DEGREE // 2:
                columns += [xs[i] * ys[j] * chroma[:, 0], xs[i] * ys[j] * chroma[:, 1]]
    for product in (chroma[:, 0] ** 2, chroma[:, 1] ** 2, chroma[:, 0] * chroma[:, 1]):
        columns += [product, product * x, product * y]
    return np.stack(columns, axis=-1) * (1 - contrast)[:, None]


def _chebyshev(x: np.ndarray) -> list[np.ndarray]:
    values = [np.ones_like(x), x]
    while len(values) <= DEGREE:
        values.append(2 * x * values[-1] - values[-2])
    return values


@cache
def stored(K: int, M: int) -> np.ndarray | None:
    """The polynomial `[F, U]` of a capacity setting, or None where there is none."""
    from safetensors import safe_open

    if not STORED.is_file():
        return None
    with safe_open(str(STORED), framework="np") as stream:
        name = f"K{K}M{M}"
        return stream.get_tensor(name).astype(np.float64) if name in stream.keys() else None


def start(pivot: np.ndarray, contrast: np.ndarray, K: int, M: int) -> np.ndarray:
    """Unknowns `[B, U]` to refine from; draws outside the design are met at its edge."""
    polynomial = stored(K, M)
    if polynomial is None:
        return chain_start(pivot, contrast, K, M)
    level = pivot.mean(axis=1, keepdims=True)
    inside = pivot * (np.clip(level, DARKEST, BRIGHTEST) / np.maximum(level, 1e-9))
    return features(inside, np.clip(contrast, DENSEST, 1.0)) @ polynomial


def chain_start(pivot: np.ndarray, contrast: np.ndarray, K: int, M: int, knee: float = 0.005) -> np.ndarray:
    """An analytic start: the first blocks go towards linear light, the others on to the clean picture.

    Between two waypoints the densities of the maps are interpolated geometrically, so each block increases.
    """
    towards_linear = min(2, K)
    fine = np.linspace(0, 1, 2049)
    whole = target_curve(fine[None], pivot.mean(axis=1)[:, None], contrast[:, None], knee)
    density = [np.log(np.maximum(np.diff(f), 1e-9)) for f in (fine, fine**2.2)] + [
        np.log(np.maximum(np.diff(whole, axis=1), 1e-9))
    ]
    maps = []
    for block in range(K + 2):
        if block <= towards_linear:
            share, (low, high) = block / max(towards_linear, 1), density[:2]
        else:
            share, (low, high) = (block - towards_linear) / (K + 1 - towards_linear), density[1:]
        steps = np.exp((1 - share) * low + share * high) * np.ones((len(contrast), 1))
        path = np.concatenate([np.zeros((len(contrast), 1)), np.cumsum(steps, axis=1)], axis=1)
        maps.append(path / path[:, -1:])
    knots = np.arange(M + 1) / M
    curves = np.empty((len(contrast), K + 1, M))
    for block in range(K + 1):
        for draw in range(len(contrast)):
            nodes = np.interp(knots, maps[block][draw], maps[block + 1][draw])
            curves[draw, block] = curve_coefficients(np.diff(nodes))
    constants = np.zeros((len(contrast), K, 2))
    offset = -(1 - contrast)[:, None] * (pivot - pivot.mean(axis=1, keepdims=True))
    stages = range(max(towards_linear - 1, 0), min(towards_linear + 2, K))
    weight = np.zeros(3)
    for stage in stages:
        weight[channels(stage)[1]] += 1.0
        weight[channels(stage)[2]] += 0.5
    for stage in stages:
        for column, channel in enumerate(channels(stage)[1:]):
            value = np.clip(offset[:, channel] / weight[channel], -OFFSET_LIMIT, OFFSET_LIMIT)
            constants[:, stage, column] = np.arctanh(value / COUPLING_BOUND)
    start = np.concatenate([curves.reshape(len(contrast), -1), constants.reshape(len(contrast), -1)], axis=1)
    return start * np.minimum(1.0, 20 * (1 - contrast))[:, None]  # towards the identity where there is no veil


def design(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pivots `[count, 3]` and contrasts `[count]` that cover every veil worth a label, light ones included."""
    random = np.random.default_rng(seed)
    contrast = np.exp(random.uniform(np.log(DENSEST), np.log(LIGHTEST), count))
    level = np.exp(random.uniform(np.log(DARKEST), np.log(BRIGHTEST), count))
    chroma = np.clip(random.normal(size=(count, 3)) * 0.14, -0.4, 0.4)
    chroma -= chroma.mean(axis=1, keepdims=True)
    return np.minimum(level[:, None] * (1 + chroma), 0.97), contrast


def fit_polynomial(K: int, M: int, draws: int = 700, rounds: int = 14, seed: int = 1, report=None) -> np.ndarray:
    """The self-consistent polynomial `[F, U]` of one setting: fit, regress, fit again from the regression."""
    pivot, contrast = design(draws, seed)
    phi = features(pivot, contrast)
    regress = np.linalg.solve(phi.T @ phi + 1e-4 * np.eye(phi.shape[1]), phi.T)
    unknowns = refine(chain_start(pivot, contrast, K, M), pivot, contrast, K, M, steps=8, anchor=1e-3)
    for turn in range(rounds):
        polynomial = regress @ unknowns
        if turn < rounds - 1 or report:
            unknowns = refine(phi @ polynomial, pivot, contrast, K, M)
        if report:
            report(turn, fidelity(unknowns, pivot, contrast, K, M))
    return polynomial


def make_stored(out: Path) -> None:
    """Fit and write the polynomials of all capacity settings."""
    from fujinsplat.core.files import write_tensors
    from fujinsplat.core.progress import say

    made = {}
    for K, M in SETTINGS:
        reports: list[np.ndarray] = []
        made[f"K{K}M{M}"] = fit_polynomial(K, M, report=lambda turn, db, r=reports: r.append(db)).astype(np.float32)
        last = reports[-1]
        say(f"K = {K}, M = {M}: {np.median(last):.1f} dB in the middle, {last.min():.1f} dB at worst")
    write_tensors(out, made, {"format": "fujinsplat label basis 1"})
