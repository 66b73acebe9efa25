"""The sRGB encoding, for numpy arrays and torch tensors alike. Names carry the space: `*_linear`, `*_encoded`."""

from typing import Any, TypeVar

import numpy as np

# the sRGB curve: a straight toe up to the knee, then SCALE x^POWER - OFFSET
KNEE_LINEAR, KNEE_ENCODED = 0.0031308, 0.04045
TOE, SCALE, OFFSET, EXPONENT = 12.92, 1.055, 0.055, 2.4
POWER = 1 / EXPONENT
# Rec. 709 luminance of linear RGB
LUMINANCE = (0.2126, 0.7152, 0.0722)

Light = TypeVar("Light", bound=Any)  # an array, a tensor or a number; what goes in comes out


def _namespace(x) -> Any:
    if isinstance(x, np.ndarray | np.generic | float | int):
        return np
    import torch

    return torch


def encode(linear: Light) -> Light:
    """Linear light to sRGB-encoded. Below 0 the toe's straight line goes on, so the map is a bijection of the reals."""
    xp = _namespace(linear)
    power = xp.clip(linear, KNEE_LINEAR, None) if xp is np else linear.clamp_min(KNEE_LINEAR)
    return xp.where(linear <= KNEE_LINEAR, linear * TOE, SCALE * power**POWER - OFFSET)


def decode(encoded: Light) -> Light:
    """sRGB-encoded to linear light, the inverse of `encode`."""
    xp = _namespace(encoded)
    power = xp.clip(encoded, KNEE_ENCODED, None) if xp is np else encoded.clamp_min(KNEE_ENCODED)
    return xp.where(encoded <= KNEE_ENCODED, encoded / TOE, ((power + OFFSET) / SCALE) ** EXPONENT)


def slope(linear: np.ndarray) -> np.ndarray:
    """d encoded / d linear of `encode`, numpy."""
    steep = SCALE * POWER * np.maximum(linear, KNEE_LINEAR) ** (POWER - 1)
    return np.where(linear <= KNEE_LINEAR, TOE, steep)


def luminance(rgb_linear: Light) -> Light:
    """Rec. 709 luminance of linear RGB `[..., 3]`."""
    r, g, b = LUMINANCE
    return r * rgb_linear[..., 0] + g * rgb_linear[..., 1] + b * rgb_linear[..., 2]
