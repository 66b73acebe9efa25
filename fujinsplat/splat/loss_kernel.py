"""L1 and SSIM of two pictures with the gradients of both, fused for the CPU.

SSIM here is that of 3DGS: an 11-tap Gaussian window of deviation 1.5, zero outside the picture, mean over pixels and
channels. With local means m, n of x, y and local second moments, S = A1 A2 / (B1 B2); its derivative by x is

    window * dS/dm + 2 x (window * dS/dE[xx]) + y (window * dS/dE[xy])

and likewise for y, so both gradients need four blurred maps and share two of them. Pictures are flat rows of `3 W`
floats, worked through in blocks of rows and strips of columns; strips have a fixed length so that the distances
between scratch planes are constants, without which the loops do not vectorise.
"""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import fast, fast_inline, fast_parallel_kernel

f4, u8 = np.float32, np.uint64
TAPS, RADIUS = 11, 5
_window = np.exp(-((np.arange(TAPS) - RADIUS) ** 2) / (2 * 1.5**2))
WINDOW = (_window / _window.sum()).astype(np.float32)
W0, W1, W2, W3, W4, W5 = (f4(v) for v in WINDOW[: RADIUS + 1])
C1, C2 = f4(0.01**2), f4(0.03**2)
ZERO, ONE, TWO = f4(0), f4(1), f4(2)

ROWS = 8  # rows per parallel task
STRIP = 768  # floats per strip: 256 pixels
EDGE = 3 * RADIUS  # floats that the window reaches over a strip's end
LENGTH = STRIP + 2 * EDGE + 2  # scratch plane; even
U0, L1, L2, L3, L4 = u8(0), u8(LENGTH), u8(2 * LENGTH), u8(3 * LENGTH), u8(4 * LENGTH)
O1, O2, O3 = u8(STRIP), u8(2 * STRIP), u8(3 * STRIP)


@fast_inline
def _across(b, p):
    """Horizontal window at scratch position `p` (the window's left end); channels are three floats apart."""
    return (
        W0 * (b[p] + b[p + u8(30)])
        + W1 * (b[p + u8(3)] + b[p + u8(27)])
        + W2 * (b[p + u8(6)] + b[p + u8(24)])
        + W3 * (b[p + u8(9)] + b[p + u8(21)])
        + W4 * (b[p + u8(12)] + b[p + u8(18)])
        + W5 * b[p + u8(15)]
    )


@fast
def _statistics(x, y, height, length, row, row_end, start, stop, maps, both, similarity, strip):
    """SSIM of one block and its derivatives into `maps` (planes dS/dm, dS/dn, dS/dE[xx] = dS/dE[yy], dS/dE[xy])."""
    down = np.zeros(5 * LENGTH, np.float32)  # vertical sums of x, y, xx, yy, xy over the strip and its edges
    out = np.empty(4 * STRIP, np.float32)
    left, right = max(0, start - EDGE), min(length, stop + EDGE)
    shift, count = u8(left - (start - EDGE)), u8(right - left)
    width = u8(stop - start)
    plane = u8(height * length)
    for r in range(row, row_end):
        for c in range(U0, count):
            q = c + shift
            down[q] = ZERO
            down[q + L1] = ZERO
            down[q + L2] = ZERO
            down[q + L3] = ZERO
            down[q + L4] = ZERO
        for k in range(max(0, RADIUS - r), min(TAPS, height + RADIUS - r)):
            g = WINDOW[k]
            base = u8((r + k - RADIUS) * length + left)
            for c in range(U0, count):
                xv, yv = x[base + c], y[base + c]
                gx, gy = g * xv, g * yv
                q = c + shift
                down[q] += gx
                down[q + L1] += gy
                down[q + L2] += gx * xv
                down[q + L3] += gy * yv
                down[q + L4] += gx * yv
        total = ZERO
        for c in range(U0, width):
            m, n = _across(down, c), _across(down, c + L1)
            xx, yy, xy = _across(down, c + L2), _across(down, c + L3), _across(down, c + L4)
            mn = m * n
            a1, a2 = TWO * mn + C1, TWO * (xy - mn) + C2
            b1, b2 = m * m + n * n + C1, xx - m * m + yy - n * n + C2
            i1, i2 = ONE / b1, ONE / b2
            i12 = i1 * i2
            s = a1 * a2 * i12
            total += s
            out[c] = TWO * (n * (a2 - a1) * i12 + s * m * (i2 - i1))
            out[c + O1] = TWO * (m * (a2 - a1) * i12 + s * n * (i2 - i1))
            out[c + O2] = -s * i2
            out[c + O3] = TWO * a1 * i12
        base = u8(r * length + start)
        for p in range(4):
            if p == 1 and not both:
                continue
            to, of = base + u8(p) * plane, u8(p * STRIP)
            for c in range(U0, width):
                maps[to + c] = out[of + c]
        similarity[r, strip] = total


