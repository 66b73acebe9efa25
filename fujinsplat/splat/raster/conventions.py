"""The numbers every rasteriser here agrees on, and how its kernels are compiled.

They are gsplat's, so that a scene trained on a laptop's CPU renders the same on a GPU: pixel centres at +0.5, `EPS2D`
added to the projected covariance, contributions below 1/255 skipped, alpha capped at 0.999, and a pixel is finished by
the first Gaussian that would bring its transmittance to 1e-4 or below (that Gaussian is not blended).

Numba's disk cache notices a change of the file a kernel stands in, not of a constant or helper it imports;
`kernel_cache.forget_stale_kernels` closes that gap when this package is imported.
"""

import numpy as np

EPS2D = 0.3  # pixels^2: every splat is at least this blurred
NEAR, FAR = 0.01, 1e10  # depth range in scene units
GUARD = 0.15  # the projection's Jacobian is taken at most this far (in picture widths) outside the picture
ALPHA_MIN, ALPHA_MAX = 1 / 255, 0.999
T_STOP = 1e-4
SH_COEFFICIENTS = {1: 0, 4: 1, 9: 2, 16: 3}  # coefficients per channel -> degree

# Tiles are narrow and tall: a row of a tile is one loop of the kernels and always runs over its full width, while rows
# that a splat does not reach are skipped, so height costs nothing and width costs lanes.
TILE_W, TILE_H = 16, 32

f4, u8 = np.float32, np.uint64

# Scalar float64 code: values may be infinite or NaN (a diverging training run), so only contraction is allowed.
PRECISE = dict(fastmath={"contract"}, boundscheck=False, nogil=True, cache=True, error_model="numpy")
# The same, pasted into the caller: a call that hands over a dozen arrays costs more than one Gaussian's arithmetic.
INLINE = dict(PRECISE, inline="always")
# Vectorised float32 loops over pixels, whose inputs have passed the finiteness test of the projection.
FAST = dict(fastmath=True, boundscheck=False, nogil=True, cache=True, error_model="numpy")


def tile_grid(width: int, height: int) -> tuple[int, int]:
    """Tiles across and down."""
    return -(-width // TILE_W), -(-height // TILE_H)
