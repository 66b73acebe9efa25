"""The CPU engine: kernels behind one autograd function."""

import numpy as np
import torch
from torch import Tensor

from fujinsplat.splat.raster import binning, blend, blend_backward, projection
from fujinsplat.splat.raster.conventions import tile_grid


class Splats:
    """One view's projected Gaussians and their tiles: everything both directions of the kernels share."""

    def __init__(self, means, quats, scales, opacities, sh, viewmat: Tensor, K: Tensor, width: int, height: int):
        self.means, self.quats, self.scales, self.opacities, self.sh = (
            tensor.detach().contiguous().numpy() for tensor in (means, quats, scales, opacities, sh)
        )
        self.camera = projection.pack_camera(viewmat.detach().numpy(), K.detach().numpy(), width, height)
        self.width, self.height = width, height
        n = len(self.means)
        self.places = np.empty((n, projection.PLACE), np.float64)
        self.rows = np.empty((n, projection.SPLAT), np.float32)
        self.depths = np.empty(n, np.float32)
        self.radii = np.empty((n, 2), np.int32)
        rects = np.empty((n, 4), np.int32)
        projection.project(
            self.means, self.quats, self.scales, self.opacities, self.sh, self.camera, width, height,
            self.places, self.rows, self.depths, self.radii, rects,
        )  # fmt: skip
        self.starts, self.members, *self.gather = binning.bin_splats(
            self.places, self.rows, self.depths, self.radii, rects, *tile_grid(width, height)
        )

    def blend(self, rows: np.ndarray, background: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        image = np.empty((self.height, self.width, 3), np.float32)
        transmittance = np.empty((self.height, self.width), np.float32)
        lasts = np.empty((self.height, self.width), np.float32)
        blend.blend(self.places, rows, self.starts, self.members, background, image, transmittance, lasts)
        return image, transmittance, lasts

    def depth(self) -> Tensor:
        """Accumulated depth `[H, W]`: the sum of weight x depth, as colours are summed."""
        rows = self.rows.copy()
        rows[:, projection.RED] = self.depths
        rows[:, [projection.GREEN, projection.BLUE]] = 0
        return torch.from_numpy(self.blend(rows, np.zeros(3, np.float32))[0][..., 0].copy())


class Info(dict):
    """What densification reads, plus `depth`, blended on first use because training never asks for it."""

    def __init__(self, splats: Splats, **entries):
        super().__init__(entries)
        self._splats = splats

    def __missing__(self, key):
        if key != "depth":
            raise KeyError(key)
        self["depth"] = self._splats.depth()
        return self["depth"]


class _Blend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, means, quats, scales, opacities, sh, background, means2d, splats: Splats):
        shade = background.detach().contiguous().numpy()
        image, transmittance, lasts = splats.blend(splats.rows, shade)
        ctx.kept = splats, shade, transmittance, lasts
        return torch.from_numpy(image), 1 - torch.from_numpy(transmittance)

    @staticmethod
    def backward(ctx, v_image, v_alpha):
        splats, shade, transmittance, lasts = ctx.kept
        grads = np.empty((len(splats.means), projection.GRADIENT), np.float32)
        v_pixels = v_image.contiguous().numpy()
        blend_backward.blend_backward(
            splats.places, splats.rows, splats.starts, splats.members, *splats.gather, shade, transmittance, lasts,
            v_pixels, v_alpha.contiguous().numpy(), grads,
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
        v_background = None
        if ctx.needs_input_grad[5]:
            v_background = torch.from_numpy(np.einsum("hw,hwc->c", transmittance, v_pixels, dtype=np.float64)).float()
        v_means2d = torch.from_numpy(grads[None, :, :2].copy())
        return *(torch.from_numpy(a) for a in found), v_background, v_means2d, None


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
) -> tuple[Tensor, Tensor, dict]:
    """See `fujinsplat.splat.rasterize`; float32 on the CPU."""
    splats = Splats(means, quats, scales, opacities, sh, viewmat, K, width, height)
    background = torch.zeros(3) if background is None else background
    # a leaf of its own, so that the gradient of the picture positions arrives in `.grad` where densification looks
    means2d = torch.from_numpy(splats.places[None, :, :2].astype(np.float32)).requires_grad_(torch.is_grad_enabled())
    image, alpha = _Blend.apply(means, quats, scales, opacities, sh, background, means2d, splats)
    info = Info(
        splats,
        means2d=means2d,
        radii=torch.from_numpy(splats.radii)[None],
        depths=torch.from_numpy(splats.depths)[None],
        width=width,
        height=height,
        n_cameras=1,
        gaussian_ids=None,
    )
    return image, alpha, info
