"""The veil of one pair: `H = t J + (1 - t) c` in linear light, one contrast t and one pivot colour c [supp. F].

H is the smoky capture, J its clean twin at the same pose. Matching percentiles instead of pixels makes the fit blind to
what moves between the two captures.

Noise widens the percentiles of a picture whose contrast the smoke has all but taken, and would pass for contrast. So
small square blocks are averaged first: that leaves the affine law as it is, and most of the noise behind.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.core.settings import ActionsSettings

PERCENTILES = ActionsSettings.model_fields["percentiles"].default

# the outermost percentiles: the extreme tails are hot pixels and noise, not scene
OUTER = 2.0
# blocks per picture that percentiles need, and the largest block side
BLOCKS, SIDE = 1500, 8
# a value this close to 1, or not above this, may be clipped, and a clipped value no longer says where it came from
CLIPPED, NOTHING = 1e-3, 1e-6
# with less of the picture unclipped, the rest no longer speaks for it
UNCLIPPED = 0.25
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
    """Least squares over matched percentiles; both pictures `[H, W, 3]` (or `[N, 3]`, unordered pixels), linear light.

    The percentiles are spread evenly from 2 to 98, of the blocks that neither picture clips: where one does, the affine
    law does not hold. With offsets o = (1 - t) c the problem is linear in (t, o): t is the pooled regression slope of
    the three channels and o what remains of the means.
    """
    h, j = _matched_percentiles(hazy_linear, clean_linear, np.linspace(OUTER, 100 - OUTER, percentiles))
    h_mean, j_mean = h.mean(axis=0), j.mean(axis=0)
    dh, dj = h - h_mean, j - j_mean
    if np.sqrt((dj**2).mean()) < CONTRAST * j_mean.mean():
        raise Degenerate("no contrast in the clean capture")
    t = float((dh * dj).sum() / (dj**2).sum())
    if not 0 < t <= 1:
        raise Degenerate(f"t = {t:.4g} lies outside (0, 1]")
    if 1 - t < NO_VEIL:
        raise Degenerate(f"t = {t:.4g}: no veil, so its pivot colour is undefined")
    pivot = (h_mean - t * j_mean) / (1 - t)
    if pivot.min() <= NOTHING:
        raise Degenerate(f"the pivot colour {np.round(pivot, 4).tolist()} is not positive")
    residual = float(np.sqrt(((h - t * j - (1 - t) * pivot) ** 2).mean()))
    return Veil(t, (float(pivot[0]), float(pivot[1]), float(pivot[2])), residual)


def _matched_percentiles(hazy: np.ndarray, clean: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The percentiles of both pictures, `[len(ranks), 3]` each, channel by channel over the blocks neither clips."""
    pixels = hazy.size // 3
    side = int(np.clip(np.sqrt(pixels / BLOCKS), 1, SIDE)) if hazy.ndim == 3 else 1
    (h, h_clipped), (j, j_clipped) = _blocks(hazy, side), _blocks(clean, side)
    usable = ~(h_clipped | j_clipped)
    share = usable.mean(axis=0).min()
    if share < UNCLIPPED:
        raise Degenerate(f"saturated: only {share:.0%} of the picture is unclipped in both captures")
    pairs = [[np.percentile(plane[usable[:, c], c], ranks) for c in range(3)] for plane in (h, j)]
    return np.array(pairs[0]).T, np.array(pairs[1]).T


def _blocks(picture: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of side x side blocks `[blocks, 3]`, and whether a block is clipped: a pixel at 1, or all black."""
    picture = np.asarray(picture, np.float64)
    if side == 1:
        means = highest = picture.reshape(-1, 3)
    else:
        rows, columns = picture.shape[0] // side, picture.shape[1] // side
        tiles = picture[: rows * side, : columns * side].reshape(rows, side, columns, side, 3)
        means, highest = (of(tiles, axis=(1, 3)).reshape(-1, 3) for of in (np.mean, np.max))
    return means, (highest >= 1 - CLIPPED) | (means <= NOTHING)
