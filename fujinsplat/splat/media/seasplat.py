"""SeaSplat's medium (Yang et al., ICRA 2025): nine numbers for a whole scene, applied to each picture after it is
rasterised.

With J the render on black, d its depth, stretched to [0, 1] within each view,

    I = clamp(J exp(-beta_D d) + B (1 - exp(-beta_B d)), 0, 1).

The nearest pixel of every view thus has no haze at all, and the coefficients are per view range, not per metre: the
published method is so, and its consequences are kept.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, smooth_l1_loss

from fujinsplat.splat.loss import photometric_loss

ATTENUATION_START = (1.1, 0.95, 0.95)
BACKGROUND_START = (0.05, 0.25, 0.8)  # the colour behind everything, before the medium takes over
NEAR_BACKGROUND = 0.2 * math.sqrt(3)  # distance in RGB within which a pixel counts as background
BRIGHT = 0.7  # the saturation term begins here
NEGATIVE_WEIGHT, NEGATIVE_BEND = 1000.0, 0.2  # of the backscatter term where too much is taken away
# weights of the terms beside the photometric one
WEIGHTS = {
    "depth_weighted": 1.0,
    "alpha_background": 0.01,
    "depth_smooth": 2.0,
    "grey_world": 0.1,
    "saturation": 2.0,
    "backscatter": 1.0,
}
LR_MEDIUM = 1e-2  # Adam, of the nine numbers and of the background


def view_depth(accumulated: Tensor, alpha: Tensor) -> Tensor:
    """Depth `[H, W]` stretched to [0, 1] within the view; where nothing is seen, the view's largest.

    `accumulated` is the sum of weight x depth. Gradients flow through the stretching, as published.
    """
    seen = alpha > 0
    depth = torch.where(seen, accumulated / torch.where(seen, alpha, torch.ones_like(alpha)), torch.zeros_like(alpha))
    farthest = depth.max()
    depth = torch.where(seen, depth, farthest)
    nearest = depth.min()
    return (depth - nearest) / (farthest - nearest).clamp_min(1e-8)


class SeaMedium(nn.Module):
    """beta_D, beta_B and B (logits), three channels each, and the background of the first phase (logits)."""

    def __init__(self, seed: int = 0):
        super().__init__()
        draws = torch.rand(2, 3, generator=torch.Generator().manual_seed(seed))
        self.attenuation = nn.Parameter(torch.tensor(ATTENUATION_START))
        self.backscatter = nn.Parameter(draws[0])
        self.veil = nn.Parameter(draws[1])
        self.background = nn.Parameter(torch.tensor(BACKGROUND_START).logit())

    @torch.no_grad()
    def switch(self) -> None:
        """The medium takes over: its veil starts from the background that the first phase has learned."""
        self.veil.copy_(self.background)

    def scattered(self, depth: Tensor) -> Tensor:
        """Light of the medium itself, `[H, W, 3]`."""
        return torch.sigmoid(self.veil) * (1 - torch.exp(-relu(self.backscatter * depth[..., None])))

    def unclamped(self, clean: Tensor, depth: Tensor) -> Tensor:
        return clean * torch.exp(-relu(self.attenuation * depth[..., None])) + self.scattered(depth)

    def forward(self, clean: Tensor, depth: Tensor) -> Tensor:
        """The picture through the medium: clean `[H, W, 3]`, depth `[H, W]` in [0, 1]."""
        return self.unclamped(clean, depth).clamp(0, 1)

    def before(self, clean: Tensor, alpha: Tensor) -> Tensor:
        """The picture of the first phase: the background shines through what is not covered."""
        return clean + torch.sigmoid(self.background) * (1 - alpha)[..., None]


def depth_weighted(picture: Tensor, target: Tensor, depth: Tensor) -> Tensor:
    """Far pixels count more: mean |d (picture - target)|, the depth held."""
    return (depth.detach()[..., None] * (picture - target)).abs().mean()


def alpha_background(alpha: Tensor, picture: Tensor, background: Tensor) -> Tensor:
    """Mean alpha of the pixels that look like the background: nothing should stand there."""
    near = (picture.detach() - background.detach()).norm(dim=-1) < NEAR_BACKGROUND
    return (alpha * near).sum() / near.sum().clamp_min(1)


def depth_smooth(depth: Tensor, target: Tensor) -> Tensor:
    """Depth may change where the picture does. The colour's derivative is signed, as published."""

    def along(axis: int) -> Tensor:
        colour = target.diff(dim=axis).mean(-1)
        return (depth.diff(dim=axis).abs() * torch.exp(-colour)).mean()

    return along(1) + along(0)


def grey_world(clean: Tensor) -> Tensor:
    return (clean.mean((0, 1)) - 0.5).square().mean()


def saturation(clean: Tensor) -> Tensor:
    return (relu(-clean) + relu(clean - BRIGHT)).square().mean()


def backscatter(target: Tensor, scattered: Tensor) -> Tensor:
    """What is left of the picture without the medium's light: as little as possible, but hardly ever negative."""
    direct = target - scattered
    too_much = relu(-direct)
    return relu(direct).mean() + NEGATIVE_WEIGHT * smooth_l1_loss(
        too_much, torch.zeros_like(too_much), beta=NEGATIVE_BEND
    )


def loss_before(medium: SeaMedium, clean: Tensor, alpha: Tensor, depth: Tensor, target: Tensor, weight: float):
    """The first phase's loss and picture: no medium."""
    picture = medium.before(clean, alpha)
    loss = photometric_loss(picture, target, weight) + _always(
        picture, clean, alpha, depth, target, torch.sigmoid(medium.background)
    )
    return loss, picture


def loss_after(medium: SeaMedium, clean: Tensor, alpha: Tensor, depth: Tensor, target: Tensor, weight: float):
    """Loss and picture through the medium. The backscatter term reaches the medium alone: its depth is held."""
    picture = medium(clean, depth)
    loss = photometric_loss(picture, target, weight)
    loss = loss + _always(picture, picture, alpha, depth, target, torch.sigmoid(medium.veil))
    loss = loss + WEIGHTS["grey_world"] * grey_world(clean) + WEIGHTS["saturation"] * saturation(clean)
    loss = loss + WEIGHTS["backscatter"] * backscatter(target, medium.scattered(depth.detach()))
    return loss, picture


def _always(picture, compared, alpha, depth, target, background) -> Tensor:
    """The terms of both phases; `compared` is what is held against the background."""
    return (
        WEIGHTS["depth_weighted"] * depth_weighted(picture, target, depth)
        + WEIGHTS["alpha_background"] * alpha_background(alpha, compared, background)
        + WEIGHTS["depth_smooth"] * depth_smooth(depth, target)
    )
