"""gsplat on CUDA, through its documented arguments alone."""

from typing import Any

import torch
from torch import Tensor

from fujinsplat.splat.raster.conventions import EPS2D, FAR, NEAR, SH_COEFFICIENTS


def arguments(
    means, quats, scales, opacities, sh, viewmat, K, width, height, render_mode="RGB", sh_degree=None
) -> dict[str, Any]:
    """Our call as keyword arguments of `gsplat.rasterization`: one camera, unpacked.

    `render_mode`: RGB, RGB+D (accumulated depth as a fourth channel) or D (depth alone). The background is added to the
    colours afterwards: a depth channel has none.
    """
    return dict(
        means=means,
        quats=quats,
        scales=scales,
        opacities=opacities,
        colors=sh,
        viewmats=viewmat[None],
        Ks=K[None],
        width=width,
        height=height,
        near_plane=NEAR,
        far_plane=FAR,
        eps2d=EPS2D,
        sh_degree=SH_COEFFICIENTS[sh.shape[1]] if sh_degree is None else sh_degree,
        packed=False,
        render_mode=render_mode,
        rasterize_mode="classic",
    )


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
    sh_degree: int | None = None,
) -> tuple[Tensor, Tensor, dict]:
    """See `fujinsplat.splat.rasterize`; CUDA tensors."""
    from fujinsplat.compat.gsplat_cuda import load_kernels

    load_kernels()
    from gsplat import rasterization

    given = (means, quats, scales, opacities, sh, viewmat, K, width, height)
    rendered, alphas, info = rasterization(
        **arguments(*given, render_mode="RGB+D" if with_depth else "RGB", sh_degree=sh_degree)
    )
    image, alpha = rendered[0, ..., :3], alphas[0, ..., 0]
    if background is not None:
        image = image + (1 - alpha)[..., None] * background
    info = Info(info, given)
    if with_depth:
        info["depth"] = rendered[0, ..., 3]
    return image, alpha, info


class Info(dict):
    """What densification reads, plus `depth`, drawn on first use when the picture was made without it."""

    def __init__(self, entries: dict, given: tuple):
        super().__init__(entries)
        self._given = given

    def __missing__(self, key):
        if key != "depth":
            raise KeyError(key)
        from gsplat import rasterization

        with torch.no_grad():
            self["depth"] = rasterization(**arguments(*self._given, render_mode="D"))[0][0, ..., 0]
        return self["depth"]
