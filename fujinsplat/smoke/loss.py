"""What training compares: linear light that is not clipped, and the splats' depth with the points'.

Clearing amplifies noise by 1 / T. Clipped at black and compared as displayed, that noise becomes bias; left alone, it
averages out. Differences are divided by the slope of the display's curve at the render, so that they count as the eye
counts them, and weighted by the transmission, which leaves the noise of all pixels alike. Differences between
neighbouring pixels count once more: edges stay sharp, and a smooth error of the smoke does not touch them. That term is
linear in the target as well, so noise is no bias in it.
"""

from torch import Tensor

from fujinsplat.core.color import encode

SLOPE = 0.58  # exponent: the display's curve is about x^0.42
EPS = 0.02  # linear light below which the display's slope does not grow further
SCALE = 0.25  # brings the loss to the size of the display loss, whose gradients the densification thresholds know
LEAST_ALPHA = 0.05
COVERED = 0.3  # alpha from which a pixel's depth means anything


def linear_loss(rendered: Tensor, target: Tensor, weight: Tensor, edges: float = 0.0) -> Tensor:
    """Mean weighted L1 of linear pictures `[h, w, 3]`, `weight [h, w]`; the target may be negative or above one.

    `edges` is the weight of the same for differences between neighbours, across and down.
    """
    slope = (rendered.detach().clamp_min(0) + EPS) ** SLOPE
    off = (rendered - target) * (weight[..., None] / slope)
    loss = off.abs().mean()
    if edges:
        loss = loss + edges * ((off[1:] - off[:-1]).abs().mean() + (off[:, 1:] - off[:, :-1]).abs().mean())
    return SCALE * loss


def display_loss(rendered: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Mean weighted L1 of the same pictures clipped to what a display shows, and encoded: noise below black is bias."""
    return ((encode(rendered.clamp(0, 1)) - encode(target.clamp(0, 1))).abs() * weight[..., None]).mean()


def depth_loss(depth: Tensor, alpha: Tensor, expected: Tensor, trusted: Tensor) -> Tensor:
    """Mean |log| of the expected depth of splats over `expected [h, w]`, where `trusted` and covered.

    `depth` is accumulated (`rasterize(..., with_depth=True)`), `alpha [h, w]` its weight.
    """
    ratio = (depth / alpha.clamp_min(LEAST_ALPHA) / expected).clamp(0.05, 20)
    return (ratio.log().abs() * (trusted & (alpha.detach() > COVERED))).mean()
