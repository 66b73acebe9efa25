"""From our linear Gaussians to a file that looks right in any viewer.

Viewers blend display-encoded colours; our Gaussians blend light. So the exported colours are refitted: each Gaussian's
linear colour, seen from many directions, is encoded and fitted by SH again. Where Gaussians overlap, or end against a
dark ground, the two ways of blending still differ: half of a colour's light is more than half of its encoded value. So
colours, opacities and shapes of the export are then fine-tuned on our own renders, from poses around the source
cameras; centres stay.
"""

import math

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.compat.optim import Adam
from fujinsplat.core.metrics import psnr
from fujinsplat.core.progress import progress
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.displays import EncodedDisplay
from fujinsplat.splat.loss import photometric_loss
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.path import camera_path
from fujinsplat.splat.raster.reference import harmonics
from fujinsplat.splat.render import camera_tensors, render_encoded

DIRECTIONS = 48
CHUNK = 50_000
RATES = {"sh0": 3e-2, "shN": 3e-3, "opacities": 7.5e-2, "scales": 1.5e-2, "quats": 3e-3}


def sphere(count: int) -> Tensor:
    """`count` directions spread evenly over the sphere (Fibonacci), float32 `[count, 3]`."""
    i = torch.arange(count, dtype=torch.float64) + 0.5
    z, turn = 1 - 2 * i / count, i * math.pi * (1 + math.sqrt(5))
    radius = (1 - z * z).sqrt()
    return torch.stack([radius * turn.cos(), radius * turn.sin(), z], -1).to(torch.float32)


@torch.no_grad()
def refit(linear: Gaussians) -> Gaussians:
    """The same Gaussians with display-encoded SH, fitted Gaussian by Gaussian over the sphere."""
    p = linear.parameters
    sh = torch.cat([p["sh0"], p["shN"]], 1)
    basis = harmonics(sphere(DIRECTIONS), sh.shape[1]).to(sh.device)
    solve = torch.linalg.pinv(basis)
    fitted = torch.cat(
        [torch.einsum("kd,ndc->nkc", solve, linear.display(basis @ part + 0.5) - 0.5) for part in sh.split(CHUNK)]
        or [sh]
    )
    values = {name: value.detach().clone() for name, value in p.items()}
    values |= {"sh0": fitted[:, :1].contiguous(), "shN": fitted[:, 1:].contiguous()}
    return Gaussians(values, EncodedDisplay())


def viewer_render(gaussians: Gaussians, camera: Camera) -> Tensor:
    """As a viewer shows the exported file: colours blended as they are, then clamped; `[H, W, 3]` encoded."""
    device = gaussians.parameters["means"].device
    return gaussians.render(*camera_tensors(camera, device))[0].clamp(0, 1)


def bake(linear: Gaussians, cameras: list[Camera], settings: SplatSettings) -> Gaussians:
    """Display-encoded Gaussians for export: refit, then `bake_steps` updates against our own linear renders."""
    if linear.display.colour == "encoded":  # blended as a viewer blends: nothing to fit
        return Gaussians({name: value.detach().clone() for name, value in linear.parameters.items()}, linear.display)
    baked = refit(linear)
    if not len(linear):
        return baked
    poses = [*cameras, *(camera_path(cameras, 2 * len(cameras)) if len(cameras) > 1 else [])]
    optimizer = Adam([{"params": [baked.parameters[n]], "lr": lr} for n, lr in RATES.items()], fused=True, eps=1e-15)
    order = np.random.default_rng(settings.seed)
    for step in progress(range(settings.bake_steps), "display colours"):
        if step % len(poses) == 0:
            turn = order.permutation(len(poses))
        camera = poses[turn[step % len(poses)]]
        for group, rate in zip(optimizer.param_groups, RATES.values(), strict=True):
            group["lr"] = rate * (1 - step / settings.bake_steps)
        loss = photometric_loss(viewer_render(baked, camera), render_encoded(linear, camera), settings.lambda_dssim)
        loss.backward()
        optimizer.step()
        for value in baked.parameters.values():
            value.grad = None
    return baked


@torch.no_grad()
def agreement(linear: Gaussians, baked: Gaussians, cameras: list[Camera]) -> dict[str, float]:
    """PSNR (dB) between viewer-style renders of the export and our own, by stem."""
    return {c.stem: psnr(viewer_render(baked, c), render_encoded(linear, c)) for c in cameras}
