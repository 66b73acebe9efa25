"""Smoke over a capture as it lies in a room: over the light that reaches the sensor, thicker with depth, uneven.

    X_smoky = exp(-tau) X + (1 - exp(-tau)) A          camera-linear RAW
    tau = sigma ((1 - share) + share x depth) x (a smooth field about 1)

Scattering is linear in RAW, before a camera's tone and its clipping; a veil laid over the developed picture instead
never shows highlights through smoke, and a controller that learned from it takes every highlight for thin smoke. Nor is
smoke the same everywhere: the darkest object is often the nearest one, with the least smoke before it.

No global colour action undoes such smoke exactly, neither here nor in the source views, where a pair's (c, t) is the
affine veil that its percentiles measure in the base output. So the label of a synthetic pair is the veil that the same
measurement finds in it. The observation is this smoky picture, and its target what the label makes of it: the label is
as exact as it is with a uniform veil.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.actions.veil import Degenerate, Veil, fit

ROUNDS = 4
GRID = 4  # control points of the uneven field, down and across
DENSEST = 12.0  # optical depth beyond which nothing is seen
SEARCHED = 4096  # colours that are measured while searching


@dataclass(frozen=True)
class Smoke:
    """sigma: optical depth at the capture's median depth; share of it that grows with depth; colour `[3]` of its light
    in RAW; bumps `[G, G]`: log of the field."""

    sigma: float
    share: float
    colour: np.ndarray
    bumps: np.ndarray

    def over(self, raw: np.ndarray, depth: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Smoky RAW of clean RAW `[n, 3]` at depth `[n]` (over its median) and place `[n, 2]` in [0, 1]."""
        tau = self.sigma * (1 - self.share + self.share * depth) * np.exp(field(self.bumps, place))
        through = np.exp(-np.minimum(tau, DENSEST))[:, None]
        return through * raw + (1 - through) * self.colour


def field(points: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Points `[G, G]` spread over the picture, read bilinearly at places `[n, 2]`."""
    position = np.clip(place, 0, 1) * (len(points) - 1)
    low = np.minimum(position.astype(np.intp), len(points) - 2)
    down, across = (position - low).T
    i, j = low.T
    top = points[i, j] * (1 - across) + points[i, j + 1] * across
    bottom = points[i + 1, j] * (1 - across) + points[i + 1, j + 1] * across
    return top * (1 - down) + bottom * down


def find_smoke(
    raw: np.ndarray,
    depth: np.ndarray,
    place: np.ndarray,
    pivot: np.ndarray,
    contrast: float,
    share: float,
    bumps: np.ndarray,
) -> Smoke | None:
    """Smoke whose veil, measured in RAW, is about the drawn (pivot, contrast); None where that cannot be measured.

    Each round scales sigma and colour by what the measurement missed; the round that missed least is kept.
    """
    step = max(1, len(raw) // SEARCHED)
    raw, depth, place = raw[::step], depth[::step], place[::step]
    smoke = Smoke(-np.log(contrast), share, np.asarray(pivot, np.float64), bumps)
    best = None
    for _ in range(ROUNDS):
        veil = measured(smoke.over(raw, depth, place), raw)
        if veil is None:
            break
        miss = abs(np.log(veil.t / contrast)) + np.abs(np.log(np.array(veil.pivot) / pivot)).max()
        if best is None or miss < best[0]:
            best = (miss, smoke)
        sigma = smoke.sigma * np.clip(np.log(contrast) / np.log(veil.t), 0.5, 2.0)
        colour = smoke.colour * np.clip(pivot / np.array(veil.pivot), 0.7, 1.4)
        smoke = Smoke(min(sigma, DENSEST), share, np.minimum(colour, 1.0), bumps)
    return best and best[1]


def measured(smoky_linear: np.ndarray, clean_linear: np.ndarray) -> Veil | None:
    """The affine veil between two pictures, as real pairs are measured; None where it is degenerate."""
    try:
        return fit(np.clip(smoky_linear, 0, 1), np.clip(clean_linear, 0, 1))
    except Degenerate:
        return None
