"""The veil of one pair: `H = t J + (1 - t) c` in linear light, one contrast t and one pivot colour c [supp. F].

H is the smoky capture, J its clean twin at the same pose. Matching percentiles instead of pixels makes the fit blind to
what moves between the two captures, and needs no alignment.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.config import ActionsSettings

PERCENTILES = ActionsSettings.model_fields["percentiles"].default

# the outermost percentiles: the extreme tails are hot pixels and noise, not scene
OUTER = 2.0
# a value this close to an end of [0, 1] may be clipped, and a clipped value no longer says where it came from
CLIPPED = 1e-3
# fewer usable percentiles per channel than this say nothing about contrast
FEWEST = 5
# a clean capture whose percentiles spread less than this (relative to their mean) has no contrast to lose
CONTRAST = 0.02
# so little veil that the pivot, offset / (1 - t), is mostly division by nothing
NO_VEIL = 1e-3


class Degenerate(ValueError):
    """The pair cannot tell t and pivot; the message says why."""


@dataclass(frozen=True)
class Veil:
    """t: contrast in (0, 1); pivot: linear RGB `[3]`; residual: RMS misfit of the percentiles, in linear light."""

    t: float
    pivot: tuple[float, float, float]
    residual: float

    @property
    def level(self) -> float:
        """The pivot's level: the mean of its channels."""
        return float(np.mean(self.pivot))

    @property
    def direction(self) -> np.ndarray:
        """The pivot's direction: normalised to mean 1, `[3]`."""
        return np.asarray(self.pivot) / self.level

    def over(self, clean_linear: np.ndarray) -> np.ndarray:
        """The smoky picture this veil makes of a clean one, linear light."""
        return self.t * clean_linear + (1 - self.t) * np.asarray(self.pivot, clean_linear.dtype)


def fit(hazy_linear: np.ndarray, clean_linear: np.ndarray, percentiles: int = PERCENTILES) -> Veil:
    """Least squares over matched percentiles; both pictures `[..., 3]`, linear light, of one camera and coordinate.

    The percentiles are spread evenly from 2 to 98. Those that are clipped in either picture are left out: there the
    affine law does not hold. With offsets o = (1 - t) c the problem is linear in (t, o): t is the pooled regression
    slope of the three channels and o what remains of the means.
    """
    ranks = np.linspace(OUTER, 100 - OUTER, percentiles)
    h, j = (_percentiles(picture, ranks) for picture in (hazy_linear, clean_linear))
    usable = (h > CLIPPED**2) & (j > CLIPPED**2) & (h < 1 - CLIPPED) & (j < 1 - CLIPPED)
    if usable.sum(axis=0).min() < min(FEWEST, percentiles):
        raise Degenerate(f"saturated: only {usable.sum(axis=0).min()} of {percentiles} percentiles are unclipped")
    weight = usable / usable.sum(axis=0)
    h_mean, j_mean = (weight * h).sum(axis=0), (weight * j).sum(axis=0)
    dh, dj = (h - h_mean) * usable, (j - j_mean) * usable
    if np.sqrt((dj**2).sum() / usable.sum()) < CONTRAST * j_mean.mean():
        raise Degenerate("no contrast in the clean capture")
    t = float((dh * dj).sum() / (dj**2).sum())
    if not 0 < t <= 1:
        raise Degenerate(f"t = {t:.4g} lies outside (0, 1]")
    if 1 - t < NO_VEIL:
        raise Degenerate(f"t = {t:.4g}: no veil, so its pivot colour is undefined")
    pivot = (h_mean - t * j_mean) / (1 - t)
    if pivot.min() <= 0:
        raise Degenerate(f"the pivot colour {np.round(pivot, 4).tolist()} is not positive")
    misfit = (h - t * j - (1 - t) * pivot) * usable
    residual = float(np.sqrt((misfit**2).sum() / usable.sum()))
    return Veil(t, (float(pivot[0]), float(pivot[1]), float(pivot[2])), residual)


def _percentiles(picture: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """`[len(ranks), 3]` in float64."""
    return np.percentile(np.asarray(picture).reshape(-1, 3), ranks, axis=0).astype(np.float64)