@fast
def _gradients(x, y, height, length, row, row_end, start, stop, maps, both, w_l1, w_ssim, v_x, v_y, distance, strip):
    """dL/dx (and dL/dy) of one block: blur the maps and combine, add the sign of the L1 term."""
    down = np.zeros(4 * LENGTH, np.float32)
    left, right = max(0, start - EDGE), min(length, stop + EDGE)
    shift, count = u8(left - (start - EDGE)), u8(right - left)
    width = u8(stop - start)
    plane = u8(height * length)
    for r in range(row, row_end):
        for p in range(4):
            if p == 1 and not both:
                continue
            of = u8(p * LENGTH) + shift
            for c in range(U0, count):
                down[of + c] = ZERO
            for k in range(max(0, RADIUS - r), min(TAPS, height + RADIUS - r)):
                g = WINDOW[k]
                base = u8((r + k - RADIUS) * length + left) + u8(p) * plane
                for c in range(U0, count):
                    down[of + c] += g * maps[base + c]
        base = u8(r * length + start)
        total = ZERO
        for c in range(U0, width):
            xv, yv = x[base + c], y[base + c]
            d = xv - yv
            total += abs(d)
            sign = w_l1 if d > ZERO else (-w_l1 if d < ZERO else ZERO)
            square, product = _across(down, c + L2), _across(down, c + L3)
            v_x[base + c] = w_ssim * (_across(down, c) + TWO * xv * square + yv * product) + sign
        if both:
            for c in range(U0, width):
                xv, yv = x[base + c], y[base + c]
                d = xv - yv
                sign = w_l1 if d > ZERO else (-w_l1 if d < ZERO else ZERO)
                square, product = _across(down, c + L2), _across(down, c + L3)
                v_y[base + c] = w_ssim * (_across(down, c + L1) + TWO * yv * square + xv * product) - sign
        distance[r, strip] = total


@fast_parallel_kernel
def photometric(x, y, height, length, weight, both, maps, v_x, v_y, similarity, distance):
    """Gradients of (1 - weight) L1 + weight (1 - SSIM) for flat pictures `x`, `y` of `height` rows of `length` floats.

    `similarity` and `distance [height, strips]` receive sums of SSIM and |x - y|, to be added up in a fixed order.
    """
    strips, blocks = (length + STRIP - 1) // STRIP, (height + ROWS - 1) // ROWS
    scale = ONE / f4(height * length)
    for task in prange(blocks * strips):
        strip, row = task % strips, (task // strips) * ROWS
        stop = min(length, (strip + 1) * STRIP)
        _statistics(
            x, y, height, length, row, min(height, row + ROWS), strip * STRIP, stop, maps, both, similarity, strip
        )  # fmt: skip
    for task in prange(blocks * strips):
        strip, row = task % strips, (task // strips) * ROWS
        stop = min(length, (strip + 1) * STRIP)
        _gradients(
            x, y, height, length, row, min(height, row + ROWS), strip * STRIP, stop, maps, both,
            (ONE - weight) * scale, -weight * scale, v_x, v_y, distance, strip,
        )  # fmt: skip
