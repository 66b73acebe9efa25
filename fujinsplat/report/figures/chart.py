"""Where the colour chart is: the small window of a clean picture with the widest spread of strong, even colours."""

import numpy as np

HUES = 12
GRID = 96  # pictures are looked at on a grid of this many cells across
SHARES = (0.1, 0.14, 0.2)  # window widths, as shares of the picture's


def find_chart(picture: np.ndarray) -> tuple[int, int, int, int] | None:
    """`(x, y, width, height)` in pixels of uint8 `[H, W, 3]`, or None when no window holds many strong hues.

    A chart is the one thing in a room that shows red, yellow, green, cyan, blue and magenta side by side. Cells vote
    for the hue they show, weighted by saturation; a window's worth is how evenly its votes spread over the hues.
    """
    height, width = picture.shape[:2]
    columns = min(GRID, width)
    rows = max(8, round(columns * height / width))
    ys, xs = np.linspace(0, height, rows + 1).astype(int), np.linspace(0, width, columns + 1).astype(int)
    centres = picture[(ys[:-1] + ys[1:]) // 2][:, (xs[:-1] + xs[1:]) // 2].astype(np.float64) / 255
    votes = _votes(centres)
    summed = np.zeros((rows + 1, columns + 1, HUES))
    summed[1:, 1:] = votes.cumsum(0).cumsum(1)
    best, found = 0.0, None
    for share in SHARES:
        across = max(4, round(share * columns))
        down = max(3, round(across * 0.7))
        if down >= rows or across >= columns:
            continue
        window = summed[down:, across:] - summed[:-down, across:] - summed[down:, :-across] + summed[:-down, :-across]
        mass = window.sum(-1) / (across * down)
        shares = window / np.maximum(window.sum(-1, keepdims=True), 1e-9)
        evenness = np.exp(-(shares * np.log(np.maximum(shares, 1e-12))).sum(-1))  # hues in effect, 1 to 12
        worth = np.where(mass > 0.08, evenness * np.sqrt(np.maximum(mass, 0)), 0)
        y, x = np.unravel_index(int(worth.argmax()), worth.shape)
        if worth[y, x] > best and evenness[y, x] >= 4:
            wide, high = int(xs[x + across] - xs[x]), int(ys[y + down] - ys[y])
            best, found = float(worth[y, x]), (int(xs[x]), int(ys[y]), wide, high)
    return found


def _votes(rgb: np.ndarray) -> np.ndarray:
    """`[rows, columns, HUES]`: each cell's chroma in the bin of its hue."""
    high, low = rgb.max(-1), rgb.min(-1)
    chroma = high - low
    r, g, b = np.moveaxis(rgb, -1, 0)
    safe = np.maximum(chroma, 1e-9)
    hue = np.where(high == r, (g - b) / safe % 6, np.where(high == g, (b - r) / safe + 2, (r - g) / safe + 4))
    bins = np.minimum((hue / 6 * HUES).astype(int), HUES - 1)
    return np.eye(HUES)[bins] * np.where(chroma > 0.12, chroma, 0)[..., None]
