"""The initial state of a scene's base: what its RAW files say, and monotone and least-squares regressions for the rest.

White balance and colour matrix come from the files; exposure and tone from regressing the developed RAW onto the
camera's RGB. With `initial: fitted` the matrix follows the pictures as far as they show colour (makers render more
saturated than their metadata say), and a smooth G9 explains what is left. Everything is fitted in the asinh latent,
with weights that make it count encoded errors.
"""

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import nnls

from fujinsplat.core import color
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import IspSettings
from fujinsplat.isp import tonefit
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.reference import COARSE, SCALE
from fujinsplat.isp.samples import Samples

RAW_CLIPPED = 0.985  # a RAW channel above this may be saturated: its colour is not to be trusted
RGB_BLACK, RGB_WHITE = 0.5 / 255, 254.5 / 255
# A view is refused when an increasing function of RAW brightness explains less than this share of the camera's
# brightness over small squares, and what is left is more than noise could be.
LEAST_EXPLAINED, LARGEST_REST = 0.5, 0.03


def check_views(samples: Samples, where: str) -> None:
    """Refuse a view whose RAW and RGB cannot be two developments of one exposure.

    The camera's brightness must follow an increasing function of some mixture of the RAW channels, with weights of its
    own choice (a maker's colours decide how bright a saturated red becomes) but none below zero.
    """
    for view in samples.views:
        brightness = view.blocks_rgb @ np.asarray([0.25, 0.5, 0.25]) / 255
        channels = np.log(view.blocks_raw * samples.white_balance + 0.005)
        mixture = nnls(channels - channels.mean(axis=0), brightness - brightness.mean())[0]
        share, rest = tonefit.explained(channels @ mixture, brightness)
        if share < LEAST_EXPLAINED and rest > LARGEST_REST:
            raise UserError(
                f"view {view.stem} of {where}: no increasing tone map leads from its RAW to its camera RGB (the best "
                f"explains {100 * max(share, 0):.0f} % of the brightness); check that both files are of one shot"
            )


