"""A trained model's second picture: what the camera sees through its medium."""

from torch import Tensor

from fujinsplat.core.errors import UserError
from fujinsplat.splat.model import Gaussians


def through_medium(gaussians: Gaussians, viewmat: Tensor, K: Tensor, width: int, height: int) -> Tensor:
    """`[H, W, 3]` in the colours that the Gaussians are stored in."""
    device = gaussians.parameters["means"].device
    if gaussians.medium_kind == "seasplat":
        from fujinsplat.splat.media.sea_field import render_with_depth
        from fujinsplat.splat.media.seasplat import SeaMedium

        medium = SeaMedium().to(device)
        medium.load_state_dict(gaussians.medium)
        clean, _, depth, _ = render_with_depth(gaussians, viewmat, K, width, height)
        return medium(clean, depth)
    if gaussians.medium_kind == "watersplatting":
        from fujinsplat.splat.media.water_field import render_through
        from fujinsplat.splat.media.watersplatting import WaterMedium

        tensors = dict(gaussians.medium)
        unit = float(tensors.pop("unit"))
        medium = WaterMedium().to(device)
        medium.load_state_dict(tensors)
        return render_through(gaussians, medium, unit, viewmat, K, width, height)[0]
    raise UserError("this model has no medium, so there is no second picture of it; leave out --medium")
