"""The picture term of expert fitting and controller training [supp. G], per picture of a batch.

    mean |dec(Z) - dec(J)|  +  weight_encoded mean |Z - J|  +  weight_range mean (distance of Z from [0, 1])

Z is the developed encoded RGB, J the clean target. On the CPU one pass gives the value and its gradient together; the
plain torch version runs elsewhere and in float64.
"""

import torch

from fujinsplat.core.color import decode


class Target:
    """A fixed clean target `[B, N, 3]`, encoded, with its linear light worked out once."""

    def __init__(self, encoded: torch.Tensor):
        self.encoded = encoded.contiguous()
        self.linear = decode(self.encoded)


def photometric(developed: torch.Tensor, target: Target, weight_encoded: float, weight_range: float) -> torch.Tensor:
    """The loss of each picture, `[B]`; `developed [B, N, 3]` encoded, not clamped."""
    if developed.device.type == "cpu" and developed.dtype == torch.float32:
        return _Fused.apply(developed, target, weight_encoded, weight_range)
    return plain(developed, target, weight_encoded, weight_range)


def plain(developed: torch.Tensor, target: Target, weight_encoded: float, weight_range: float) -> torch.Tensor:
    """The formula above in torch."""
    linear = (decode(developed) - target.linear).abs().mean(dim=(1, 2))
    encoded = (developed - target.encoded).abs().mean(dim=(1, 2))
    outside = (developed - developed.clamp(0, 1)).abs().mean(dim=(1, 2))
    return linear + weight_encoded * encoded + weight_range * outside


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, developed, target, weight_encoded, weight_range):
        from fujinsplat.flow.photometric_kernel import value_and_gradient

        developed = developed.contiguous()
        B = len(developed)
        gradient = torch.empty_like(developed)
        shown, encoded, linear, slopes = (
            t.detach().view(B, -1).numpy() for t in (developed, target.encoded, target.linear, gradient)
        )
        sums = value_and_gradient(shown, encoded, linear, slopes, weight_encoded, weight_range)
        ctx.save_for_backward(gradient)
        return torch.from_numpy(sums.sum(axis=1) / max(developed[0].numel(), 1)).to(developed.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        (gradient,) = ctx.saved_tensors
        return gradient * upstream[:, None, None], None, None, None
