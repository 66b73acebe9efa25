"""The display encoding of a render and its slope in one pass: clamp to [0, 1], then `fujinsplat.core.color.encode`."""

import numpy as np
from numba import prange

from fujinsplat.core import color
from fujinsplat.kernels.fastmath import exp32, log32
from fujinsplat.splat.kernels import precise_parallel_kernel

f4 = np.float32
KNEE, TOE, SCALE = f4(color.KNEE_LINEAR), f4(color.TOE), f4(color.SCALE)
OFFSET, POWER = f4(color.OFFSET), f4(color.POWER)
ZERO, ONE = f4(0), f4(1)
BLOCK = 4096  # floats per parallel task


@precise_parallel_kernel
def display(linear, encoded, slope):
    """Fill `encoded` and `slope` (d encoded / d linear, 0 outside [0, 1]) for flat float32 `linear`; NaN stays NaN."""
    count = linear.shape[0]
    for block in prange((count + BLOCK - 1) // BLOCK):
        for i in range(block * BLOCK, min(count, block * BLOCK + BLOCK)):
            x = linear[i]
            held = min(max(x, KNEE), ONE)
            power = SCALE * exp32(POWER * log32(held))
            shown = TOE * max(x, ZERO) if x <= KNEE else power - OFFSET
            steep = TOE if x <= KNEE else POWER * power / held
            encoded[i] = shown if x == x else x
            slope[i] = steep if x >= ZERO and x <= ONE else ZERO
