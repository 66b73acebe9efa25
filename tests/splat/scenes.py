"""Small scenes for the rasteriser's tests: drawn by hypothesis, odd on purpose."""

import math
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from fujinsplat.splat.raster import reference
from fujinsplat.splat.raster.conventions import ALPHA_MAX, ALPHA_MIN, T_STOP

KINDS = ("ordinary", "behind", "off_screen", "huge", "needle", "opaque", "equal_depth", "border", "faint", "at_near")


@dataclass
class Drawn:
    """Float32 Gaussians (activated) in front of one camera."""

    gaussians: dict[str, Tensor]
    viewmat: Tensor
    K: Tensor
    width: int
    height: int
    background: Tensor

    def arguments(self, dtype=torch.float32) -> dict[str, Tensor]:
        """Fresh leaves for `rasterize`."""
        leaves = {k: v.detach().clone().to(dtype).requires_grad_() for k, v in self.gaussians.items()}
        background = self.background.detach().clone().to(dtype).requires_grad_()
        return leaves | {
            "background": background,
            "viewmat": self.viewmat.to(dtype),
            "K": self.K.to(dtype),
            "width": self.width,
            "height": self.height,
        }


def _rotation(random: torch.Generator, strength: float) -> Tensor:
    q = torch.tensor([1.0, 0, 0, 0]) + strength * torch.randn(4, generator=random)
    return reference.rotation_matrices(q[None].double())[0]


def make(seed: int, kinds: list[str], width: int, height: int, coefficients: int, turned: bool) -> Drawn:
    """One Gaussian per entry of `kinds`; positions are chosen in the camera's frame and taken to the world's."""
    g = torch.Generator().manual_seed(seed)
    n, focal = len(kinds), 0.9 * max(width, height)
    uniform = torch.rand(n, 8, generator=g, dtype=torch.float64)
    depth = 1 + 4 * uniform[:, 0]
    u, v = uniform[:, 1] * width, uniform[:, 2] * height
    size = torch.exp(-0.5 + 1.5 * uniform[:, 3:6]) / focal * depth[:, None]
    opacity = 0.05 + 0.9 * uniform[:, 6]
    for i, kind in enumerate(kinds):
        if kind == "behind":
            depth[i] = -depth[i]
        elif kind == "at_near":
            depth[i] = 0.012
            size[i] *= 0.01
        elif kind == "off_screen":
            u[i] += 3 * width
        elif kind == "huge":
            size[i] *= 40
        elif kind == "needle":
            size[i] *= torch.tensor([30.0, 0.01, 0.01])
        elif kind == "opaque":
            opacity[i] = 1.0
        elif kind == "equal_depth":
            depth[i] = 2.0
        elif kind == "border":
            u[i], v[i] = (0.0 if uniform[i, 7] < 0.5 else width), (height if uniform[i, 7] < 0.5 else 0.0)
        elif kind == "faint":
            opacity[i] = 0.9 / 255
    viewmat = torch.eye(4, dtype=torch.float64)
    if turned:
        viewmat[:3, :3] = _rotation(g, 0.4)
        viewmat[:3, 3] = 0.5 * torch.randn(3, generator=g, dtype=torch.float64)
    K = torch.tensor([[focal, 0, 0.48 * width], [0, 1.1 * focal, 0.53 * height], [0, 0, 1]], dtype=torch.float64)
    in_camera = torch.stack([(u - K[0, 2]) / K[0, 0] * depth, (v - K[1, 2]) / K[1, 1] * depth, depth], -1)
    means = (in_camera - viewmat[:3, 3]) @ viewmat[:3, :3]
    sh = torch.randn(n, coefficients, 3, generator=g) * torch.tensor([0.8] + [0.15] * (coefficients - 1))[:, None]
    gaussians = {
        "means": means,
        "quats": torch.randn(n, 4, generator=g) * math.exp(torch.randn(1, generator=g)),
        "scales": size,
        "opacities": opacity,
        "sh": sh,
    }
    values = {name: value.to(torch.float32).contiguous() for name, value in gaussians.items()}
    return Drawn(values, viewmat.float(), K.float(), width, height, torch.rand(3, generator=g))


def drawn(most: int = 24):
    """Strategy: up to `most` Gaussians of any kind, including none, in pictures of any small size."""
    return st.builds(
        make,
        seed=st.integers(0, 2**31),
        kinds=st.lists(st.sampled_from(KINDS), min_size=0, max_size=most),
        width=st.integers(1, 50),
        height=st.integers(1, 70),
        coefficients=st.sampled_from([1, 4, 9, 16]),
        turned=st.booleans(),
    )


def steady(scene: Drawn, nearness: float = 1e-4) -> tuple[Tensor, bool]:
    """Where the picture is continuous in its inputs: pixels `[H, W]`, and whether every colour is.

    Rounding may fall on either side of a threshold (a contribution of exactly 1/255, a transmittance of exactly 1e-4,
    the cap of alpha, a colour of exactly 0), and then a float32 and a float64 picture differ by a visible step though
    both are right. A pixel is steady when no contribution to it comes that near to a threshold.
    """
    a = scene.arguments(torch.float64)
    means2d, covariances, depths = reference.project(
        a["means"], a["quats"], a["scales"], a["viewmat"], a["K"], scene.width, scene.height
    )
    radii = reference.visible_radii(means2d, covariances, depths, a["opacities"], scene.width, scene.height)
    order = torch.argsort(depths.to(torch.float32), stable=True)
    order = order[(radii[order] > 0).all(-1)]
    pixels = reference.pixel_centres(range(scene.height), scene.width, means2d)
    with torch.no_grad():
        alpha = reference.contributions(pixels, means2d[order], covariances[order], a["opacities"][order])
        near = ((alpha / ALPHA_MIN).log().abs() < nearness) | ((alpha / ALPHA_MAX).log().abs() < nearness)
        kept = torch.where(alpha >= ALPHA_MIN, alpha.clamp_max(ALPHA_MAX), torch.zeros_like(alpha))
        near |= ((1 - kept).cumprod(-1) / T_STOP).log().abs() < 10 * nearness
        centre = -a["viewmat"][:3, :3].T @ a["viewmat"][:3, 3]
        directions = torch.nn.functional.normalize(a["means"] - centre, dim=-1)
        raw = torch.einsum("nk,nkc->nc", reference.harmonics(directions, a["sh"].shape[1]), a["sh"]) + 0.5
        colours_steady = bool((raw[order].abs() > nearness).all())
    return ~near.any(-1).reshape(scene.height, scene.width), colours_steady
