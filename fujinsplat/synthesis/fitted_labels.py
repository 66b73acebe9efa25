"""The fitted label compiler: the published structure, but an inverse of the veil that is right to about 45 dB.

A uniform veil acts on each channel alone, and so does every label here: one curve per block shared by the three
channels, and constant offsets in the couplings. What differs from the published rule is that all K + 1 curve blocks
and all K stages take part. The first blocks lead to a coordinate close to linear light, where a constant offset is
exactly the chromatic part of a veil; the later ones remove the achromatic part and encode again.

A label is the end of a fixed number of damped Gauss-Newton steps on the residual `T_p(veil(e)) - e` over a ramp of
clean encoded values e, held near a smooth function of (c, t) (`basis.py`). No step is ever chosen by comparing losses,
so the label inherits the smoothness of its start; at t = 1 start and residual are zero, and so is the label.

Unknowns of one draw, `[(K+1) M + 2 K]`: the shared curves, then per stage the constants of s1 and s2.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from fujinsplat.core.color import decode, encode
from fujinsplat.flow.layout import COUPLING_BOUND, KNOTS, LOGIT_BOUND, channels

RAMP = 96  # clean encoded values per channel that a label is fitted to
TOWARDS_BLACK = 1.6  # exponent that crowds them at the dark end, where pictures taken through smoke have their pixels
STEPS = 6
DAMPING = 1e-2
ANCHOR = 3e-3  # pull towards the smooth start
CHUNK = 64  # draws solved together: bounds the memory of the Jacobians


def veiled(clean_encoded: np.ndarray, pivot: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """Clean encoded ramp `[S]` through the veil of draws c `[B, 3]`, t `[B]`: encoded `[B, 3, S]`."""
    t = contrast[:, None, None]
    return encode(t * decode(clean_encoded) + (1 - t) * pivot[:, :, None])


def unpack(unknowns: np.ndarray, K: int, M: int) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns `[B, U]` to curves `[B, K+1, M]` and constants `[B, K, 2]`."""
    curves, constants = np.split(unknowns, [(K + 1) * M], axis=-1)
    return curves.reshape(-1, K + 1, M), constants.reshape(-1, K, 2)


class Chain:
    """One evaluation of draws' shared curves and constants on `x [B, 3, S]`, kept for its Jacobian."""

    def __init__(self, unknowns: np.ndarray, x: np.ndarray, K: int, M: int):
        self.K, self.M = K, M
        curves, constants = unpack(unknowns, K, M)
        self.squashed = np.tanh(curves)
        g = self.squashed - self.squashed.mean(axis=-1, keepdims=True)
        self.excess = np.maximum(1.0, np.abs(g).max(axis=-1, keepdims=True))
        logits = LOGIT_BOUND * g / self.excess
        e = np.exp(logits - logits.max(axis=-1, keepdims=True))
        self.increments = e / e.sum(axis=-1, keepdims=True)  # [B, K+1, M]
        self.g = g
        self.offsets = np.tanh(constants)  # [B, K, 2]
        nodes = np.cumsum(self.increments, axis=-1) - self.increments

        draw = np.arange(len(x))[:, None, None]
        self.pieces, self.outputs = [], []
        u = x
        for block in range(K + 1):
            piece = np.clip(np.floor(u * M), 0, M - 1).astype(np.intp)
            part = u * M - piece
            height = self.increments[:, block][draw, piece]
            u = nodes[:, block][draw, piece] + part * height
            self.pieces.append((piece, part, height))
            self.outputs.append(u)
            if block < K:
                _, second, third = channels(block)
                u = u.copy()
                u[:, second] += COUPLING_BOUND * self.offsets[:, block, 0, None]
                u[:, third] += 0.5 * COUPLING_BOUND * self.offsets[:, block, 1, None]
        self.y = u

    def jacobian(self) -> np.ndarray:
        """d y / d unknowns, `[B, 3, S, U]`, from the last block backwards."""
        K, M = self.K, self.M
        batch, _, samples = self.y.shape
        result = np.zeros((batch, 3, samples, (K + 1) * M + 2 * K))
        constants = (K + 1) * M
        passed = np.ones_like(self.y)  # d y / d (output of the current block)
        index = np.arange(M)
        for block in range(K, -1, -1):
            piece, part, height = self.pieces[block]
            covered = (index < piece[..., None]) + (index == piece[..., None]) * part[..., None]
            by_logit = self.increments[:, block][:, None, None] * (covered - self.outputs[block][..., None])
            by_curve = self._through_bounds(by_logit, block)
            result[..., block * M : (block + 1) * M] = passed[..., None] * by_curve
            passed = passed * (M * height)
            if block > 0:
                _, second, third = channels(block - 1)
                slope = COUPLING_BOUND * (1 - self.offsets[:, block - 1] ** 2)
                result[:, second, :, constants + 2 * (block - 1)] = passed[:, second] * slope[:, 0, None]
                result[:, third, :, constants + 2 * (block - 1) + 1] = 0.5 * passed[:, third] * slope[:, 1, None]
        return result

    def _through_bounds(self, by_logit: np.ndarray, block: int) -> np.ndarray:
        """Chain rule through the centring and bounding of logits: `[B, 3, S, M]` to the same shape."""
        excess, g = self.excess[:, block], self.g[:, block]
        by_g = LOGIT_BOUND * by_logit / excess[:, None, None]
        for draw in np.flatnonzero(excess[:, 0] > 1):
            # beyond the bound every logit is divided by the largest |g|, so that one entry moves them all
            top = np.abs(g[draw]).argmax()
            by_g[draw, ..., top] -= np.sign(g[draw, top]) * (by_g[draw] @ g[draw]) / excess[draw, 0]
        by_g -= by_g.mean(axis=-1, keepdims=True)
        by_g *= (1 - self.squashed[:, block] ** 2)[:, None, None]
        return by_g


