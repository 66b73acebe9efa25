"""The numbers every rasteriser here agrees on.

They are gsplat's, so that a scene trained on a laptop's CPU renders the same on a GPU: pixel centres at +0.5, `EPS2D`
added to the projected covariance, contributions below 1/255 skipped, alpha capped at 0.999, and a pixel is finished by
the first Gaussian that would bring its transmittance to 1e-4 or below (that Gaussian is not blended).
"""

import numpy as np

from fujinsplat.splat.vectors import LANES

EPS2D = 0.3  # pixels^2: every splat is at least this blurred
NEAR, FAR = 0.01, 1e10  # depth range in scene units
GUARD = 0.15  # the projection's Jacobian is taken at most this far (in picture widths) outside the picture
ALPHA_MIN, ALPHA_MAX = 1 / 255, 0.999
T_STOP = 1e-4
SH_COEFFICIENTS = {1: 0, 4: 1, 9: 2, 16: 3}  # coefficients per channel -> degree

# Within a tile, rows and groups of LANES pixels that a splat does not reach are skipped, so a tile's size costs little.
TILE_W, TILE_H = 4 * LANES, 16

f4 = np.float32


def tile_grid(width: int, height: int) -> tuple[int, int]:
    """Tiles across and down."""
    return -(-width // TILE_W), -(-height // TILE_H)
