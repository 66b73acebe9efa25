"""Airlight from pairs of views, before anything else is known.

A surface in two views obeys H_i = k H_j + (1 - k) A with k = T_i / T_j: in every region of every pair, a regression
gives k and m = (1 - k) A. Over thousands of regressions m against 1 - k is a line through the origin, and A its slope.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.smoke import kernels

CELLS = (4, 3)
LEAST = 40  # samples of a regression
RELATED = 0.9  # correlation from which a regression counts
TURNS = 10
BRIGHTEST = 0.001  # share of pixels; the dark channel prior takes as many


@dataclass(frozen=True)
class Regressions:
    """`pair [n, 2]`, `k [n]`, `m [n, 3]` (linear light), `weight [n]`; `tried` is how many there could have been."""

    pair: np.ndarray
    k: np.ndarray
    m: np.ndarray
    weight: np.ndarray
    tried: int


def choose_partners(cams: np.ndarray, most: int) -> np.ndarray:
    """`[V, at most most]`: for each view others that look the same way, near and far ones alike."""
    views = len(cams)
    rotation = cams[:, :9].reshape(-1, 3, 3)
    alike = rotation[:, 2] @ rotation[:, 2].T
    chosen = []
    for view in range(views):
        order = [other for other in np.argsort(-alike[view], kind="stable") if other != view]
        stride = max(1, len(order) / most)
        chosen.append([order[int(k * stride)] for k in range(min(most, len(order)))])
    return np.asarray(chosen, np.int64).reshape(views, -1)


def regressions(pictures, depth, trusted, cams, partners, step: int) -> Regressions:
    """All regressions that hold; pictures `[V, h, w, 3]` linear."""
    pairs = np.stack([np.repeat(np.arange(len(cams)), partners.shape[1]), partners.ravel()], 1)
    found = kernels.regress_pairs(pictures, depth, trusted, cams, pairs, step, *CELLS, LEAST)
    which = np.repeat(pairs[:, None], found.shape[1], 1).reshape(-1, 2)
    rows = found.reshape(-1, 6)
    good = (rows[:, 0] > 0) & (rows[:, 5] > RELATED)
    rows, which = rows[good], which[good]
    weight = rows[:, 0] * rows[:, 5] ** 2 / (1 - rows[:, 5] ** 2 + 1e-3)
    return Regressions(which, rows[:, 1], rows[:, 2:5], weight, found.shape[0] * found.shape[1])


def brightest(pictures: np.ndarray) -> np.ndarray:
    """A `[3]` as it is guessed from single pictures: the mean colour of their brightest thousandth."""
    pixels = pictures.reshape(-1, 3)
    light = pixels.sum(1)
    return pixels[light >= np.quantile(light, 1 - BRIGHTEST)].mean(0, dtype=np.float64)


def airlight(found: Regressions) -> tuple[np.ndarray, np.ndarray]:
    """(A `[3]`, what is left of each regression's weight): m = (1 - k) A, robustly."""
    d, weight = 1 - found.k, found.weight
    for _ in range(TURNS):
        A = (weight[:, None] * d[:, None] * found.m).sum(0) / max((weight * d * d).sum(), 1e-30)
        e = np.linalg.norm(found.m - d[:, None] * A, axis=1)
        weight = found.weight / (1 + (e / max(np.median(e), 1e-12)) ** 2)
    return A, weight
