"""gsplat's CUDA part as torch operations on the CPU, for tests alone: everything else of the GPU's way is the real one.

`install(monkeypatch)` puts it where gsplat looks for its compiled kernels and sends our own work down the GPU's way.
Gradients are torch's, of the same equations; tiles are not needed, so lists of tiles hold all splats in depth order.
"""

import sys
from collections import Counter
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fujinsplat.splat.raster import reference

CALLS = Counter()  # by name: what would have been kernels of gsplat's


def install(monkeypatch) -> ModuleType:
    import gsplat

    from fujinsplat.core import gpu
    from fujinsplat.flow import operator
    from fujinsplat.flow import reference as flow_reference

    twin = ModuleType("gsplat.csrc")
    for name, function in FUNCTIONS.items():
        setattr(twin, name, _counted(name, function))
    twin.CameraModelType = SimpleNamespace(PINHOLE=0)
    twin.PINHOLE = 0
    monkeypatch.setitem(sys.modules, "gsplat.csrc", twin)
    monkeypatch.setattr(gsplat, "csrc", twin, raising=False)
    monkeypatch.delitem(sys.modules, "gsplat.cuda._backend", raising=False)
    monkeypatch.setattr(gpu, "holds", lambda tensor: True)
    monkeypatch.setattr(operator, "implementation", lambda device: flow_reference)
    return twin


def _counted(name: str, function):
    def call(*arguments):
        CALLS[name] += 1
        with _disable_current_modes():
            return function(*arguments)

    return call


@contextmanager
def _leaves(*tensors: Tensor):
    with torch.enable_grad():
        yield [tensor.detach().clone().requires_grad_() for tensor in tensors]


# projection


def _project(means, quats, scales, viewmats, Ks, width, height):
    means2d, covariances, depths = reference.project(means, quats, scales, viewmats[0], Ks[0], width, height)
    inverse = torch.linalg.inv(covariances)
    conics = torch.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], -1)
    return means2d[None], depths[None], conics[None], covariances


def projection_fwd(means, covars, quats, scales, opacities, viewmats, Ks, width, height, eps2d, near, far, *_):
    means2d, depths, conics, covariances = _project(means, quats, scales, viewmats, Ks, width, height)
    radii = reference.visible_radii(means2d[0], covariances, depths[0], opacities, width, height)[None]
    return radii, means2d, depths, conics, None


def projection_bwd(
    means, covars, quats, scales, viewmats, Ks, width, height, eps2d, camera, radii, conics, compensations,
    v_means2d, v_depths, v_conics, v_compensations, of_cameras,
):  # fmt: skip
    seen = (radii > 0).all(-1)[0]
    with _leaves(means, quats, scales) as leaves:
        means2d, depths, conics, _ = _project(*leaves, viewmats, Ks, width, height)
        parts = (means2d * v_means2d)[0].sum(-1) + (depths * v_depths)[0] + (conics * v_conics)[0].sum(-1)
        v_means, v_quats, v_scales = torch.autograd.grad(parts[seen].sum(), leaves)
    return v_means, None, v_quats, v_scales, None


# colours


def _colours(degree, dirs, coefficients):
    count = (degree + 1) ** 2
    basis = reference.harmonics(torch.nn.functional.normalize(dirs, dim=-1).reshape(-1, 3), count)
    flat = coefficients.reshape(-1, *coefficients.shape[-2:])[:, :count]
    return torch.einsum("nk,nkc->nc", basis, flat).reshape(dirs.shape)


def harmonics_fwd(degree, dirs, coefficients, masks):
    return _colours(degree, dirs, coefficients) * (1 if masks is None else masks[..., None])


def harmonics_bwd(bases, degree, dirs, coefficients, masks, v_colours, of_dirs):
    with _leaves(dirs, coefficients) as (d, c):
        total = (harmonics_fwd(degree, d, c, masks) * v_colours).sum() + 0 * d.sum()  # degree 0 has no direction
        v_dirs, v_coefficients = torch.autograd.grad(total, (d, c))
    return v_coefficients, v_dirs if of_dirs else None


# tiles


