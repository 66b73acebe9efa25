"""The fit of all views' smoke at once: what views say about each other, dark pixels for the level, mild priors.

Unknowns of a view: optical depth on the nodes of a grid over the picture, its slope in distance on those of a coarser
one, level and tilts of the airlight; of the scene: the airlight's colour. Optical depth is linear in its unknowns, so
Gauss-Newton steps with the surface colours eliminated converge in a few turns. Outliers lose their weight from turn to
turn.
"""

from dataclasses import dataclass

import numpy as np

from fujinsplat.smoke import kernels
from fujinsplat.smoke.settings import SmokeSettings

TURNS, TURNS_WARM = 20, 6
REACH = 0.6  # optical depth above black from which a point has lost half of its say about the level
SOFT = 0.01  # optical depth within which the quantile's corner is rounded
OUTLIER = 2.0  # residuals, in deviations, at which an observation has lost half of its weight
HELD = 0.01  # relative deviation of the airlight from the pairs', and of the views' mean level and tilt from none
REST = 3e-3  # steps smaller than this are the end
STRIDE = 1.0  # the most an unknown moves in one turn


@dataclass(frozen=True)
class Tracks:
    """Surface points in the views that see them: `starts [N + 1]`; per observation its `view`, `place [3]` (x and y as
    shares of the picture, distance) and `colour [3]`, linear."""

    starts: np.ndarray
    view: np.ndarray
    place: np.ndarray
    colour: np.ndarray

    @property
    def count(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Fit:
    """`unknowns` as the kernels lay them out, on `grids` of (across, down) nodes for layer and slope; `noise` is the
    residual's deviation (linear light) of a faint observation."""

    unknowns: np.ndarray
    grids: tuple[int, int, int, int]
    noise: float

    def _of(self, part: int) -> np.ndarray:
        rows = self.unknowns[:-3].reshape(-1, unknowns_of(self.grids))
        return np.split(rows, [self.grids[0] * self.grids[1], -kernels.LEVEL], axis=1)[part]

    @property
    def grid(self) -> np.ndarray:
        """Optical depth that does not depend on distance: `[V, high, wide]`."""
        return self._of(0).reshape(-1, self.grids[1], self.grids[0])

    @property
    def slope(self) -> np.ndarray:
        """Optical depth per unit of distance `[V, down, across]`."""
        return self._of(1).reshape(-1, self.grids[3], self.grids[2])

    @property
    def level(self) -> np.ndarray:
        """The airlight's level in the middle, its tilt to the right edge and to the bottom edge: `[V, 3]`."""
        return self._of(2)

    @property
    def airlight(self) -> np.ndarray:
        return self.unknowns[-3:]


def unknowns_of(grids: tuple[int, int, int, int]) -> int:
    """How many unknowns a view has."""
    wide, high, across, down = grids
    return wide * high + across * down + kernels.LEVEL


def start(tracks: Tracks, views: int, airlight: np.ndarray, settings: SmokeSettings) -> np.ndarray:
    """Half of each view's dark bound as an even layer, half as a slope; one airlight."""
    nodes, both = settings.grid[0] * settings.grid[1], unknowns_of(settings.grids) - kernels.LEVEL
    unknowns = np.zeros((views, both + kernels.LEVEL))
    bound = -np.log(np.maximum(1 - (tracks.colour / airlight).min(-1), 0.02))
    every = max(0.02, float(np.quantile(bound, settings.quantile)))
    for view in range(views):
        own = bound[tracks.view == view]
        half = max(0.02, float(np.quantile(own, settings.quantile)) if len(own) else every) / 2
        unknowns[view, :both], unknowns[view, both] = half, 1
    if settings.depth == "none":
        unknowns[:, :nodes] *= 2
        unknowns[:, nodes:both] = 0
    return np.concatenate([unknowns.ravel(), airlight])


def _differences(wide: int, high: int) -> np.ndarray:
    """The quadratic form `[nodes, nodes]` of the differences of neighbouring nodes."""

    def along(count: int) -> np.ndarray:
        rows = np.diff(np.eye(count), axis=0)
        return rows.T @ rows

    return np.kron(np.eye(high), along(wide)) + np.kron(along(high), np.eye(wide))


def _priors(unknowns, airlight: np.ndarray, scale: float, settings: SmokeSettings, matrix, right) -> None:
    """Smooth layers and slopes, small differences of level and tilts, whose mean over the views is none; the airlight
    of the pairs. Added in place."""
    wide, high, across, down = settings.grids
    nodes, both, size = wide * high, wide * high + across * down, unknowns_of(settings.grids)
    views = (len(unknowns) - 3) // size
    smooth = np.zeros((both, both))
    smooth[:nodes, :nodes] = scale / settings.rough**2 * _differences(wide, high)
    smooth[nodes:, nodes:] = scale / settings.uneven**2 * _differences(across, down)
    tight = [scale / max(deviation, 1e-4) ** 2 for deviation in (settings.level, settings.tilt, settings.tilt)]
    for view in range(views):
        own = slice(view * size, view * size + both)
        matrix[own, own] += smooth
        right[own] -= smooth @ unknowns[own]
        for k, (strength, wanted) in enumerate(zip(tight, (1.0, 0.0, 0.0), strict=True)):
            i = view * size + both + k
            matrix[i, i] += strength
            right[i] += strength * (wanted - unknowns[i])
    # level and tilt of all views together belong to the airlight, which the pairs know better
    for k, wanted in enumerate((1.0, 0.0, 0.0)):
        every = np.arange(views) * size + both + k
        strength = scale / HELD**2 / views
        matrix[np.ix_(every, every)] += strength
        right[every] += strength * (wanted - unknowns[every]).sum()
    for c in range(3):
        strength = views * scale / (HELD * airlight[c]) ** 2
        matrix[-3 + c, -3 + c] += strength
        right[-3 + c] += strength * (airlight[c] - unknowns[-3 + c])


def fit(tracks: Tracks, airlight: np.ndarray, unknowns: np.ndarray, settings: SmokeSettings, warm: bool = False) -> Fit:
    """Turn until the unknowns rest; `unknowns` is `start` or an earlier fit's (`warm`)."""
    from scipy.linalg import cho_factor, cho_solve

    nodes, size = settings.grid[0] * settings.grid[1], unknowns_of(settings.grids)
    n = len(unknowns)
    views = (n - 3) // size
    unknowns = unknowns.copy()
    # layers and slopes, which may not become negative; slopes
    per_view = np.arange(n - 3).reshape(views, size)
    below, slopes = per_view[:, : -kernels.LEVEL].ravel(), per_view[:, nodes : -kernels.LEVEL].ravel()
    share = settings.consensus / max(1, len(tracks.view))
    prior = settings.consensus / (views * settings.trials)
    dark = 1 / (settings.quantile * max(1, tracks.count))
    weight, noise = None, 1.0
    for _turn in range(TURNS_WARM if warm else TURNS):
        matrix, right = np.zeros((n, n)), np.zeros(n)
        if weight is None:
            weight = _weights(*_consensus(tracks, unknowns, settings, np.ones(len(tracks.view)), 0.0, matrix, right))[0]
            matrix[:], right[:] = 0, 0
        found = _consensus(tracks, unknowns, settings, weight * share, dark, matrix, right)
        weight, noise = _weights(*found)
        _priors(unknowns, airlight, prior, settings, matrix, right)
        matrix[np.arange(n), np.arange(n)] += 1e-6 * matrix.diagonal() + 1e-12
        if settings.depth == "none":
            matrix[slopes, slopes] += 1e12
        step = cho_solve(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False), right)
        unknowns += np.clip(step, -STRIDE, STRIDE)
        unknowns[below] = np.maximum(unknowns[below], 0)
        unknowns[-3:] = np.maximum(unknowns[-3:], 1e-6)
        if np.abs(step).max() < REST:
            break
    return Fit(unknowns, settings.grids, noise)


def _consensus(tracks: Tracks, unknowns, settings: SmokeSettings, weight, dark, matrix, right):
    return kernels.consensus_equations(
        tracks.starts, tracks.view, tracks.place, tracks.colour, unknowns, settings.grids, weight, settings.quantile,
        settings.cut, SOFT, REACH, dark, matrix, right,
    )[:2]  # fmt: skip


def _weights(residual: np.ndarray, strength: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse variances times what is left of outliers, and the deviation of a faint observation.

    Sensor noise is the same for all; what comes from depth and resampling grows with the signal.
    """
    middle = max(float(np.median(strength)), 1e-9)
    spread = np.sqrt(1 + (strength / middle) ** 2)
    noise = max(float(np.median(residual / spread)), 1e-9)
    e = residual / (noise * spread)
    return 1 / ((noise * spread) ** 2 * (1 + (e / OUTLIER) ** 2)), noise
