"""WaterSplatting in training: six channels at once, coarse pictures first, a density control of its own."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from fujinsplat.compat.optim import Adam
from fujinsplat.splat.data import TrainingScene, View
from fujinsplat.splat.media import watersplatting
from fujinsplat.splat.media.density import WaterDensity
from fujinsplat.splat.media.plain import PlainField
from fujinsplat.splat.media.watersplatting import WaterMedium
from fujinsplat.splat.model import NEIGHBOURS, Gaussians
from fujinsplat.splat.neighbours import square_distances
from fujinsplat.splat.raster.channels import rasterize_channels
from fujinsplat.splat.raster.reference import harmonics


def colours(gaussians: Gaussians, viewmat: Tensor, sh_degree: int | None = None) -> Tensor:
    """What each Gaussian shows the camera, `[N, 3]`: max(0, sh . basis + 1/2). The direction is held."""
    sh = gaussians.activated(sh_degree)["sh"]
    centre = -viewmat[:3, :3].T @ viewmat[:3, 3]
    directions = normalize(gaussians.parameters["means"].detach() - centre, dim=-1)
    return (torch.einsum("nk,nkc->nc", harmonics(directions, sh.shape[1]), sh) + 0.5).clamp_min(0)


def render_through(
    gaussians: Gaussians,
    medium: WaterMedium,
    unit: float,
    viewmat: Tensor,
    K: Tensor,
    width: int,
    height: int,
    sh_degree: int | None = None,
    with_depth: bool = False,
) -> tuple[Tensor, Tensor, dict]:
    """(picture through the medium `[H, W, 3]`, alpha, info), from one rasterisation of six channels, or of seven."""
    a = gaussians.activated(sh_degree)
    features = watersplatting.channels(medium, a["means"], colours(gaussians, viewmat, sh_degree), viewmat, unit)
    if with_depth:
        features = torch.cat([features, (a["means"] @ viewmat[2, :3] + viewmat[2, 3])[:, None]], -1)
    geometry = (a["means"], a["quats"], a["scales"], a["opacities"])
    blended, alpha, info = rasterize_channels(*geometry, features, viewmat, K, width, height)
    if with_depth:
        info["depth"] = blended[..., 6]
    return watersplatting.compose(blended[..., :6], medium.colour(viewmat, K, width, height)), alpha, info


class WaterField(PlainField):
    """Gaussians and the medium's network."""

    own_loss = True
    rates = "settings.splat.lr_means or settings.watersplatting.lr_medium"

    def __init__(self, scene: TrainingScene, settings: Any, own: Any):
        super().__init__(scene, settings, own)
        self._start_as_published()
        self.unit = watersplatting.scene_unit(torch.stack([view.viewmat for view in scene.views]).cpu())
        self.medium = WaterMedium(settings.seed).to(scene.device)
        self.medium_optimizer = Adam(self.medium.parameters(), lr=own.lr_medium, eps=1e-15)
        self.density = WaterDensity(
            own,
            first=self.schedule.densify_from,
            last=self.schedule.densify_until,
            every=self.schedule.densify_every,
            views=len(scene),
            unit=self.unit,
            limit=settings.max_gaussians,
        )

    @torch.no_grad()
    def _start_as_published(self) -> None:
        """As large as the mean distance to the neighbours, turned at random."""
        parameters, count = self.gaussians.parameters, len(self.gaussians)
        draws = torch.randn(count, 4, generator=torch.Generator().manual_seed(self.settings.seed))
        parameters["quats"].copy_(normalize(draws, dim=-1))
        if count > 1:
            distances = square_distances(self.scene.xyz, min(NEIGHBOURS, count - 1)) ** 0.5
            sizes = torch.from_numpy(distances.mean(1)).clamp_min(1e-7)
            parameters["scales"].copy_(sizes.log()[:, None].expand(-1, 3))

    def before(self, iteration: int) -> None:
        done = (iteration - 1) / max(1, self.settings.iterations - 1)
        means, medium = self.optimizers["means"].param_groups[0], self.medium_optimizer.param_groups[0]
        means["lr"] = self.settings.lr_means * self.own.lr_means_final**done / self.unit
        medium["lr"] = self.own.lr_medium * self.own.lr_medium_final**done

    def halvings(self, iteration: int) -> int:
        """How often the pictures are halved at this iteration."""
        return max(0, self.own.halvings - (iteration - 1) // self.scaled(self.own.halving_every))

    def render(self, view: View, iteration: int, with_depth: bool = False) -> tuple[Tensor, Tensor, dict]:
        factor = 1 if with_depth else 2 ** self.halvings(iteration)  # a guide of the depth has the views' own size
        width, height = max(1, view.width // factor), max(1, view.height // factor)
        K = torch.stack([view.K[0] * (width / view.width), view.K[1] * (height / view.height), view.K[2]])
        degree = self.schedule.sh_degree(iteration, self.settings.sh_degree)
        return render_through(
            self.gaussians, self.medium, self.unit, view.viewmat, K, width, height, degree, with_depth
        )

    def fitted(self, target: Tensor, picture: Tensor) -> Tensor:
        """The target at the size of a coarse picture: bilinear, values as they are, as published."""
        if target.shape == picture.shape:
            return target
        size = (picture.shape[0], picture.shape[1])
        small = interpolate(target.permute(2, 0, 1)[None], size, mode="bilinear", align_corners=False)
        return small[0].permute(1, 2, 0)

    def compare(self, rendered: Tensor, target: Tensor) -> Tensor:
        return watersplatting.regularised_loss(rendered, target, self.settings.lambda_dssim)

    def update(self, loss: Tensor, iteration: int, info: dict) -> None:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.medium.parameters(), self.own.clip_medium)
        for optimizer in (*self.optimizers.values(), self.medium_optimizer):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.density.observe(info, len(self.gaussians))
        torch.manual_seed(self.settings.seed + iteration)  # splitting draws: a function of the iteration alone
        if self.density.step(self.gaussians.parameters, self.optimizers, iteration):
            self._forget_moments()

    def _forget_moments(self) -> None:
        """As published: what the medium's optimizer remembers goes with every pass of the density control."""
        for moments in self.medium_optimizer.state.values():
            for name in ("exp_avg", "exp_avg_sq"):
                moments[name].zero_()

    # what stays

    def finite(self) -> bool:
        return super().finite() and all(bool(torch.isfinite(p).all()) for p in self.medium.parameters())

    @torch.no_grad()
    def log(self) -> dict:
        """The medium straight ahead of the first view."""
        ahead = self.medium(self.scene.views[0].viewmat[2, :3])
        named = {"colour": ahead.colour, "backscatter": ahead.backscatter, "attenuation": ahead.attenuation}
        return {"medium": {name: [round(v, 4) for v in value.tolist()] for name, value in named.items()}}

    def finished(self) -> Gaussians:
        tensors = {name: value.detach() for name, value in self.medium.state_dict().items()}
        tensors["unit"] = torch.tensor(self.unit)
        values = {name: value.detach() for name, value in self.gaussians.parameters.items()}
        return Gaussians(values, self.gaussians.display, tensors, "watersplatting")

    def state(self) -> dict:
        medium = {"parameters": self.medium.state_dict(), "optimizer": self.medium_optimizer.state_dict()}
        return {**super().state(), "medium": medium, "density": dict(self.density.state)}

    def restore(self, state: dict) -> None:
        super().restore(state)
        self.medium.load_state_dict(state["medium"]["parameters"])
        self.medium_optimizer.load_state_dict(state["medium"]["optimizer"])
        self.density.state = dict(state["density"])
