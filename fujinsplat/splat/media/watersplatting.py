"""WaterSplatting's medium (Li et al., 3DV 2025): every Gaussian is dimmed by its depth, and the medium shines between.

Along a pixel, with weights w_i, transmittances T_i and depths z_i, front to back and z_0 = 0,

    object  sum_i w_i c_i exp(-a z_i)
    medium  m [sum_i T_i (exp(-b z_{i-1}) - exp(-b z_i)) + T_{N+1} exp(-b z_N)]  =  m (1 - sum_i w_i exp(-b z_i)),

the second form by summation by parts, so that one rasterisation of six channels, c_i exp(-a z_i) and exp(-b z_i), gives
the picture. Attenuation a, backscatter b and colour m are functions of the direction of view.

One thing is not as published: a and b are taken in the direction of each Gaussian's centre, not of each pixel. For a
medium that is the same in all directions the two are equal.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize, softplus

from fujinsplat.splat.loss import photometric_loss
from fujinsplat.splat.raster.reference import harmonics

HARMONICS, HIDDEN = 16, 128
COARSE = 8  # pixels of the grid on which the medium's colour is evaluated: it is smooth in the direction
STABLE = 1e-3  # added to the picture that the losses are divided by


@dataclass(frozen=True)
class Water:
    """The medium in some directions: `colour`, `backscatter` and `attenuation` `[..., 3]`; the latter two per unit."""

    colour: Tensor
    backscatter: Tensor
    attenuation: Tensor


class WaterMedium(nn.Module):
    """Sixteen harmonics of the direction of view, one hidden layer, nine numbers. It starts near m = 1/2, a = b = ln 2
    per scene unit, so the scene unit matters: see `scene_unit`."""

    def __init__(self, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = nn.Sequential(nn.Linear(HARMONICS, HIDDEN), nn.Sigmoid(), nn.Linear(HIDDEN, 9))

    def forward(self, directions: Tensor) -> Water:
        """`directions [..., 3]`: unit vectors in the world's frame."""
        flat = self.layers(harmonics(directions.reshape(-1, 3), HARMONICS)).reshape(*directions.shape[:-1], 9)
        return Water(torch.sigmoid(flat[..., :3]), softplus(flat[..., 3:6]), softplus(flat[..., 6:]))

    def colour(self, viewmat: Tensor, K: Tensor, width: int, height: int) -> Tensor:
        """m on the picture `[H, W, 3]`: evaluated on a coarse grid, bilinear between."""
        coarse = (-(-height // COARSE), -(-width // COARSE))
        m = self(ray_directions(viewmat, K, width, height, *coarse)).colour
        return interpolate(m.permute(2, 0, 1)[None], (height, width), mode="bilinear", align_corners=False)[0].permute(
            1, 2, 0
        )


def ray_directions(viewmat: Tensor, K: Tensor, width: int, height: int, rows: int, columns: int) -> Tensor:
    """Unit directions of view `[rows, columns, 3]` in the world's frame, through the middles of a grid of cells."""
    x = (torch.arange(columns, device=K.device) + 0.5) * (width / columns)
    y = (torch.arange(rows, device=K.device) + 0.5) * (height / rows)
    y, x = torch.meshgrid(y, x, indexing="ij")
    rays = torch.stack([(x - K[0, 2]) / K[0, 0], (y - K[1, 2]) / K[1, 1], torch.ones_like(x)], -1)
    return normalize(rays, dim=-1) @ viewmat[:3, :3]


def scene_unit(viewmats: Tensor) -> float:
    """What depths and sizes are multiplied by so that the largest coordinate of a camera, about their mean, is 1."""
    viewmats = viewmats.double()
    centres = -(viewmats[:, :3, :3].mT @ viewmats[:, :3, 3:])[..., 0]
    largest = float((centres - centres.mean(0)).abs().max())
    return 1 / largest if largest > 0 else 1.0


def channels(medium: WaterMedium, means: Tensor, colours: Tensor, viewmat: Tensor, unit: float) -> Tensor:
    """The six channels `[N, 6]` of the Gaussians in one view: c exp(-a z), then exp(-b z).

    Depth and direction are held: the medium never moves a Gaussian.
    """
    means = means.detach()
    depth = ((means @ viewmat[2, :3] + viewmat[2, 3]) * unit).clamp_min(0)[:, None]
    centre = -viewmat[:3, :3].T @ viewmat[:3, 3]
    water = medium(normalize(means - centre, dim=-1))
    dimmed = colours * torch.exp(-water.attenuation * depth)
    return torch.cat([dimmed, torch.exp(-water.backscatter * depth)], -1)


def compose(blended: Tensor, colour: Tensor) -> Tensor:
    """The picture `[H, W, 3]` from the six blended channels `[H, W, 6]` and the medium's colour `[H, W, 3]`."""
    return blended[..., :3] + colour * (1 - blended[..., 3:])


def regularised_loss(picture: Tensor, target: Tensor, weight: float) -> Tensor:
    """(1 - weight) L1 + weight (1 - SSIM) of pictures divided by the (held) render, so that dark places count as well.

    The published SSIM has no border; ours takes zeros outside, which changes five pixels at each edge.
    """
    scale = 1 / (picture.detach() + STABLE)
    return photometric_loss(picture * scale, target * scale, weight)
