"""A small simulated camera for these tests: colourful smooth scenes, haze, and a maker's rendering of its own."""

import numpy as np

from fujinsplat.core import color

WHITE_BALANCE = np.array([2.1, 1.0, 1.7])
CAMERA_MATRIX = np.array([[1.55, -0.42, -0.13], [-0.21, 1.49, -0.28], [0.02, -0.40, 1.38]])  # column convention


def radiance(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Linear sRGB `[H, W, 3]`: flat coloured tiles under a smooth light, with some fine texture."""
    tiles = rng.uniform(0.05, 0.9, (6, 8, 3)) ** 1.5
    rows, columns = np.arange(height) * 6 // height, np.arange(width) * 8 // width
    surface = tiles[rows][:, columns]
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    light = 0.55 + 0.45 * np.sin(3.1 * x + rng.uniform(0, 6)) * np.cos(2.3 * y + rng.uniform(0, 6))
    texture = 1 + 0.15 * np.sin(40 * x + 6 * y)
    return surface * (light * texture)[..., None] * 0.45


def haze(linear: np.ndarray, contrast: float = 0.45, pivot=(0.13, 0.14, 0.15)) -> np.ndarray:
    return contrast * linear + (1 - contrast) * np.asarray(pivot)


def raw_of(linear: np.ndarray, rng: np.random.Generator, gain: float = 0.8, noise: float = 5e-4) -> np.ndarray:
    """Camera-linear RAW without white balance, clipped at the white level."""
    camera = gain * linear @ np.linalg.inv(CAMERA_MATRIX).T / WHITE_BALANCE
    return np.clip(camera + noise * rng.normal(size=camera.shape), 0, 1).astype(np.float32)


def picture_of(raw: np.ndarray) -> np.ndarray:
    """The maker's picture, uint8: balanced and clipped alike, more saturated, an S-shaped tone curve, encoded."""
    linear = np.minimum(raw * WHITE_BALANCE, 1) @ CAMERA_MATRIX.T
    level = linear.mean(axis=-1, keepdims=True)
    linear = np.maximum(level + (linear - level) * [1.2, 1.1, 1.3], 0) * 2.4
    shoulder = linear * (1 + linear / 6) / (1 + linear)
    toned = shoulder * shoulder / (shoulder + 0.015)
    return np.rint(255 * np.clip(color.encode(toned), 0, 1)).astype(np.uint8)


class SimulatedViews:
    """As `fujinsplat.capture.SourceViews`, in memory."""

    folder = "simulated/source"

    def __init__(
        self, count: int = 3, height: int = 96, width: int = 128, seed: int = 1, matrix=CAMERA_MATRIX, hazy=True
    ):
        self._raw, self._rgb, self.matrix = {}, {}, matrix
        for index in range(count):
            rng = np.random.default_rng([seed, index])
            linear = radiance(height, width, rng)
            raw = raw_of(haze(linear) if hazy else linear, rng)
            self._raw[f"{index:04d}"], self._rgb[f"{index:04d}"] = raw, picture_of(raw)
        self.stems = list(self._raw)

    def replace(self, stem, raw, rgb=None):
        """Another RAW for a view, with the camera's picture of it unless one is given."""
        self._raw[stem], self._rgb[stem] = raw, picture_of(raw) if rgb is None else rgb

    def raw(self, stem):
        return self._raw[stem]

    def rgb(self, stem):
        return self._rgb[stem]

    def white_balance(self, stem):
        return WHITE_BALANCE

    def camera_matrix(self, stem):
        return self.matrix