def intersect_tile(means2d, radii, depths, image_ids, gaussian_ids, images, size, across, down, sort, segmented):
    order = torch.argsort(depths[0], stable=True)
    order = order[(radii[0, order] > 0).all(-1)].to(torch.int32)
    return torch.zeros_like(radii[..., 0]), torch.zeros(len(order), dtype=torch.int64), order


def intersect_offset(ids, images, across, down):
    return torch.zeros(images, down, across, dtype=torch.int32)


# blending


def _blend(means2d, conics, colours, opacities, width, height, order):
    """Absolute gradients want each pixel's own: `means2d` may be `[P, N, 2]`."""
    pixels = reference.pixel_centres(range(height), width, colours)
    d = pixels[:, None] - means2d[..., order, :]
    a, b, c = conics[0, order].unbind(-1)
    sigma = 0.5 * (a * d[..., 0] ** 2 + c * d[..., 1] ** 2) + b * d[..., 0] * d[..., 1]
    weights, left = reference.composite(opacities[0, order] * torch.exp(-sigma))
    return (weights @ colours[0, order]).view(1, height, width, -1), (1 - left).view(1, height, width, 1)


def blend_fwd(means2d, conics, colours, opacities, backgrounds, masks, width, height, size, offsets, order):
    picture, alphas = _blend(means2d[0], conics, colours, opacities, width, height, order.long())
    return picture, alphas, torch.zeros(1, height, width, dtype=torch.int32)


def blend_bwd(
    means2d, conics, colours, opacities, backgrounds, masks, width, height, size, offsets, order,
    alphas, last, v_picture, v_alphas, absolute,
):  # fmt: skip
    own = means2d[0].expand(height * width, -1, -1) if absolute else means2d[0]
    with _leaves(own, conics, colours, opacities) as leaves:
        picture, alphas = _blend(*leaves, width, height, order.long())
        loss = (picture * v_picture).sum() + (alphas * v_alphas).sum()
        v_means2d, *others = torch.autograd.grad(loss, leaves)
    if absolute:
        return v_means2d.abs().sum(0)[None], v_means2d.sum(0)[None], *others
    return None, v_means2d[None], *others


def adam(parameter, gradient, mean, square, seen, lr, b1, b2, eps):
    at = seen.nonzero()[:, 0]
    g = gradient[at]
    mean[at] = b1 * mean[at] + (1 - b1) * g
    square[at] = b2 * square[at] + (1 - b2) * g * g
    parameter[at] -= lr * mean[at] / (square[at].sqrt() + eps)


FUNCTIONS = {
    "projection_ewa_3dgs_fused_fwd": projection_fwd,
    "projection_ewa_3dgs_fused_bwd": projection_bwd,
    "spherical_harmonics_fwd": harmonics_fwd,
    "spherical_harmonics_bwd": harmonics_bwd,
    "intersect_tile": intersect_tile,
    "intersect_offset": intersect_offset,
    "rasterize_to_pixels_3dgs_fwd": blend_fwd,
    "rasterize_to_pixels_3dgs_bwd": blend_bwd,
    "adam": adam,
}

# operations that only look at a tensor another way: no kernel
VIEWS = {
    "view", "_unsafe_view", "expand", "permute", "t", "transpose", "slice", "select", "unsqueeze", "squeeze", "detach",
    "alias", "as_strided", "split", "split_with_sizes", "unbind", "_reshape_alias", "reshape", "empty", "empty_like",
    "new_empty", "empty_strided", "new_empty_strided", "lift_fresh",
    "_record_function_enter_new", "_record_function_exit",
}  # fmt: skip
WAITS = {"_local_scalar_dense", "nonzero", "_unique2", "equal", "is_nonzero", "item"}


class Counting(TorchDispatchMode):
    """Counts what a GPU would do: kernels, bytes that they read and write, and moments at which the CPU waits."""

    def __init__(self):
        super().__init__()
        self.kernels, self.waits, self.bytes = Counter(), Counter(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in WAITS:
            self.waits[name] += 1
        elif name not in VIEWS:
            self.kernels[name] += 1
            tensors = [t for t in torch.utils._pytree.tree_leaves((args, kwargs, result)) if torch.is_tensor(t)]
            self.bytes += sum(t.numel() * t.element_size() for t in tensors)
        return result
