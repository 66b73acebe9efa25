"""The scene-agnostic controller: a 64x64 summary of a view in, the coefficients of its action out [supp. G]."""

import torch
from torch import Tensor, nn

from fujinsplat.flow.layout import COUPLINGS, KNOTS, SEGMENTS

PARAMETERS = 1_514_717  # at K = 7, M = 16
SUMMARY = 64
CHANNELS = (32, 64, 96, 128)
POOLED = 4
DESCRIPTOR = CHANNELS[-1] * POOLED * POOLED


class Encoder(nn.Sequential):
    """Four strided convolutions without normalisation: summary `[B, 3, 64, 64]` to descriptor `[B, 2048]`."""

    def __init__(self):
        layers: list[nn.Module] = []
        before = 3
        for index, after in enumerate(CHANNELS):
            side = 5 if index == 0 else 3
            layers += [nn.Conv2d(before, after, side, stride=2, padding=side // 2), nn.GELU()]
            before = after
        super().__init__(*layers, nn.AdaptiveAvgPool2d(POOLED), nn.Flatten())


class Controller(nn.Module):
    """Summary `[B, 3, 64, 64]` to action `[B, P]`. The nine heads start at zero: untrained, it is the identity.

    The summary is camera-linear RAW without white balance (`summarise`), or, for the RGB-input variant, the encoded
    base output reduced in the same way.
    """

    def __init__(self, K: int = COUPLINGS, M: int = SEGMENTS):
        super().__init__()
        self.K, self.M = K, M
        self.encoder = Encoder()
        self.trunk = nn.Sequential(nn.Linear(DESCRIPTOR, 512), nn.GELU(), nn.Linear(512, 256), nn.GELU())
        self.curve_heads = nn.ModuleList(nn.Linear(256, 3 * M) for _ in range(K + 1))
        self.coupling_head = nn.Linear(256, 3 * KNOTS * K)
        self.notes: dict[str, str] = {}  # what its file says beside the tensors
        for head in self.heads():
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
        if (K, M) == (COUPLINGS, SEGMENTS):
            count = sum(parameter.numel() for parameter in self.parameters())
            assert count == PARAMETERS, f"{count} parameters, not {PARAMETERS}"

    def heads(self) -> list[nn.Linear]:
        """K + 1 for curves, then the one for couplings."""
        return [head for head in (*self.curve_heads, self.coupling_head) if isinstance(head, nn.Linear)]

    @classmethod
    def seeded(cls, seed: int, K: int = COUPLINGS, M: int = SEGMENTS, scaled_to: Tensor | None = None) -> "Controller":
        """A controller to train from: torch's initialisation of encoder and trunk, or `scaled` to summaries.

        Both are drawn from `seed` alone, so that controllers of every capacity start from the same encoder and trunk.
        """
        torch.manual_seed(seed)
        made = cls(K, M)  # encoder and trunk come before the heads, whose number depends on K
        if scaled_to is not None:
            torch.manual_seed(seed)
            made.scale_to(scaled_to)
        return made

    @torch.no_grad()
    def scale_to(self, summaries: Tensor) -> None:
        """Weights to train from, for summaries like these `[n, 3, 64, 64]`; heads stay at zero.

        The network has no normalisation, and camera-linear RAW is dark: with torch's usual start the biases drown it.
        So layers start at the scale that keeps a signal's size, and the first one expects the summaries' own mean and
        deviation. It is a start only: the layers are those of the paper.
        """
        layers = [layer for layer in (*self.encoder, *self.trunk) if isinstance(layer, nn.Conv2d | nn.Linear)]
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        mean, deviation = summaries.mean(dim=(0, 2, 3)), summaries.std(dim=(0, 2, 3)).clamp_min(1e-3)
        first = layers[0]
        assert first.bias is not None
        first.weight.div_(deviation[:, None, None])
        first.bias.sub_((first.weight.sum(dim=(2, 3)) * mean).sum(dim=1))

    def forward(self, summary: Tensor) -> Tensor:
        feature = self.trunk(self.encoder(summary))
        # all heads read the same feature: one product with their stacked weights
        heads = self.heads()
        weight, bias = torch.cat([head.weight for head in heads]), torch.cat([head.bias for head in heads])
        return nn.functional.linear(feature, weight, bias)


def summarise(picture: Tensor, side: int = SUMMARY) -> Tensor:
    """A picture `[H, W, 3]` (camera-linear RAW, or encoded RGB) to its summary `[3, side, side]`.

    Plain bilinear resizing without a low-pass filter, then clamped to [0, 1] [supp. G].
    """
    planes = picture.permute(2, 0, 1)[None].float()
    small = nn.functional.interpolate(planes, size=(side, side), mode="bilinear", align_corners=False)
    return small[0].clamp(0, 1)