def pooled(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """(RAW linear, camera RGB encoded) at all views' quiet places, float64 `[N, 3]`."""
    raw = np.concatenate([view.quiet_raw for view in samples.views]).astype(np.float64)
    rgb = np.concatenate([view.quiet_rgb for view in samples.views]).astype(np.float64) / 255
    return raw, rgb


def trusted(raw: np.ndarray, rgb: np.ndarray) -> np.ndarray:
    """Pixels `[N]` bool that neither sensor nor camera clipped in any channel; all, when too few would be left."""
    whole = (raw.max(axis=1) < RAW_CLIPPED) & (rgb.max(axis=1) < RGB_WHITE) & (rgb.min(axis=1) > RGB_BLACK)
    return whole if whole.sum() >= 1000 else np.ones(len(raw), bool)


def fit_tone(linear: np.ndarray, rgb: np.ndarray, encoding: str) -> np.ndarray:
    """Curves `[3, 257]` in the latent, from display-linear `[N, 3]` to what the last module makes the camera's RGB of.

    The channels' curves keep to a shared one where they have no pixels of their own.
    """
    target = tonefit.toned(rgb, encoding)
    x, y, weight = tonefit.latent(linear), tonefit.latent(target), tonefit.sensitivity(target, encoding) ** 2
    shared = tonefit.fit_curve(x.ravel(), y.ravel(), weight.ravel(), tonefit.rest_curve(encoding))
    return np.stack([tonefit.fit_curve(x[:, c], y[:, c], weight[:, c], shared) for c in range(3)])


def exposure_of(linear: np.ndarray, rgb: np.ndarray) -> float:
    """Gain that brings the developed RAW to the camera's level, but keeps nearly all of it within [0, 1]."""
    ratio = np.median(color.luminance(color.decode(rgb))) / max(np.median(color.luminance(linear)), 1e-6)
    # a black picture says nothing, so the gain stays within what cameras do
    return float(np.clip(min(ratio, 1 / max(np.percentile(linear, 99.5), 1e-6)), 1e-3, 1e3))


def fit_matrix(balanced: np.ndarray, rgb: np.ndarray, prior: np.ndarray, pull: float, rounds: int = 8) -> np.ndarray:
    """Row matrix `[3, 3]` from white-balanced RAW to display RGB, by turns with one tone curve for all channels.

    One curve, because three would absorb what belongs to the matrix. Columns sum to 1, so that white-balanced grey
    stays grey; the overall gain is the exposure's and the tone curve's. `pull` towards `prior` decides what pictures
    with little colour leave open.
    """
    matrix = prior / prior.sum(axis=0)
    target, sensitivity = tonefit.latent(color.decode(rgb)), tonefit.sensitivity(color.decode(rgb))
    gain = exposure_of(balanced, rgb)
    prior = matrix.copy()
    for _ in range(rounds):
        reached = tonefit.latent(gain * balanced @ matrix)
        shared = tonefit.fit_curve(reached.ravel(), target.ravel(), sensitivity.ravel() ** 2)
        wanted_latent = tonefit.invert_curve(shared, target)
        wanted = SCALE * np.sinh(wanted_latent) / gain
        slope = np.interp(wanted_latent, tonefit.NODES, np.gradient(shared, tonefit.NODES))
        weight = sensitivity * slope / np.sqrt(wanted**2 + (SCALE / gain) ** 2)
        for c in range(3):
            others = [k for k in range(3) if k != c]
            basis = (balanced[:, others] - balanced[:, [c]]) * weight[:, [c]]
            left = basis.T @ basis / len(basis) + pull * np.eye(2)
            right = basis.T @ ((wanted[:, c] - balanced[:, c]) * weight[:, c]) / len(basis)
            matrix[others, c] = np.linalg.solve(left, right + pull * prior[others, c])
            matrix[c, c] = 1 - matrix[others, c].sum()
    return matrix


def lattice_weights(address: np.ndarray) -> sparse.csr_matrix:
    """Trilinear weights `[N, 729]` of the nine-node lattice at `address` `[N, 3]` in [0, 1]."""
    scaled = address * (COARSE - 1)
    low = np.minimum(scaled.astype(int), COARSE - 2)
    part = scaled - low
    columns, values = [], []
    for corner in np.ndindex(2, 2, 2):
        columns.append(((low + corner) * [COARSE * COARSE, COARSE, 1]).sum(axis=1))
        values.append(np.where(corner, part, 1 - part).prod(axis=1))
    rows = np.tile(np.arange(len(address)), 8)
    return sparse.csr_matrix((np.concatenate(values), (rows, np.concatenate(columns))), shape=(len(address), COARSE**3))


def lattice_smoothness() -> np.ndarray:
    """First-difference energy of a 9^3 lattice, `[729, 729]`: nodes no pixel reads take their neighbours' value."""
    line = np.diff(np.eye(COARSE), axis=0)
    line = line.T @ line
    one = np.eye(COARSE)
    return np.kron(np.kron(line, one), one) + np.kron(np.kron(one, line), one) + np.kron(np.kron(one, one), line)


def fit_lattice(front: np.ndarray, rgb: np.ndarray, curves: np.ndarray, smooth: float, encoding: str) -> np.ndarray:
    """G9 `[9, 9, 9, 3]` that moves the front's latent to where the tone curves meet the camera's RGB."""
    target = tonefit.toned(rgb, encoding)
    positive = np.maximum(front, 0)
    basis = lattice_weights(positive / (positive + SCALE))
    energy = lattice_smoothness()
    source = tonefit.latent(front)
    nodes = np.empty((COARSE**3, 3))
    for c in range(3):
        wanted = tonefit.invert_curve(curves[c], tonefit.latent(target[:, c]))
        action = wanted - source[:, c]
        # a clipped camera value only says "at least" or "at most"
        action = np.where(rgb[:, c] > RGB_WHITE, np.maximum(action, 0), action)
        action = np.where(rgb[:, c] < RGB_BLACK, np.minimum(action, 0), action)
        slope = np.gradient(curves[c], tonefit.NODES)
        weight = (tonefit.sensitivity(target[:, c], encoding) * np.interp(wanted, tonefit.NODES, slope)) ** 2
        weight /= weight.sum()
        weighted = basis.multiply(weight[:, None]).tocsr()
        left = (basis.T @ weighted).toarray() + smooth * energy / COARSE**3 + 1e-9 * np.eye(COARSE**3)
        nodes[:, c] = np.linalg.solve(left, weighted.T @ action)
    return nodes.reshape(COARSE, COARSE, COARSE, 3)


def initial_state(samples: Samples, settings: IspSettings, where: str) -> BaseISP:
    """The base before its first update."""
    check_views(samples, where)
    raw, rgb = pooled(samples)
    balanced = raw * samples.white_balance
    use = trusted(raw, rgb)
    matrix = np.eye(3) if samples.camera_matrix is None else samples.camera_matrix.T
    if samples.camera_matrix is None or settings.initial == "fitted":
        matrix = fit_matrix(balanced[use], rgb[use], matrix, settings.initial_matrix)
    linear = balanced @ matrix
    gain = exposure_of(linear[use], rgb[use])
    log_balance = np.log(samples.white_balance)
    exposure, balance = np.log(gain) + log_balance.mean(), log_balance - log_balance.mean()
    base = BaseISP(exposure, balance, torch.as_tensor(matrix), settings.encoding)
    curves = fit_tone(gain * linear[use], rgb[use], settings.encoding)
    with torch.no_grad():
        parameters = np.stack([tonefit.curve_parameter(curve) for curve in curves])
        base.tone.copy_(torch.from_numpy(parameters))
        if settings.initial == "fitted":
            nodes = fit_lattice(gain * linear, rgb, curves, settings.initial_smooth, settings.encoding)
            base.g9.copy_(torch.from_numpy(nodes))
    return base
