"""World-space Gaussians to splats on the picture, and the way back for gradients.

A splat is stored so that its exponent is a sum of two squares,

    sigma(dx, dy) = (sharpness * (dx + shear * dy)^2 + sharpness_y * dy^2),
    sharpness = c11 / (2 det),  shear = -c01 / c11,  sharpness_y = 1 / (2 c11)

for the projected covariance c = [[c00, c01], [c01, c11]]: the same quadratic form as with the inverse covariance, but
without its cancellation for needle-like splats. All of this is scalar code, so float64 costs next to nothing here and
keeps depth ties, needles and far-away Gaussians exact; what the pixel loops read is float32.
"""

import numpy as np
from numba import prange

from fujinsplat.splat.kernels import precise, precise_inline, precise_parallel_kernel
from fujinsplat.splat.raster.conventions import ALPHA_MIN, EPS2D, FAR, GUARD, NEAR, TILE_H, TILE_W, f4
from fujinsplat.splat.raster.harmonics import basis, basis_gradient

# columns of a splat row, float32 [N, SPLAT]
SHARPNESS, SHARPNESS_Y, REACH, OPACITY, RED, GREEN, BLUE, HALF_W, HALF_H, LEAN, DEPTH = range(11)
SPLAT = 12  # padded: a row is 48 bytes
# columns of a splat's place, float64 [N, PLACE]: along a needle a thousand pixels long, float32 would be too coarse.
# H1U … H2Y: d sigma / d position in the ellipse's own axes is (H1U du + H1Y dy, H2U du + H2Y dy), major axis first.
X, Y, SHEAR, H1U, H1Y, H2U, H2Y = range(7)
PLACE = 7
# columns of a splat's gradient, float32 [N, GRADIENT], with g = dL/dsigma and h = d sigma/d position in the ellipse's
# axes: sums of g h1, g h2, g h1^2, g h1 h2, g h2^2 over pixels, then dL/dopacity and dL/dcolour. Kept in these axes,
# the long direction of a needle does not drown in the rounding of the short one. `project_backward` turns the first
# two into dL/dx and dL/dy. Only a picture with a depth channel has the last column, dL/ddepth.
D_1, D_2, D_11, D_12, D_22, D_OPACITY, D_RED, D_GREEN, D_BLUE, D_DEPTH = range(10)
GRADIENT, GRADIENT_WITH_DEPTH = 9, 10
BLOCK = 256  # Gaussians per parallel task


def pack_camera(viewmat: np.ndarray, K: np.ndarray, width: int, height: int) -> np.ndarray:
    """float64 `[23]`: rotation (9), translation (3), fx fy cx cy, camera centre (3), limits of x/z and y/z (4)."""
    R, t = viewmat[:3, :3].astype(np.float64), viewmat[:3, 3].astype(np.float64)
    fx, fy, cx, cy = (np.float64(K[0, 0]), np.float64(K[1, 1]), np.float64(K[0, 2]), np.float64(K[1, 2]))
    guard_x, guard_y = GUARD * width, GUARD * height
    limits = [(-cx - guard_x) / fx, (width - cx + guard_x) / fx, (-cy - guard_y) / fy, (height - cy + guard_y) / fy]
    return np.concatenate([R.ravel(), t, [fx, fy, cx, cy], -R.T @ t, limits])


