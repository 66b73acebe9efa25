"""The camera's own picture: what its maker's processing turns the mosaic into.

It stands for an unknown proprietary pipeline, so it shares nothing with the project's Base ISP: its own demosaicing,
white balance and matrix, a filmic tone curve with highlight roll-off, a hue-dependent twist, light sharpening, JPEG.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from fujinsplat.core.color import encode
from fujinsplat.demo.jit import kernel
from fujinsplat.demo.sensor import BLACK, CAMERA_TO_SRGB, PHOTOSITES, WHITE, WHITE_BALANCE

QUALITY = 95
GAIN = 3.1  # a camera renders brighter than its RAW reads
MIDDLE, CONTRAST = 0.17, 1.26  # the tone curve's pivot and steepness


@kernel
def demosaic(m):
    """White-balanced linear RGGB mosaic `[H, W]` to camera RGB `[H, W, 3]`.

    Green along the smoother direction, corrected by the curvature of the known channel; red and blue as smooth
    differences to green. Borders are reflected, which keeps the mosaic's phase.
    """
    h, w = m.shape
    out = np.empty((h, w, 3))
    for y in range(h):
        for x in range(w):
            if (y + x) & 1:
                out[y, x, 1] = m[y, x]
                continue
            up, down = m[abs(y - 1), x], m[_mirror(y + 1, h), x]
            left, right = m[y, abs(x - 1)], m[y, _mirror(x + 1, w)]
            curve_v = 2 * m[y, x] - m[abs(y - 2), x] - m[_mirror(y + 2, h), x]
            curve_h = 2 * m[y, x] - m[y, abs(x - 2)] - m[y, _mirror(x + 2, w)]
            slope_v = (abs(up - down) + abs(curve_v) + 1e-4) ** 2
            slope_h = (abs(left - right) + abs(curve_h) + 1e-4) ** 2
            # weighted towards the smoother direction, without a hard switch
            share = slope_v / (slope_v + slope_h)
            vertical, horizontal = (up + down) / 2 + curve_v / 4, (left + right) / 2 + curve_h / 4
            out[y, x, 1] = share * horizontal + (1 - share) * vertical
    for y in range(h):
        for x in range(w):
            for channel in (0, 2):
                phase = channel // 2
                total = weight = 0.0
                for dy in range(-1, 2):
                    for dx in range(-1, 2):
                        v, u = _mirror(abs(y + dy), h), _mirror(abs(x + dx), w)
                        if (v & 1) == phase and (u & 1) == phase:
                            k = (2 - abs(dy)) * (2 - abs(dx))
                            total += k * (m[v, u] - out[v, u, 1])
                            weight += k
                out[y, x, channel] = out[y, x, 1] + total / weight
    return out


@kernel
def _mirror(index, size):
    return index if index < size else 2 * size - 2 - index


def tone(linear: np.ndarray) -> np.ndarray:
    """The maker's S curve, linear light to encoded: contrast about middle grey, soft toe, highlights that roll off."""
    x = np.maximum(linear, 0) + 1e-4
    x = MIDDLE * (x / MIDDLE) ** CONTRAST
    y = np.minimum(1.03 * x / (1 + x**1.6) ** (1 / 1.6), 1)
    return encode(y)


def _twist(rgb: np.ndarray) -> np.ndarray:
    """Reds a little warmer, greens a little cooler, blues deeper: what makers call their colour."""
    level = rgb.mean(-1, keepdims=True)
    chroma = rgb - level
    alpha = chroma[..., 0] - 0.5 * (chroma[..., 1] + chroma[..., 2])
    beta = 0.8660254 * (chroma[..., 1] - chroma[..., 2])
    hue = np.arctan2(beta, alpha)
    turn = 0.07 * np.sin(hue + 0.6) + 0.04 * np.sin(2 * hue)
    gain = 1.0 + 0.07 * np.cos(hue - 3.6)
    a = gain * (np.cos(turn) * alpha - np.sin(turn) * beta)
    b = gain * (np.sin(turn) * alpha + np.cos(turn) * beta)
    out = np.stack([2 * a / 3, -a / 3 + b / 1.7320508, -a / 3 - b / 1.7320508], -1)
    return level + out


def _sharpen(encoded: np.ndarray, amount: float = 0.18) -> np.ndarray:
    """Unsharp masking of brightness alone, with a radius of about a pixel."""
    bright = encoded @ np.array([0.3, 0.59, 0.11])
    padded = np.pad(bright, 1, mode="edge")
    rows = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    blurred = 0.25 * rows[:, :-2] + 0.5 * rows[:, 1:-1] + 0.25 * rows[:, 2:]
    return encoded + amount * np.clip(bright - blurred, -0.08, 0.08)[..., None]


def develop(mosaic: np.ndarray, photosites: int = PHOTOSITES) -> np.ndarray:
    """Counts `[h, w]` to the camera's picture, uint8 `[h / photosites, w / photosites, 3]`."""
    linear = (mosaic.astype(np.float64) - BLACK) / (WHITE - BLACK)
    for row, column, channel in ((0, 0, 0), (1, 1, 2)):
        linear[row::2, column::2] *= WHITE_BALANCE[channel]
    # clipped alike, so that highlights stay white
    balanced = np.clip(demosaic(np.minimum(linear, 1.0)), 0, 1)
    h, w = mosaic.shape
    small = balanced.reshape(h // photosites, photosites, w // photosites, photosites, 3).mean((1, 3))
    rgb = _twist(GAIN * (small @ CAMERA_TO_SRGB.T))
    return np.rint(255 * np.clip(_sharpen(tone(rgb)), 0, 1)).astype(np.uint8)


def write_jpeg(path: Path, picture: np.ndarray) -> None:
    Image.fromarray(picture).save(path, "JPEG", quality=QUALITY, subsampling=0)