def refine(
    start: np.ndarray,
    pivot: np.ndarray,
    contrast: np.ndarray,
    K: int,
    M: int,
    steps: int = STEPS,
    anchor: float = ANCHOR,
) -> np.ndarray:
    """Unknowns `[B, U]` after a fixed number of damped Gauss-Newton steps from `start`, held near it by `anchor`."""
    result = np.empty_like(start)
    ramp = np.linspace(0, 1, RAMP) ** TOWARDS_BLACK
    diagonal = np.arange(start.shape[1])

    def solve(first: int) -> None:
        part = slice(first, first + CHUNK)
        x = veiled(ramp, pivot[part], contrast[part])
        origin = start[part]
        unknowns = origin.copy()
        for _ in range(steps):
            chain = Chain(unknowns, x, K, M)
            residual = (chain.y - ramp).reshape(len(x), -1)
            jacobian = chain.jacobian().reshape(*residual.shape, -1)
            transposed = jacobian.transpose(0, 2, 1)
            normal = transposed @ jacobian / residual.shape[1]
            normal[:, diagonal, diagonal] += anchor + DAMPING
            gradient = (transposed @ residual[..., None])[..., 0] / residual.shape[1] + anchor * (unknowns - origin)
            unknowns = unknowns - np.linalg.solve(normal, gradient[..., None])[..., 0]
        result[part] = unknowns

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(solve, range(0, len(start), CHUNK)))
    return result


def fidelity(unknowns: np.ndarray, pivot: np.ndarray, contrast: np.ndarray, K: int, M: int) -> np.ndarray:
    """PSNR `[B]` with which labels undo their veil on a clean ramp twice as fine as the fitted one."""
    ramp = np.linspace(0, 1, 2 * RAMP + 1)
    result = np.empty(len(unknowns))
    for first in range(0, len(unknowns), CHUNK):
        part = slice(first, first + CHUNK)
        y = Chain(unknowns[part], veiled(ramp, pivot[part], contrast[part]), K, M).y
        result[part] = -10 * np.log10(((y - ramp) ** 2).mean(axis=(1, 2)) + 1e-12)
    return result


def compile_fitted(
    pivot: np.ndarray, contrast: np.ndarray, K: int, M: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Curves `[B, K+1, 3, M]`, couplings `[B, K, 3, 9]` and the encoded black floor `[B]` of draws c `[B, 3]`, t `[B]`.

    The floor is what the action makes of pure veil, the darkest value a veiled picture holds; below it lies the toe.
    """
    from fujinsplat.synthesis.basis import start

    unknowns = refine(start(pivot, contrast, K, M), pivot, contrast, K, M)
    shared, constants = unpack(unknowns, K, M)
    curves = np.repeat(shared[:, :, None], 3, axis=2)
    couplings = np.zeros((len(contrast), K, 3, KNOTS))
    couplings[:, :, :2] = constants[..., None]
    floor = Chain(unknowns, veiled(np.zeros(1), pivot, contrast), K, M).y[..., 0].max(axis=1)
    return curves, couplings, np.maximum(floor, 0.0)
