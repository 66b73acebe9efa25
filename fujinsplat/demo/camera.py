"""The camera's own picture: what its maker's processing turns the mosaic into.

It stands for an unknown proprietary pipeline, so it shares nothing with the project's Base ISP: its own demosaicing,
white balance and matrix, a filmic tone curve with highlight roll-off, a hue-dependent twist, light sharpening, JPEG.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from fujinsplat.demo.sensor import BLACK, CAMERA_TO_SRGB, WHITE, WHITE_BALANCE

QUALITY = 95
GAIN = 3.1  # a camera renders brighter than its RAW reads


def _shift(a: np.ndarray, dy: int, dx: int) -> np.ndarray:
    """a[y + dy, x + dx] with the border reflected, so that the mosaic's phase is kept."""
    padded = np.pad(a, 2, mode="reflect")
    return padded[2 + dy : 2 + dy + a.shape[0], 2 + dx : 2 + dx + a.shape[1]]


def demosaic(mosaic: np.ndarray) -> np.ndarray:
    """White-balanced linear RGGB mosaic `[H, W]` to camera RGB `[H, W, 3]`.

    Green along the direction of the smaller gradient, corrected by the curvature of the known channel; red and blue as
    smooth differences to green.
    """
    m = mosaic
    left, right, up, down = _shift(m, 0, -1), _shift(m, 0, 1), _shift(m, -1, 0), _shift(m, 1, 0)
    curve_h = 2 * m - _shift(m, 0, -2) - _shift(m, 0, 2)
    curve_v = 2 * m - _shift(m, -2, 0) - _shift(m, 2, 0)
    slope_h = np.abs(left - right) + np.abs(curve_h)
    slope_v = np.abs(up - down) + np.abs(curve_v)
    green_h = (left + right) / 2 + curve_h / 4
    green_v = (up + down) / 2 + curve_v / 4
    weight = (slope_v + 1e-4) / (slope_h + slope_v + 2e-4)
    weight = weight**2 / (weight**2 + (1 - weight) ** 2)  # towards the smoother direction, without a hard switch
    green = weight * green_h + (1 - weight) * green_v
    rows, columns = np.indices(m.shape)
    is_green = (rows + columns) % 2 == 1
    green = np.where(is_green, m, green)
    out = np.empty((*m.shape, 3))
    out[..., 1] = green
    for channel, phase in ((0, 0), (2, 1)):
        known = (rows % 2 == phase) & (columns % 2 == phase)
        difference = np.where(known, m - green, 0.0)
        total, weights = np.zeros_like(m), np.zeros_like(m)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                w = (2 - abs(dy)) * (2 - abs(dx))
                total += w * _shift(difference, dy, dx)
                weights += w * _shift(known.astype(float), dy, dx)
        out[..., channel] = green + total / weights
    return out


def tone(linear: np.ndarray) -> np.ndarray:
    """The maker's S curve, linear light to encoded: a toe, a straight middle, a shoulder that rolls off to white."""
    x = np.maximum(linear, 0)
    shoulder = x * (1 + x / 9.0) / (1 + x)  # white is reached at three times middle exposure's white
    toed = shoulder**1.12 / (shoulder**1.12 + 0.02 * np.exp(-9 * shoulder)) * shoulder
    y = np.clip(1.18 * toed, 0, 1)
    return np.where(y <= 0.0031308, 12.92 * y, 1.055 * np.maximum(y, 1e-9) ** (1 / 2.4) - 0.055)


def _twist(rgb: np.ndarray) -> np.ndarray:
    """Reds a little warmer, greens a little cooler, blues deeper: what makers call their colour."""
    level = rgb.mean(-1, keepdims=True)
    chroma = rgb - level
    alpha = chroma[..., 0] - 0.5 * (chroma[..., 1] + chroma[..., 2])
    beta = 0.8660254 * (chroma[..., 1] - chroma[..., 2])
    hue = np.arctan2(beta, alpha)
    turn = 0.07 * np.sin(hue + 0.6) + 0.04 * np.sin(2 * hue)
    gain = 1.08 + 0.07 * np.cos(hue - 3.6)
    a = gain * (np.cos(turn) * alpha - np.sin(turn) * beta)
    b = gain * (np.sin(turn) * alpha + np.cos(turn) * beta)
    out = np.stack([2 * a / 3, -a / 3 + b / 1.7320508, -a / 3 - b / 1.7320508], -1)
    return level + out


def _sharpen(encoded: np.ndarray, amount: float = 0.18) -> np.ndarray:
    """Unsharp masking of brightness alone, with a radius of about a pixel."""
    bright = encoded @ np.array([0.3, 0.59, 0.11])
    blurred = sum(w * _shift(bright, 0, k) for k, w in ((-1, 0.25), (0, 0.5), (1, 0.25)))
    blurred = sum(w * _shift(blurred, k, 0) for k, w in ((-1, 0.25), (0, 0.5), (1, 0.25)))
    return encoded + amount * np.clip(bright - blurred, -0.08, 0.08)[..., None]


def develop(mosaic: np.ndarray) -> np.ndarray:
    """Counts `[H, W]` to the camera's picture, uint8 `[H, W, 3]`."""
    linear = (mosaic.astype(np.float64) - BLACK) / (WHITE - BLACK)
    for row, column, channel in ((0, 0, 0), (1, 1, 2)):
        linear[row::2, column::2] *= WHITE_BALANCE[channel]
    balanced = np.clip(demosaic(np.minimum(linear, 1.0)), 0, 1)  # clipped alike, so that highlights stay white
    rgb = _twist(GAIN * (balanced @ CAMERA_TO_SRGB.T))
    return np.rint(255 * np.clip(_sharpen(tone(rgb)), 0, 1)).astype(np.uint8)


def write_jpeg(path: Path, picture: np.ndarray) -> None:
    Image.fromarray(picture).save(path, "JPEG", quality=QUALITY, subsampling=0)
