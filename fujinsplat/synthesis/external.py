"""The external captures' own base: white balance, one colour matrix, a tone, then the output encoding [supp. F].

Being analytic, it develops a clean capture into the desired output J and brings the hazed output back to RAW in closed
form. Two gains are kept apart: a capture's own gain makes its RAW as bright as the source views' RAW, and the tone
makes the developed population as bright as the source views' base output.

The published tone is one number, an exposure. But a camera's rendering has a shoulder: without one, everything above a
third of the sensor's range is white before smoke is laid over it, synthetic RAW has no highlights, and a controller
takes the highlights of real views for thin smoke. So the tone is that of a calibrated Base ISP on grey, where one is
given.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fujinsplat.core.color import decode, encode
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json, write_json
from fujinsplat.core.reading import reader
from fujinsplat.synthesis.sheet import Capture

CLIPPED = 0.98  # of the sensor's range: a clipped pixel says nothing about the matrix
BLOCK = 8  # side in pixels
TONE_KNOTS = 97
LEAST_SLOPE = 0.02  # of a tone: a flatter shoulder would make the inverse coarse


@dataclass(frozen=True)
class Tone:
    """An increasing map of linear light through the knots (x, y) `[n]` each, straight between and beyond them."""

    x: np.ndarray
    y: np.ndarray

    @classmethod
    def exposure(cls, gain: float) -> "Tone":
        return cls(np.array([0.0, 1.0]), np.array([0.0, gain]))

    def __call__(self, linear: np.ndarray) -> np.ndarray:
        return _straight(linear, self.x, self.y)

    def invert(self, linear: np.ndarray) -> np.ndarray:
        return _straight(linear, self.y, self.x)


def _straight(values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    piece = np.clip(np.searchsorted(x, values, side="right") - 1, 0, len(x) - 2)
    slope = np.diff(y) / np.diff(x)
    return y[piece] + slope[piece] * (values - x[piece])


def tone_of(base, white_balance: np.ndarray) -> Tone:
    """The tone of a calibrated Base ISP: what it makes of grey, mean of the channels, in linear light.

    It is known from smoky views alone. Where calibration left a dent the curve is kept just increasing.
    """
    from fujinsplat.isp import develop

    levels = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, TONE_KNOTS - 1)])
    grey_raw = (levels[:, None] / np.asarray(white_balance))[None].astype(np.float32)
    developed = decode(np.clip(develop(base, grey_raw)[0].astype(np.float64), 0, 1)).mean(axis=-1)
    developed[0] = 0.0
    rises = np.maximum(np.diff(developed), LEAST_SLOPE * np.diff(levels))
    return Tone(levels, np.concatenate([[0.0], np.cumsum(rises)]))


@dataclass(frozen=True)
class ExternalBase:
    """`matrix [3, 3]` (rows: out = in @ matrix) from white-balanced camera RGB to linear sRGB, then a tone."""

    matrix: np.ndarray
    tone: Tone = field(default_factory=lambda: Tone.exposure(1.0))

    def linear(self, raw: np.ndarray, white_balance: np.ndarray) -> np.ndarray:
        """Camera-linear RAW `[..., 3]` to linear output; no clamp."""
        return self.tone(raw @ (np.asarray(white_balance)[:, None] * self.matrix))

    def develop(self, raw: np.ndarray, white_balance: np.ndarray) -> np.ndarray:
        """B: camera-linear RAW to encoded output."""
        return encode(self.linear(raw, white_balance))

    def invert(self, encoded: np.ndarray, white_balance: np.ndarray) -> np.ndarray:
        """B^-1: encoded output back to camera-linear RAW."""
        effective = np.asarray(white_balance)[:, None] * self.matrix
        return self.tone.invert(decode(encoded)) @ np.linalg.inv(effective)


def fit_matrix(captures: list[Capture], count: int) -> tuple[np.ndarray, list[str], float]:
    """One matrix for all captures: least squares from RAW x white balance to LibRaw's own linear sRGB, pooled.

    Returns the matrix `[3, 3]`, the names of the captures used (spread evenly over the sheet) and the relative misfit.
    """
    chosen = [captures[i] for i in np.unique(np.linspace(0, len(captures) - 1, min(count, len(captures))).astype(int))]
    pooled = [_pair(capture) for capture in chosen]
    balanced, rendered = (np.concatenate(parts) for parts in zip(*pooled, strict=True))
    matrix, _, rank, _ = np.linalg.lstsq(balanced, rendered, rcond=None)
    if rank < 3 or abs(np.linalg.det(matrix)) < 1e-3:
        raise UserError(
            f"{captures[0].path.parent}: the calibration captures hold too few colours to fit a matrix; "
            "raise synthesis.calibration_captures or replace the captures"
        )
    misfit = np.sqrt(np.mean((balanced @ matrix - rendered) ** 2)) / np.sqrt(np.mean(rendered**2))
    return matrix, [capture.name for capture in chosen], float(misfit)


def _pair(capture: Capture) -> tuple[np.ndarray, np.ndarray]:
    """White-balanced RAW and LibRaw's linear sRGB of the same pixels, `[n, 3]` each, unclipped ones only."""
    import rawpy

    from fujinsplat.capture.raw import read_raw
    from fujinsplat.core.settings import CaptureSettings

    raw = read_raw(capture.path, CaptureSettings())
    with rawpy.imread(str(capture.path)) as file:
        rendered = file.postprocess(
            use_camera_wb=True,
            output_color=rawpy.ColorSpace.sRGB,
            output_bps=16,
            gamma=(1, 1),
            no_auto_bright=True,
            adjust_maximum_thr=0.0,
            user_flip=0,
        )
    # demosaicing differs with white balance, and noise in the regressors would shrink the matrix: compare block means
    linear, rendered = _blocks(raw.linear / np.float32(65535)), _blocks(rendered / np.float32(65535))
    usable = (linear[1] < CLIPPED) & (rendered[1] < CLIPPED) & (rendered[2] > 0)
    return linear[0][usable] * np.asarray(raw.white_balance), rendered[0][usable]


def _blocks(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means `[n, 3]` of square blocks of `picture [H, W, 3]`, and each block's largest and smallest value `[n]`."""
    rows, columns = (length // BLOCK for length in picture.shape[:2])
    blocks = picture[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3)
    mean, high, low = blocks.mean(axis=(1, 3)), blocks.max(axis=(1, 3, 4)), blocks.min(axis=(1, 3, 4))
    return mean.reshape(-1, 3).astype(np.float64), high.ravel(), low.ravel()


def save_matrix(path: Path | str, matrix: np.ndarray, names: list[str], misfit: float) -> None:
    write_json(path, {"matrix": matrix.tolist(), "captures": names, "misfit": misfit})


@reader("matrix of the external base", "build it with `fujinsplat synthesis base`")
def load_matrix(path: Path | str) -> np.ndarray:
    values = read_json(path)
    matrix = np.asarray(values.get("matrix") if isinstance(values, dict) else None, np.float64)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        raise UserError(f"{path} holds no 3x3 matrix; build it with `fujinsplat synthesis base`")
    return matrix
