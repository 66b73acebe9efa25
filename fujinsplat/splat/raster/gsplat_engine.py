"""gsplat on CUDA, through its documented arguments alone."""

from torch import Tensor

from fujinsplat.splat.raster.conventions import EPS2D, FAR, NEAR, SH_COEFFICIENTS


def arguments(means, quats, scales, opacities, sh, viewmat, K, width, height, background=None) -> dict:
    """Our call as keyword arguments of `gsplat.rasterization`: one camera, unpacked, colour and accumulated depth.

    With a depth channel gsplat wants no background: it is added to the colours afterwards.
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
        sh_degree=SH_COEFFICIENTS[sh.shape[1]],
        packed=False,
        render_mode="RGB+D",
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
) -> tuple[Tensor, Tensor, dict]:
    """See `fujinsplat.splat.rasterize`; CUDA tensors."""
    from gsplat import rasterization

    rendered, alphas, info = rasterization(
        **arguments(means, quats, scales, opacities, sh, viewmat, K, width, height, background)
    )
    image, alpha = rendered[0, ..., :3], alphas[0, ..., 0]
    if background is not None:
        image = image + (1 - alpha)[..., None] * background
    info["depth"] = rendered[0, ..., 3].detach()
    return image, alpha, info
