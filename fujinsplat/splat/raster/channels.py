"""Pictures of any number of channels, given per Gaussian instead of by harmonics; which engine makes them is decided
here, from the tensors, as `engine` does for colours."""

import numpy as np
import torch
from torch import Tensor

from fujinsplat.core import gpu
from fujinsplat.splat.raster.conventions import EPS2D, FAR, NEAR


def rasterize_channels(
    means: Tensor,
    quats: Tensor,
    scales: Tensor,
    opacities: Tensor,
    features: Tensor,
    viewmat: Tensor,
    K: Tensor,
    width: int,
    height: int,
) -> tuple[Tensor, Tensor, dict]:
    """Blend `features [N, C]` on black: `(picture [H, W, C], alpha [H, W], info)`, differentiable in the first five.

    Everything else is as in `rasterize`. After a backward pass `info["means2d"].absgrad [1, N, 2]` holds the sum over
    pixels of the absolute gradient of the picture positions (CPU kernels and gsplat).
    """
    if features.ndim != 2 or len(features) != len(means) or not features.shape[1]:
        raise ValueError(f"rasterize_channels: features {tuple(features.shape)} for {len(means)} Gaussians")
    if gpu.holds(means):
        return _on_cuda(means, quats, scales, opacities, features, viewmat, K, width, height)
    if means.dtype == torch.float32:
        return _on_cpu(means, quats, scales, opacities, features, viewmat, K, width, height)
    return _reference(means, quats, scales, opacities, features, viewmat, K, width, height)


def _on_cuda(means, quats, scales, opacities, features, viewmat, K, width, height):
    from fujinsplat.compat.gsplat_cuda import load_kernels

    load_kernels()
    from gsplat import rasterization

    image, alphas, info = rasterization(
        means, quats, scales, opacities, features, viewmat[None], K[None], width, height,
        near_plane=NEAR, far_plane=FAR, eps2d=EPS2D, sh_degree=None, packed=False, render_mode="RGB",
        rasterize_mode="classic", absgrad=True,
    )  # fmt: skip
    return image[0], alphas[0, ..., 0], info


def _on_cpu(means, quats, scales, opacities, features, viewmat, K, width, height):
    from fujinsplat.splat.raster.cpu_engine import Splats

    black = torch.zeros(len(means), 1, 3)  # the splats' own colours take no part
    splats = Splats(means, quats, scales, opacities, black, viewmat, K, width, height)
    means2d = torch.from_numpy(splats.places[None, :, :2].astype(np.float32)).requires_grad_(torch.is_grad_enabled())
    image, alpha = _BlendChannels.apply(means, quats, scales, opacities, features, means2d, splats)
    info = {
        "means2d": means2d,
        "radii": torch.from_numpy(splats.radii)[None],
        "depths": torch.from_numpy(splats.depths)[None],
        "width": width,
        "height": height,
        "n_cameras": 1,
        "gaussian_ids": None,
    }
    return image, alpha, info


class _BlendChannels(torch.autograd.Function):
    @staticmethod
    def forward(ctx, means, quats, scales, opacities, features, means2d, splats):
        from fujinsplat.splat.raster.blend_channels import blend_channels

        values = features.detach().contiguous().numpy()
        image = np.empty((splats.height, splats.width, values.shape[1]), np.float32)
        transmittance, lasts = (np.empty((splats.height, splats.width), np.float32) for _ in range(2))
        blend_channels(splats.places, splats.rows, values, splats.starts, splats.members, image, transmittance, lasts)
        ctx.kept, ctx.means2d = (splats, values, transmittance, lasts), means2d
        return torch.from_numpy(image), 1 - torch.from_numpy(transmittance)

    @staticmethod
    def backward(ctx, v_image, v_alpha):
        from fujinsplat.splat.raster import projection
        from fujinsplat.splat.raster.blend_channels import blend_channels_backward

        splats, values, transmittance, lasts = ctx.kept
        firsts, counts, slots = splats.gather
        n = len(splats.means)
        grads = np.empty((n, projection.GRADIENT), np.float32)
        v_features, absolute = np.empty_like(values), np.empty((n, 2), np.float32)
        blend_channels_backward(
            splats.places, splats.rows, values, splats.starts, splats.members, firsts, counts, slots,
            transmittance, lasts, v_image.contiguous().numpy(), v_alpha.contiguous().numpy(), grads, v_features,
            absolute,
        )  # fmt: skip
        found = [np.empty_like(a) for a in (splats.means, splats.quats, splats.scales, splats.opacities, splats.sh)]
        projection.project_backward(
            splats.means,
            splats.quats,
            splats.scales,
            splats.sh,
            splats.camera,
            splats.rows,
            splats.radii,
            grads,
            *found,
        )
        ctx.means2d.absgrad = torch.from_numpy(absolute[None])
        geometry = (torch.from_numpy(a) for a in found[:4])
        return *geometry, torch.from_numpy(v_features), torch.from_numpy(grads[None, :, :2].copy()), None


def _reference(means, quats, scales, opacities, features, viewmat, K, width, height):
    """As equations, in any float type."""
    from fujinsplat.splat.raster import reference

    means2d, covariances, depths = reference.project(means, quats, scales, viewmat, K, width, height)
    means2d = means2d[None]
    held = (means2d[0].detach(), covariances.detach(), depths.detach(), opacities.detach())
    radii = reference.visible_radii(*held, width, height)
    order = torch.argsort(depths.detach().to(torch.float32), stable=True)
    order = order[(radii[order] > 0).all(-1)]
    image, left = [], []
    for row in range(height):
        pixels = reference.pixel_centres(range(row, row + 1), width, features)
        alpha = reference.contributions(pixels, means2d[0, order], covariances[order], opacities[order])
        weights, through = reference.composite(alpha)
        image.append(weights @ features[order])
        left.append(through)
    info = {"means2d": means2d, "radii": radii[None], "depths": depths.detach()[None], "width": width, "height": height}
    info |= {"n_cameras": 1, "gaussian_ids": None}
    return torch.stack(image), 1 - torch.stack(left), info