@precise_inline
def _rotation(quats, i):
    """Normalised quaternion (w, x, y, z), the inverse of its length, and its rotation matrix, row by row."""
    w, x, y, z = np.float64(quats[i, 0]), np.float64(quats[i, 1]), np.float64(quats[i, 2]), np.float64(quats[i, 3])
    n = 1.0 / max(np.sqrt(w * w + x * x + y * y + z * z), 1e-12)
    w, x, y, z = w * n, x * n, y * n, z * n
    return (
        (w, x, y, z, n),
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


@precise_inline
def _into_camera(means, i, cam):
    px, py, pz = np.float64(means[i, 0]), np.float64(means[i, 1]), np.float64(means[i, 2])
    x = cam[0] * px + cam[1] * py + cam[2] * pz + cam[9]
    y = cam[3] * px + cam[4] * py + cam[5] * pz + cam[10]
    z = cam[6] * px + cam[7] * py + cam[8] * pz + cam[11]
    return x, y, z


@precise_inline
def _jacobian(x, y, z, cam):
    """A = J R, the 2x3 derivative of the picture position by the world position, with J taken inside the guard band."""
    iz = 1.0 / z
    tx = min(max(x * iz, cam[19]), cam[20])
    ty = min(max(y * iz, cam[21]), cam[22])
    kx, ky = cam[12] * iz, cam[13] * iz
    a0 = (kx * (cam[0] - tx * cam[6]), kx * (cam[1] - tx * cam[7]), kx * (cam[2] - tx * cam[8]))
    a1 = (ky * (cam[3] - ty * cam[6]), ky * (cam[4] - ty * cam[7]), ky * (cam[5] - ty * cam[8]))
    return iz, tx, ty, a0, a1


@precise_inline
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@precise_inline
def _footprint(scales, i, a0, a1, r0, r1, r2):
    """B = A Rq S, row by row, and the projected covariance B B^T + EPS2D with its determinant.

    The determinant is |B0 x B1|^2 + EPS2D (|B0|^2 + |B1|^2) + EPS2D^2 (Lagrange), which never cancels to zero.
    """
    s0, s1, s2 = np.float64(scales[i, 0]), np.float64(scales[i, 1]), np.float64(scales[i, 2])
    b0 = (
        (a0[0] * r0[0] + a0[1] * r1[0] + a0[2] * r2[0]) * s0,
        (a0[0] * r0[1] + a0[1] * r1[1] + a0[2] * r2[1]) * s1,
        (a0[0] * r0[2] + a0[1] * r1[2] + a0[2] * r2[2]) * s2,
    )
    b1 = (
        (a1[0] * r0[0] + a1[1] * r1[0] + a1[2] * r2[0]) * s0,
        (a1[0] * r0[1] + a1[1] * r1[1] + a1[2] * r2[1]) * s1,
        (a1[0] * r0[2] + a1[1] * r1[2] + a1[2] * r2[2]) * s2,
    )
    n0, n1 = _dot(b0, b0), _dot(b1, b1)
    cross = (b0[1] * b1[2] - b0[2] * b1[1], b0[2] * b1[0] - b0[0] * b1[2], b0[0] * b1[1] - b0[1] * b1[0])
    det = _dot(cross, cross) + EPS2D * (n0 + n1) + EPS2D * EPS2D
    return b0, b1, n0 + EPS2D, _dot(b0, b1), n1 + EPS2D, det


@precise_inline
def _axes(c00, c01, c11):
    """Major axis (p1, p2) of the ellipse, a unit vector, and the covariance's eigenvalues; (-p2, p1) is the minor
    one."""
    half = 0.5 * (c00 - c11)
    r = np.sqrt(half * half + c01 * c01)
    larger = 0.5 * (c00 + c11) + r
    p1, p2 = r + abs(half), c01
    if half < 0:
        p1, p2 = c01, r + abs(half)
    n = np.sqrt(p1 * p1 + p2 * p2)
    if n > 0:
        n = 1.0 / n
        return p1 * n, p2 * n, larger
    return 1.0, 0.0, larger


@precise_inline
def _colour(means, sh, i, cam, values, splats):
    """View-dependent linear colour max(0, sh . basis + 1/2) into the splat's RGB."""
    dx, dy, dz = means[i, 0] - cam[16], means[i, 1] - cam[17], means[i, 2] - cam[18]
    n = 1.0 / np.sqrt(dx * dx + dy * dy + dz * dz)
    count = sh.shape[1]
    basis(dx * n, dy * n, dz * n, count, values)
    red, green, blue = f4(0.5), f4(0.5), f4(0.5)
    for k in range(count):
        red += values[k] * sh[i, k, 0]
        green += values[k] * sh[i, k, 1]
        blue += values[k] * sh[i, k, 2]
    splats[i, RED], splats[i, GREEN], splats[i, BLUE] = max(red, f4(0)), max(green, f4(0)), max(blue, f4(0))


@precise_inline
def _tile_range(low, high, size, count):
    """Half-open range of tiles of `size` pixels that [low, high] meets, inside [0, count)."""
    first = min(max(np.floor(low / size), 0.0), np.float64(count))
    last = min(max(np.floor(high / size) + 1.0, 0.0), np.float64(count))
    return np.int32(first), np.int32(last)


@precise_inline
def _project_one(
    i, means, quats, scales, opacities, sh, cam, width, height, values, places, splats, depths, radii, rects
):
    """One Gaussian; returns whether the picture sees it."""
    opacity = np.float64(opacities[i])
    x, y, z = _into_camera(means, i, cam)
    depths[i] = z
    if not (opacity >= ALPHA_MIN and z >= NEAR and z <= FAR):
        return False
    iz, _tx, _ty, a0, a1 = _jacobian(x, y, z, cam)
    _q, r0, r1, r2 = _rotation(quats, i)
    _b0, _b1, c00, c01, c11, det = _footprint(scales, i, a0, a1, r0, r1, r2)
    u, v = cam[12] * x * iz + cam[14], cam[13] * y * iz + cam[15]
    reach = np.log(opacity / ALPHA_MIN)  # sigma at which the contribution falls below ALPHA_MIN
    half_w, half_h = np.sqrt(2 * reach * c00), np.sqrt(2 * reach * c11)
    if not (half_w < 1e9 and half_h < 1e9 and abs(u) < 1e9 and abs(v) < 1e9):
        return False  # infinite or NaN
    # seen or not, by whole pixels, as gsplat counts it: densification averages over the views that see a Gaussian
    rx, ry = np.ceil(half_w), np.ceil(half_h)
    if (rx <= 0 and ry <= 0) or u + rx <= 0 or u - rx >= width or v + ry <= 0 or v - ry >= height:
        return False
    x0, x1 = _tile_range(u - half_w, u + half_w, TILE_W, -(-width // TILE_W))
    y0, y1 = _tile_range(v - half_h, v + half_h, TILE_H, -(-height // TILE_H))
    rects[i, 0], rects[i, 1], rects[i, 2], rects[i, 3] = x0, x1, y0, y1
    by_det, by_c11 = 1.0 / det, 1.0 / c11
    shear = -c01 * by_c11
    places[i, X], places[i, Y], places[i, SHEAR] = u, v, shear
    p1, p2, larger = _axes(c00, c01, c11)
    by_larger, by_smaller = 1.0 / larger, larger * by_det
    places[i, H1U], places[i, H1Y] = p1 * by_larger, (p2 - p1 * shear) * by_larger
    places[i, H2U], places[i, H2Y] = -p2 * by_smaller, (p1 + p2 * shear) * by_smaller
    splats[i, SHARPNESS], splats[i, SHARPNESS_Y] = 0.5 * c11 * by_det, 0.5 * by_c11
    splats[i, REACH], splats[i, OPACITY] = reach, opacity
    splats[i, HALF_W], splats[i, HALF_H] = half_w, half_h
    splats[i, LEAN] = half_w * c01 / c00  # dy at the splat's rightmost point
    splats[i, DEPTH] = z
    radii[i, 0], radii[i, 1] = rx, ry
    _colour(means, sh, i, cam, values, splats)
    return True


@precise
def _project_block(
    first, last, means, quats, scales, opacities, sh, cam, width, height, places, splats, depths, radii, rects
):
    values = np.empty(16, np.float32)
    for i in range(first, last):
        seen = _project_one(
            i, means, quats, scales, opacities, sh, cam, width, height, values, places, splats, depths, radii, rects
        )
        if not seen:
            places[i, X], places[i, Y] = 0.0, 0.0
            radii[i, 0], radii[i, 1] = 0, 0
            rects[i, 0], rects[i, 1], rects[i, 2], rects[i, 3] = 0, 0, 0, 0


@precise_parallel_kernel
def project(means, quats, scales, opacities, sh, cam, width, height, places, splats, depths, radii, rects):
    """Every Gaussian's splat. Outputs: places f64 `[N, PLACE]`, splats f32 `[N, SPLAT]`, depths f32 `[N]`,
    radii i32 `[N, 2]` (0: unseen) and rects i32 `[N, 4]` (tile ranges x0 x1 y0 y1, empty when unseen)."""
    n = means.shape[0]
    for block in prange((n + BLOCK - 1) // BLOCK):
        _project_block(
            block * BLOCK, min(n, block * BLOCK + BLOCK), means, quats, scales, opacities, sh, cam, width, height,
            places, splats, depths, radii, rects,
        )  # fmt: skip


@precise_inline
def _colour_backward(i, means, sh, cam, splats, grads, values, weights, v_sh):
    """Gradient of the SH coefficients into `v_sh[i]`; returns that of the position through the view direction."""
    red = grads[i, D_RED] if splats[i, RED] > 0 else f4(0)
    green = grads[i, D_GREEN] if splats[i, GREEN] > 0 else f4(0)
    blue = grads[i, D_BLUE] if splats[i, BLUE] > 0 else f4(0)
    dx, dy, dz = means[i, 0] - cam[16], means[i, 1] - cam[17], means[i, 2] - cam[18]
    n = 1.0 / np.sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx * n, dy * n, dz * n
    count = sh.shape[1]
    basis(dx, dy, dz, count, values)
    for k in range(count):
        weights[k] = sh[i, k, 0] * red + sh[i, k, 1] * green + sh[i, k, 2] * blue
        v_sh[i, k, 0], v_sh[i, k, 1], v_sh[i, k, 2] = values[k] * red, values[k] * green, values[k] * blue
    gx, gy, gz = basis_gradient(dx, dy, dz, count, weights)
    along = gx * dx + gy * dy + gz * dz
    return n * (gx - along * dx), n * (gy - along * dy), n * (gz - along * dz)


@precise_inline
def _spread(x, y, p1, p2, s11, s12, s22):
    """-(sum of g h h^T) (x, y), with the sums given in the axes p and q = (-p2, p1)."""
    along, across = x * p1 + y * p2, y * p1 - x * p2
    on_p, on_q = s11 * along + s12 * across, s12 * along + s22 * across
    return p2 * on_q - p1 * on_p, -p2 * on_p - p1 * on_q


@precise_inline
def _shape_backward(i, quats, scales, splats, grads, a0, a1, v_quats, v_scales):
    """Gradients of quaternion and scale into their arrays; returns those of the Jacobian's two rows. The picture
    position's gradient is turned from the ellipse's axes to the picture's on the way."""
    q, r0, r1, r2 = _rotation(quats, i)
    b0, b1, c00, c01, c11, _det = _footprint(scales, i, a0, a1, r0, r1, r2)
    p1, p2, _larger = _axes(c00, c01, c11)
    s1, s2 = np.float64(grads[i, D_1]), np.float64(grads[i, D_2])
    grads[i, D_1], grads[i, D_2] = p2 * s2 - p1 * s1, -p2 * s1 - p1 * s2
    # dL/dc = -1/2 sum of g h h^T and c = B B^T: columns of dL/dB, each through the ellipse's axes
    s11, s12, s22 = np.float64(grads[i, D_11]), np.float64(grads[i, D_12]), np.float64(grads[i, D_22])
    e00, e10 = _spread(b0[0], b1[0], p1, p2, s11, s12, s22)
    e01, e11 = _spread(b0[1], b1[1], p1, p2, s11, s12, s22)
    e02, e12 = _spread(b0[2], b1[2], p1, p2, s11, s12, s22)
    e0, e1 = (e00, e01, e02), (e10, e11, e12)
    # B = A (Rq S): m = A^T dL/dB is the gradient of Rq S, row by row
    m0 = (a0[0] * e0[0] + a1[0] * e1[0], a0[0] * e0[1] + a1[0] * e1[1], a0[0] * e0[2] + a1[0] * e1[2])
    m1 = (a0[1] * e0[0] + a1[1] * e1[0], a0[1] * e0[1] + a1[1] * e1[1], a0[1] * e0[2] + a1[1] * e1[2])
    m2 = (a0[2] * e0[0] + a1[2] * e1[0], a0[2] * e0[1] + a1[2] * e1[1], a0[2] * e0[2] + a1[2] * e1[2])
    v_scales[i, 0] = m0[0] * r0[0] + m1[0] * r1[0] + m2[0] * r2[0]
    v_scales[i, 1] = m0[1] * r0[1] + m1[1] * r1[1] + m2[1] * r2[1]
    v_scales[i, 2] = m0[2] * r0[2] + m1[2] * r1[2] + m2[2] * r2[2]
    s = (np.float64(scales[i, 0]), np.float64(scales[i, 1]), np.float64(scales[i, 2]))
    w, x, y, z, n = q
    g00, g01, g02 = m0[0] * s[0], m0[1] * s[1], m0[2] * s[2]
    g10, g11, g12 = m1[0] * s[0], m1[1] * s[1], m1[2] * s[2]
    g20, g21, g22 = m2[0] * s[0], m2[1] * s[1], m2[2] * s[2]
    vw = 2 * (x * (g21 - g12) + y * (g02 - g20) + z * (g10 - g01))
    vx = 2 * (w * (g21 - g12) + y * (g01 + g10) + z * (g02 + g20) - 2 * x * (g11 + g22))
    vy = 2 * (w * (g02 - g20) + x * (g01 + g10) + z * (g12 + g21) - 2 * y * (g00 + g22))
    vz = 2 * (w * (g10 - g01) + x * (g02 + g20) + y * (g12 + g21) - 2 * z * (g00 + g11))
    along = vw * w + vx * x + vy * y + vz * z  # normalisation: only what is perpendicular to q matters
    v_quats[i, 0], v_quats[i, 1] = n * (vw - along * w), n * (vx - along * x)
    v_quats[i, 2], v_quats[i, 3] = n * (vy - along * y), n * (vz - along * z)
    f0 = (e0[0] * s[0], e0[1] * s[1], e0[2] * s[2])
    f1 = (e1[0] * s[0], e1[1] * s[1], e1[2] * s[2])
    return (_dot(f0, r0), _dot(f0, r1), _dot(f0, r2)), (_dot(f1, r0), _dot(f1, r1), _dot(f1, r2))


@precise_inline
def _project_one_backward(
    i, means, quats, scales, sh, cam, splats, grads, values, weights, v_means, v_quats, v_scales, v_sh
):
    x, y, z = _into_camera(means, i, cam)
    iz, tx, ty, a0, a1 = _jacobian(x, y, z, cam)
    va0, va1 = _shape_backward(i, quats, scales, splats, grads, a0, a1, v_quats, v_scales)
    vu, vv = np.float64(grads[i, D_1]), np.float64(grads[i, D_2])
    fx, fy = cam[12], cam[13]
    row2 = (cam[6], cam[7], cam[8])
    vx, vy = vu * fx * iz, vv * fy * iz
    v_iz = (_dot(va0, a0) + _dot(va1, a1)) * z + vu * fx * x + vv * fy * y
    if tx == x * iz:
        vt = -fx * iz * _dot(va0, row2)
        vx += vt * iz
        v_iz += vt * x
    if ty == y * iz:
        vt = -fy * iz * _dot(va1, row2)
        vy += vt * iz
        v_iz += vt * y
    vz = -v_iz * iz * iz
    if grads.shape[1] > D_DEPTH:
        vz += grads[i, D_DEPTH]
    gx, gy, gz = _colour_backward(i, means, sh, cam, splats, grads, values, weights, v_sh)
    v_means[i, 0] = cam[0] * vx + cam[3] * vy + cam[6] * vz + gx
    v_means[i, 1] = cam[1] * vx + cam[4] * vy + cam[7] * vz + gy
    v_means[i, 2] = cam[2] * vx + cam[5] * vy + cam[8] * vz + gz


@precise
def _project_backward_block(
    first, last, means, quats, scales, sh, cam, splats, radii, grads, v_means, v_quats, v_scales, v_opacities, v_sh
):
    values, weights = np.empty(16, np.float32), np.empty(16, np.float32)
    for i in range(first, last):
        v_opacities[i] = grads[i, D_OPACITY]
        if radii[i, 0] > 0:
            _project_one_backward(
                i, means, quats, scales, sh, cam, splats, grads, values, weights, v_means, v_quats, v_scales, v_sh
            )
            continue
        for k in range(3):
            v_means[i, k], v_scales[i, k] = f4(0), f4(0)
        for k in range(4):
            v_quats[i, k] = f4(0)
        for k in range(sh.shape[1]):
            v_sh[i, k, 0], v_sh[i, k, 1], v_sh[i, k, 2] = f4(0), f4(0), f4(0)


@precise_parallel_kernel
def project_backward(
    means, quats, scales, sh, cam, splats, radii, grads, v_means, v_quats, v_scales, v_opacities, v_sh
):
    """From the splats' gradients `[N, GRADIENT]` (or with depth) to those of the Gaussians; zero for what is unseen.
    Afterwards the first two columns of `grads` are dL/dx and dL/dy of the picture position."""
    n = means.shape[0]
    for block in prange((n + BLOCK - 1) // BLOCK):
        _project_backward_block(
            block * BLOCK, min(n, block * BLOCK + BLOCK), means, quats, scales, sh, cam, splats, radii, grads,
            v_means, v_quats, v_scales, v_opacities, v_sh,
        )  # fmt: skip
