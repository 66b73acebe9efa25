"""Which rasteriser runs, decided here and nowhere else, from the tensors themselves."""

import torch
from torch import Tensor

from fujinsplat.core import gpu
from fujinsplat.splat.raster.conventions import SH_COEFFICIENTS


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
    """Render Gaussians with linear colours, differentiably.

    means `[N, 3]` world; quats `[N, 4]` (w, x, y, z), any length; scales `[N, 3]` standard deviations; opacities `[N]`
    in [0, 1]; sh `[N, 1 | 4 | 9 | 16, 3]` coefficients of linear colour minus 1/2, of which those up to `sh_degree` are
    read (all unless given). All are activated values. `viewmat
    [4, 4]` takes world to camera (OpenCV axes: x right, y down, z forward), `K [3, 3]` in pixels, pixel centres at
    +0.5; `background [3]` linear.

    Returns the picture `[H, W, 3]` (linear, not clamped above), alpha `[H, W]`, and `info` for densification and
    depth: `means2d [1, N, 2]` (call `retain_grad` before the backward pass), `radii [1, N, 2]`, `depths [1, N]`,
    `depth [H, W]` (accumulated: the sum of weight x depth; divide by alpha for the expected depth), `width`, `height`,
    `n_cameras`, `gaussian_ids`. `depth` carries gradients to means, quats, scales and opacities when `with_depth`; it
    is then blended and differentiated in the colours' own passes. Otherwise it is blended when first asked for.

    CUDA tensors go to gsplat, float32 CPU tensors to our compiled kernels, float64 CPU tensors to the reference.
    """
    n, per_channel = len(means), sh.shape[1] if sh.ndim == 3 else 0
    shapes = {"means": means.shape == (n, 3), "quats": quats.shape == (n, 4), "scales": scales.shape == (n, 3)}
    shapes |= {"opacities": opacities.shape == (n,), "sh": per_channel in SH_COEFFICIENTS and sh.shape[::2] == (n, 3)}
    wrong = [name for name, right in shapes.items() if not right]
    if wrong or width < 1 or height < 1:
        raise ValueError(f"rasterize: wrong shape of {', '.join(wrong) or 'picture'} for {n} Gaussians")
    camera = (viewmat, K, width, height, background, with_depth)
    if gpu.holds(means):
        from fujinsplat.splat.raster.gsplat_engine import rasterize as on_gpu

        return on_gpu(means, quats, scales, opacities, sh, *camera, sh_degree)
    if sh_degree is not None:
        sh = sh[:, : (sh_degree + 1) ** 2]
    if means.dtype == torch.float32:
        from fujinsplat.splat.raster.cpu_engine import rasterize as engine
    else:
        from fujinsplat.splat.raster.reference import rasterize as engine
    return engine(means, quats, scales, opacities, sh, *camera)
