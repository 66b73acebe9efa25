"""Resampling through a map: Catmull-Rom, which keeps the sharpness that averaging four pixels loses."""

import numpy as np
from numba import njit

from fujinsplat.kernels.jit import kernel


@njit(inline="always")
def _weights(t):
    """The four Catmull-Rom weights at `t` in [0, 1) between the middle two samples; they sum to 1."""
    a = t * (-0.5 + t * (1.0 - 0.5 * t))
    b = 1.0 + t * t * (-2.5 + 1.5 * t)
    c = t * (0.5 + t * (2.0 - 1.5 * t))
    return a, b, c, 1.0 - a - b - c


@kernel(nogil=True, fastmath=True)
def cubic(image, places, step, width, height, top):
    """`image` [H, W, 3] seen at `places` [h, w, 2] (pixels, corner of the first at 0; every `step`-th output pixel
    centre, straight lines between them): float32 [height, width, 3], clipped to 0…`top`; edges are repeated."""
    rows, columns = image.shape[0], image.shape[1]
    out = np.empty((height, width, 3), np.float32)
    for y in range(height):
        j = min(y // step, places.shape[0] - 2) if places.shape[0] > 1 else 0
        down = np.float32((y - j * step) / step)
        below = min(j + 1, places.shape[0] - 1)
        for x in range(width):
            i = min(x // step, places.shape[1] - 2) if places.shape[1] > 1 else 0
            right = np.float32((x - i * step) / step)
            after = min(i + 1, places.shape[1] - 1)
            u = (1 - down) * ((1 - right) * places[j, i, 0] + right * places[j, after, 0])
            u += down * ((1 - right) * places[below, i, 0] + right * places[below, after, 0])
            v = (1 - down) * ((1 - right) * places[j, i, 1] + right * places[j, after, 1])
            v += down * ((1 - right) * places[below, i, 1] + right * places[below, after, 1])
            u = min(max(u - np.float32(0.5), np.float32(0)), np.float32(columns - 1))
            v = min(max(v - np.float32(0.5), np.float32(0)), np.float32(rows - 1))
            first, second = int(u), int(v)
            across, along = _weights(u - first), _weights(v - second)
            for channel in range(3):
                total = np.float32(0)
                for dy in range(4):
                    row = min(max(second + dy - 1, 0), rows - 1)
                    line = np.float32(0)
                    for dx in range(4):
                        column = min(max(first + dx - 1, 0), columns - 1)
                        line += np.float32(across[dx]) * np.float32(image[row, column, channel])
                    total += np.float32(along[dy]) * line
                out[y, x, channel] = min(max(total, np.float32(0)), top)
    return out
