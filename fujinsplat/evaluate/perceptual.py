"""LPIPS 0.1.4 with the VGG network, from whichever weights are at hand."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.weights import WeightsMissing, find_weights

# the convolutions of VGG16's `features`, and the slice of lpips' trunk that holds each
_SLICES = {0: 1, 2: 1, 5: 2, 7: 2, 10: 3, 12: 3, 14: 3, 17: 4, 19: 4, 21: 4, 24: 5, 26: 5, 28: 5}


@dataclass(frozen=True)
class Perceptual:
    """The LPIPS network, or the reason why there is none.

    `origin` says where the weights came from; `reason` is set instead when none were found.
    """

    network: Any = None
    device: str = "cpu"
    origin: str | None = None
    reason: str | None = None

    def distance(self, prediction: np.ndarray, reference: np.ndarray) -> float | None:
        """LPIPS of two RGB pictures `[H, W, 3]` of one size, uint8 or float in [0, 1]; None without weights."""
        if self.network is None:
            return None
        import torch

        if min(reference.shape[:2]) < 16:
            raise UserError("LPIPS needs pictures of at least 16x16 pixels; set evaluate.lpips: false for smaller ones")

        def tensor(picture: np.ndarray) -> "torch.Tensor":
            unit = picture / 255.0 if picture.dtype == np.uint8 else picture
            scaled = torch.from_numpy((2.0 * unit - 1.0).astype(np.float32))
            return scaled.permute(2, 0, 1)[None].to(self.device)

        with torch.inference_mode():
            return float(self.network(tensor(prediction), tensor(reference)))


@lru_cache(maxsize=2)
def load_perceptual(configured: str | None = None, device: str = "cpu", online: bool = True) -> Perceptual:
    """LPIPS with the first weights found (see `fujinsplat.evaluate.weights`); never fails for want of them."""
    try:
        weights = find_weights(configured, online=online)
    except WeightsMissing as missing:
        return Perceptual(reason=str(missing))
    return Perceptual(network=_network(weights.tensors).to(device), device=device, origin=weights.origin)


def _network(vgg: dict[str, Any]) -> Any:
    """lpips' own module with the given VGG16 `features.N.{weight,bias}` as trunk and its packaged linear layers.

    Built on the meta device: torchvision's constructor would otherwise fill 138 million random weights first.
    """
    import warnings
    from pathlib import Path

    import torch

    from fujinsplat.compat.torchvision import prepare_torchvision

    prepare_torchvision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchvision's note on how lpips calls it
        import lpips

        with torch.device("meta"):
            network = lpips.LPIPS(net="vgg", pretrained=False, pnet_rand=True, verbose=False)
    linear = Path(lpips.__file__).with_name("weights") / "v0.1" / "vgg.pth"
    state = dict(torch.load(linear, map_location="cpu", weights_only=True))
    for layer, part in _SLICES.items():
        for kind in ("weight", "bias"):
            state[f"net.slice{part}.{layer}.{kind}"] = vgg[f"features.{layer}.{kind}"].float()
    network.load_state_dict(state, strict=False, assign=True)
    network.scaling_layer = lpips.ScalingLayer()
    left = [name for name, tensor in network.state_dict().items() if tensor.is_meta]
    if left:
        raise UserError(f"the VGG weights lack {', '.join(left)}; name a complete VGG16 file in evaluate.lpips_weights")
    return network.eval().requires_grad_(False)
