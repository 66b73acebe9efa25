"""The sRGB encoding, for numpy arrays and torch tensors alike. Names carry the space: `*_linear`, `*_encoded`."""

import numpy as np

# Rec. 709 luminance of linear RGB
LUMINANCE = (0.2126, 0.7152, 0.0722)


def _namespace(x):
    if isinstance(x, np.ndarray | np.generic | float | int):
        return np
    import torch

    return torch


def encode(linear):
    """Linear light to sRGB-encoded. Below 0 the toe's straight line goes on, so the map is a bijection of the reals."""
    xp = _namespace(linear)
    knee = 0.0031308
    power = xp.clip(linear, knee, None) if xp is np else linear.clamp_min(knee)
    return xp.where(linear <= knee, linear * 12.92, 1.055 * power ** (1 / 2.4) - 0.055)


def decode(encoded):
    """sRGB-encoded to linear light, the inverse of `encode`."""
    xp = _namespace(encoded)
    knee = 0.04045
    power = xp.clip(encoded, knee, None) if xp is np else encoded.clamp_min(knee)
    return xp.where(encoded <= knee, encoded / 12.92, ((power + 0.055) / 1.055) ** 2.4)


def luminance(rgb_linear):
    """Rec. 709 luminance of linear RGB `[..., 3]`."""
    r, g, b = LUMINANCE
    return r * rgb_linear[..., 0] + g * rgb_linear[..., 1] + b * rgb_linear[..., 2]
