"""Real spherical harmonics up to degree 3, in the order and signs of 3DGS, as kernels.

`basis` fills the 1, 4, 9 or 16 values for a unit direction; `basis_gradient` gives the derivative of a weighted sum of
them with respect to that direction.
"""

from fujinsplat.splat.kernels import precise_inline

C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (1.0925484305920792, 0.31539156525252005, 0.5462742152960396)
C3 = (0.5900435899266435, 2.890611442640554, 0.4570457994644658, 0.3731763325901154, 1.445305721320277)
C2_0, C2_1, C2_2 = C2
C3_0, C3_1, C3_2, C3_3, C3_4 = C3


@precise_inline
def basis(x, y, z, count, out):
    """Values of the first `count` (1, 4, 9 or 16) harmonics in direction (x, y, z), |.| = 1, into `out`."""
    out[0] = C0
    if count > 1:
        out[1] = -C1 * y
        out[2] = C1 * z
        out[3] = -C1 * x
    if count > 4:
        out[4] = C2_0 * x * y
        out[5] = -C2_0 * y * z
        out[6] = C2_1 * (2 * z * z - x * x - y * y)
        out[7] = -C2_0 * x * z
        out[8] = C2_2 * (x * x - y * y)
    if count > 9:
        out[9] = -C3_0 * y * (3 * x * x - y * y)
        out[10] = C3_1 * x * y * z
        out[11] = -C3_2 * y * (4 * z * z - x * x - y * y)
        out[12] = C3_3 * z * (2 * z * z - 3 * x * x - 3 * y * y)
        out[13] = -C3_2 * x * (4 * z * z - x * x - y * y)
        out[14] = C3_4 * z * (x * x - y * y)
        out[15] = -C3_0 * x * (x * x - 3 * y * y)


@precise_inline
def basis_gradient(x, y, z, count, h):
    """d(sum_k h_k basis_k) / d(x, y, z), with x, y, z taken as independent."""
    gx, gy, gz = 0.0, 0.0, 0.0
    if count > 1:
        gx -= C1 * h[3]
        gy -= C1 * h[1]
        gz += C1 * h[2]
    if count > 4:
        gx += C2_0 * (y * h[4] - z * h[7]) + 2 * x * (C2_2 * h[8] - C2_1 * h[6])
        gy += C2_0 * (x * h[4] - z * h[5]) - 2 * y * (C2_2 * h[8] + C2_1 * h[6])
        gz += 4 * C2_1 * z * h[6] - C2_0 * (y * h[5] + x * h[7])
    if count > 9:
        xx, yy, zz, xy, yz, xz = x * x, y * y, z * z, x * y, y * z, x * z
        gx += (
            C3_1 * yz * h[10]
            + C3_2 * (2 * xy * h[11] + (3 * xx + yy - 4 * zz) * h[13])
            - C3_0 * (6 * xy * h[9] + 3 * (xx - yy) * h[15])
            + xz * (2 * C3_4 * h[14] - 6 * C3_3 * h[12])
        )
        gy += (
            C3_1 * xz * h[10]
            + C3_2 * (2 * xy * h[13] + (xx + 3 * yy - 4 * zz) * h[11])
            - C3_0 * (3 * (xx - yy) * h[9] - 6 * xy * h[15])
            - yz * (2 * C3_4 * h[14] + 6 * C3_3 * h[12])
        )
        gz += (
            C3_1 * xy * h[10]
            - 8 * C3_2 * (yz * h[11] + xz * h[13])
            + 3 * C3_3 * (2 * zz - xx - yy) * h[12]
            + C3_4 * (xx - yy) * h[14]
        )
    return gx, gy, gz
