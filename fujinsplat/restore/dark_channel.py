"""The dark channel prior: in a haze-free picture almost every neighbourhood has a value near zero in some channel, so
what is missing to zero is haze (He, Sun, Tang, CVPR 2009), with a guided filter to fit its edges (He et al. 2010).

It works on encoded pictures, as published.
"""

import numpy as np
from scipy.ndimage import minimum_filter, uniform_filter

from fujinsplat.restore.settings import RestorerSettings

GREY = np.array([0.299, 0.587, 0.114])  # Rec. 601 luma of encoded RGB: the guide


def dark_channel(picture_encoded: np.ndarray, window: int) -> np.ndarray:
    """The smallest value of any channel within a square window, `[H, W]`."""
    return minimum_filter(picture_encoded.min(-1), window, mode="nearest")


def airlight(picture_encoded: np.ndarray, dark: np.ndarray, brightest: float) -> np.ndarray:
    """The brightest pixel `[3]` among the `brightest` share of pixels by dark channel."""
    count = max(1, round(brightest * dark.size))
    places = np.argsort(dark, axis=None, kind="stable")[-count:]
    candidates = picture_encoded.reshape(-1, 3)[places]
    return candidates[np.argmax(candidates.sum(-1))]


def guided_filter(guide: np.ndarray, values: np.ndarray, radius: int, epsilon: float) -> np.ndarray:
    """`values [H, W]` smoothed over squares of side 2 radius + 1, with the edges of `guide [H, W]`."""

    def mean(x: np.ndarray) -> np.ndarray:
        return uniform_filter(x, 2 * radius + 1, mode="reflect")

    m, n = mean(guide), mean(values)
    slope = (mean(guide * values) - m * n) / (mean(guide * guide) - m * m + epsilon)
    return mean(slope) * guide + mean(n - slope * m)


def restore_picture(picture: np.ndarray, settings: RestorerSettings) -> np.ndarray:
    """uint8 `[H, W, 3]` in, uint8 out."""
    hazy = picture.astype(np.float64) / 255
    light = np.maximum(airlight(hazy, dark_channel(hazy, settings.window), settings.brightest), 1e-3)
    transmission = 1 - settings.omega * dark_channel(hazy / light, settings.window)
    transmission = guided_filter(hazy @ GREY, transmission, settings.radius, settings.epsilon)
    clear = (hazy - light) / np.maximum(transmission, settings.floor)[..., None] + light
    return (np.clip(clear, 0, 1) * 255 + 0.5).astype(np.uint8)
