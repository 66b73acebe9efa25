"""The rasteriser as equations: plain torch, any float type, no tiles, no tricks. Tests compare the engines with it.

Cost is pixels x Gaussians; pictures are worked through in bands of rows so that memory stays bounded.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from fujinsplat.splat.raster.conventions import (
    ALPHA_MAX,
    ALPHA_MIN,
    EPS2D,
    FAR,
    GUARD,
    NEAR,
    SH_COEFFICIENTS,
    T_STOP,
)
from fujinsplat.splat.raster.harmonics import C0, C1, C2, C3

BAND = 1 << 22  # pixel-Gaussian pairs per band


def rotation_matrices(quats: Tensor) -> Tensor:
    """`[N, 4]` quaternions (w, x, y, z), of any length, to `[N, 3, 3]`."""
    w, x, y, z = normalize(quats, dim=-1).unbind(-1)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def project(means: Tensor, quats: Tensor, scales: Tensor, viewmat: Tensor, K: Tensor, width: int, height: int):
    """Picture positions `[N, 2]` (px), covariances `[N, 2, 2]` (px^2, EPS2D included) and depths `[N]`.

    The covariance is that of the affine map that touches the perspective projection at the Gaussian's centre (EWA
    splatting); for centres far outside the picture the map is taken at the edge of a guard band.
    """
    R, t = viewmat[:3, :3], viewmat[:3, 3]
    x, y, z = (means @ R.T + t).unbind(-1)
    depths = z
    z = torch.where(z >= NEAR, z, torch.ones_like(z))  # what is behind the camera is never drawn; keep it finite
    fx, fy, cx, cy = K[0, 0], K[1, 1], K[0, 2], K[1, 2]
    means2d = torch.stack([fx * x / z + cx, fy * y / z + cy], -1)

    tx = (x / z).clamp((-cx - GUARD * width) / fx, (width - cx + GUARD * width) / fx)
    ty = (y / z).clamp((-cy - GUARD * height) / fy, (height - cy + GUARD * height) / fy)
    zero = torch.zeros_like(z)
    J = torch.stack([torch.stack([fx / z, zero, -fx * tx / z], -1), torch.stack([zero, fy / z, -fy * ty / z], -1)], -2)
    M = J @ R @ rotation_matrices(quats) * scales[:, None, :]
    return means2d, M @ M.mT + EPS2D * torch.eye(2, dtype=M.dtype, device=M.device), depths


def harmonics(directions: Tensor, count: int) -> Tensor:
    """Real spherical harmonics `[N, count]` of unit directions `[N, 3]`."""
    x, y, z = directions.unbind(-1)
    values = [C0 * torch.ones_like(x), -C1 * y, C1 * z, -C1 * x]
    values += [
        C2[0] * x * y,
        -C2[0] * y * z,
        C2[1] * (2 * z * z - x * x - y * y),
        -C2[0] * x * z,
        C2[2] * (x * x - y * y),
    ]
    values += [
        -C3[0] * y * (3 * x * x - y * y),
        C3[1] * x * y * z,
        -C3[2] * y * (4 * z * z - x * x - y * y),
        C3[3] * z * (2 * z * z - 3 * x * x - 3 * y * y),
        -C3[2] * x * (4 * z * z - x * x - y * y),
        C3[4] * z * (x * x - y * y),
        -C3[0] * x * (x * x - 3 * y * y),
    ]
    return torch.stack(values[:count], -1)


def colours(means: Tensor, sh: Tensor, viewmat: Tensor) -> Tensor:
    """Linear colour `[N, 3]` of each Gaussian seen from the camera: max(0, sh . basis + 1/2)."""
    centre = -viewmat[:3, :3].T @ viewmat[:3, 3]
    basis = harmonics(normalize(means - centre, dim=-1), sh.shape[1])
    return (torch.einsum("nk,nkc->nc", basis, sh) + 0.5).clamp_min(0)


def contributions(pixels: Tensor, means2d: Tensor, covariances: Tensor, opacities: Tensor) -> Tensor:
    """alpha `[P, N]` of each Gaussian at pixel centres `[P, 2]`, before any threshold or cap."""
    d = pixels[:, None, :] - means2d
    (a, b), (_, c) = covariances.unbind(-2)[0].unbind(-1), covariances.unbind(-2)[1].unbind(-1)
    sigma = 0.5 * (c * d[..., 0] ** 2 - 2 * b * d[..., 0] * d[..., 1] + a * d[..., 1] ** 2) / (a * c - b * b)
    return opacities * torch.exp(-sigma)


def composite(alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Weights `[P, N]` and what is left for the background `[P]`, for raw alpha `[P, N]` in depth order."""
    alpha = torch.where(alpha >= ALPHA_MIN, alpha.clamp_max(ALPHA_MAX), torch.zeros_like(alpha))
    open_to = (1 - alpha).cumprod(-1) > T_STOP  # the Gaussian that would finish a pixel is left out, with all behind it
    alpha = torch.where(open_to, alpha, torch.zeros_like(alpha))
    after = (1 - alpha).cumprod(-1)
    before = torch.cat([torch.ones_like(after[:, :1]), after[:, :-1]], -1)
    left = after[:, -1] if alpha.shape[1] else alpha.new_ones(alpha.shape[0])
    return alpha * before, left


