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
        self.starts, self.members, firsts, counts, slots = binning.bin_splats(
            self.places, self.rows, self.depths, self.radii, rects, *tile_grid(width, height)
        )
        self.gather = firsts, counts, slots

    def blend(self, background: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Picture `[H, W, 3]`, transmittance `[H, W]`, and what the backward pass wants to know of each pixel."""
        image, transmittance, lasts = self._empty(3), self._empty(), self._empty()
        blend.blend(self.places, self.rows, self.starts, self.members, background, image, transmittance, lasts)
        return image, transmittance, lasts

    def blend_with_depth(self, background: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`blend`, with accumulated depth `[H, W]` (the sum of weight x depth) after the picture."""
        image, depth, transmittance, lasts = self._empty(3), self._empty(), self._empty(), self._empty()
        blend.blend_with_depth(
            self.places, self.rows, self.starts, self.members, background, image, depth, transmittance, lasts
        )
        return image, depth, transmittance, lasts

    def _empty(self, *channels: int) -> np.ndarray:
        return np.empty((self.height, self.width, *channels), np.float32)

    def backward(
        self,
        kept: tuple[np.ndarray, np.ndarray, np.ndarray],
        v_image: np.ndarray,
        v_alpha: np.ndarray,
        v_depth: np.ndarray | None,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Gradients of means, quats, scales, opacities and sh, and of the picture positions `[N, 2]`. `kept`: the
        background, the transmittance and what `blend` said of each pixel."""
        columns = projection.GRADIENT if v_depth is None else projection.GRADIENT_WITH_DEPTH
        grads = np.empty((len(self.means), columns), np.float32)
        seen = (self.places, self.rows, self.starts, self.members, *self.gather, *kept)
        if v_depth is None:
            blend_backward.blend_backward(*seen, v_image, v_alpha, grads)
        else:
            blend_backward.blend_backward_with_depth(*seen, v_image, v_depth, v_alpha, grads)
        found = [np.empty_like(a) for a in (self.means, self.quats, self.scales, self.opacities, self.sh)]
        projection.project_backward(
            self.means, self.quats, self.scales, self.sh, self.camera, self.rows, self.radii, grads, *found
        )
        return found, grads[:, :2]


class Info(dict):
    """What densification reads, plus `depth`, blended on first use when the picture was made without it."""

    def __init__(self, splats: Splats, **entries):
        super().__init__(entries)
        self._splats = splats

    def __missing__(self, key):
        if key != "depth":
            raise KeyError(key)
        self["depth"] = torch.from_numpy(self._splats.blend_with_depth(np.zeros(3, np.float32))[1])
        return self["depth"]


class _Blend(torch.autograd.Function):
    """(picture, alpha, accumulated depth or None)."""

    @staticmethod
    def forward(ctx, means, quats, scales, opacities, sh, background, means2d, splats: Splats, with_depth: bool):
        shade = background.detach().contiguous().numpy()
        ctx.set_materialize_grads(True)
        if with_depth:
            image, depth, transmittance, lasts = splats.blend_with_depth(shade)
            depth = torch.from_numpy(depth)
        else:
            (image, transmittance, lasts), depth = splats.blend(shade), None
        ctx.splats, ctx.kept = splats, (shade, transmittance, lasts)
        return torch.from_numpy(image), 1 - torch.from_numpy(transmittance), depth

    @staticmethod
    def backward(ctx, v_image, v_alpha, v_depth):
        v_pixels = v_image.contiguous().numpy()
        v_depth = None if v_depth is None else v_depth.contiguous().numpy()
        found, v_means2d = ctx.splats.backward(ctx.kept, v_pixels, v_alpha.contiguous().numpy(), v_depth)
        v_background = None
        if ctx.needs_input_grad[5]:
            _, transmittance, _ = ctx.kept
            v_background = torch.from_numpy(np.einsum("hw,hwc->c", transmittance, v_pixels, dtype=np.float64)).float()
        v_means2d = torch.from_numpy(v_means2d[None].copy())
        return *(torch.from_numpy(a) for a in found), v_background, v_means2d, None, None


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
    """See `fujinsplat.splat.rasterize`; float32 on the CPU."""
    splats = Splats(means, quats, scales, opacities, sh, viewmat, K, width, height)
    background = torch.zeros(3) if background is None else background
    # a leaf of its own, so that the gradient of the picture positions arrives in `.grad` where densification looks
    means2d = torch.from_numpy(splats.places[None, :, :2].astype(np.float32)).requires_grad_(torch.is_grad_enabled())
    image, alpha, depth = _Blend.apply(means, quats, scales, opacities, sh, background, means2d, splats, with_depth)
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
    if with_depth:
        info["depth"] = depth
    return image, alpha, info