def pixel_centres(rows: range, width: int, like: Tensor) -> Tensor:
    ys, xs = torch.meshgrid(
        torch.arange(rows.start, rows.stop, dtype=like.dtype, device=like.device) + 0.5,
        torch.arange(width, dtype=like.dtype, device=like.device) + 0.5,
        indexing="ij",
    )
    return torch.stack([xs, ys], -1).reshape(-1, 2)


def visible_radii(means2d: Tensor, covariances: Tensor, depths: Tensor, opacities: Tensor, width: int, height: int):
    """Half sizes `[N, 2]` (whole px) of the box where alpha is at least ALPHA_MIN; 0 for what the picture does not
    see."""
    reach = torch.sqrt(2 * torch.log((opacities / ALPHA_MIN).clamp_min(1)))
    radii = torch.ceil(reach[:, None] * covariances.diagonal(dim1=-2, dim2=-1).sqrt())
    size = means2d.new_tensor([width, height])
    inside = ((means2d + radii > 0) & (means2d - radii < size)).all(-1) & (radii > 0).any(-1)
    seen = inside & (depths >= NEAR) & (depths <= FAR) & (opacities >= ALPHA_MIN)
    return (radii * seen[:, None]).to(torch.int32)


def rasterize(
    means: Tensor,
    quats: Tensor,
    scales: Tensor,
    opacities: Tensor,
    sh: Tensor,
    viewmat: Tensor,
    K: Tensor,
    width: int,
    height: int,
    background: Tensor | None = None,
    with_depth: bool = False,
) -> tuple[Tensor, Tensor, dict]:
    """See `fujinsplat.splat.rasterize`."""
    if sh.shape[1] not in SH_COEFFICIENTS:
        raise ValueError(f"sh has {sh.shape[1]} coefficients per channel, not 1, 4, 9 or 16")
    means2d, covariances, depths = project(means, quats, scales, viewmat, K, width, height)
    means2d = means2d[None]
    if not means2d.requires_grad and torch.is_grad_enabled():
        means2d.requires_grad_()
    rgb = colours(means, sh, viewmat)
    radii = visible_radii(means2d[0].detach(), covariances.detach(), depths.detach(), opacities.detach(), width, height)
    # depth order in single precision, ties by index
    order = torch.argsort(depths.detach().to(torch.float32), stable=True)
    order = order[(radii[order] > 0).all(-1)]
    background = rgb.new_zeros(3) if background is None else background

    image, left, depth = [], [], []
    step = max(1, BAND // max(1, width * len(order)))
    for start in range(0, height, step):
        pixels = pixel_centres(range(start, min(height, start + step)), width, rgb)
        alpha = contributions(pixels, means2d[0, order], covariances[order], opacities[order])
        weights, through = composite(alpha)
        image.append(weights @ rgb[order] + through[:, None] * background)
        left.append(through)
        depth.append(weights @ depths[order])
    alpha, depth = 1 - torch.cat(left).reshape(height, width), torch.cat(depth).reshape(height, width)
    info = {
        "means2d": means2d,
        "radii": radii[None],
        "depths": depths.detach()[None],
        "depth": depth if with_depth else depth.detach(),
        "width": width,
        "height": height,
        "n_cameras": 1,
        "gaussian_ids": None,
    }
    return torch.cat(image).reshape(height, width, 3), alpha, info
