"""SeaSplat in training: a run without the medium, the switch, and from there on turns of medium and Gaussians."""

from typing import Any

import torch
from torch import Tensor

from fujinsplat.compat.optim import Adam
from fujinsplat.splat.data import TrainingScene, View
from fujinsplat.splat.media import seasplat
from fujinsplat.splat.media.plain import PlainField, random_views
from fujinsplat.splat.media.seasplat import SeaMedium, view_depth
from fujinsplat.splat.model import Gaussians


def render_with_depth(gaussians: Gaussians, viewmat: Tensor, K: Tensor, width: int, height: int):
    """(clean picture `[H, W, 3]`, alpha, depth in [0, 1] within the view, info), from one rasterisation."""
    clean, alpha, info = gaussians.render(viewmat, K, width, height, with_depth=True)
    return clean, alpha, view_depth(info["depth"], alpha), info


class SeaField(PlainField):
    """Gaussians and nine numbers. After the switch the medium moves only in turns of its own."""

    own_loss = True
    rates = "settings.splat.lr_means or settings.seasplat.lr_medium"

    def __init__(self, scene: TrainingScene, settings: Any, own: Any):
        super().__init__(scene, settings, own)
        self.medium = SeaMedium(settings.seed).to(scene.device)
        self.medium_optimizer = Adam(self.medium.parameters(), lr=own.lr_medium)
        self.switch = self.scaled(own.switch) if own.switch else 0
        self.iteration = 0
        self._rendered: tuple[Tensor, Tensor, Tensor] | None = None

    # one iteration

    def before(self, iteration: int) -> None:
        self.iteration = iteration
        super().before(iteration)
        if iteration == self.switch + 1:
            self.medium.switch()
            self._turns(self._medium_step, self.scaled(self.own.medium_start), iteration)
            self._turns(self._colour_step, self.scaled(self.own.colour_start), -iteration)
        elif iteration > self.switch and iteration % self.scaled(self.own.medium_every) == 0:
            self._turns(self._medium_step, self.scaled(self.own.medium_steps), iteration)

    def render(self, view: View, iteration: int, with_depth: bool = True) -> tuple[Tensor, Tensor, dict]:
        clean, alpha, depth, info = render_with_depth(self.gaussians, view.viewmat, view.K, view.width, view.height)
        self._rendered = clean, alpha, depth
        picture = self.medium(clean, depth) if iteration > self.switch else self.medium.before(clean, alpha)
        return picture, alpha, info

    def compare(self, rendered: Tensor, target: Tensor) -> Tensor:
        assert self._rendered is not None
        clean, alpha, depth = self._rendered
        return self._loss(clean, alpha, depth, target)

    def _loss(self, clean: Tensor, alpha: Tensor, depth: Tensor, target: Tensor) -> Tensor:
        losses = seasplat.loss_after if self.iteration > self.switch else seasplat.loss_before
        return losses(self.medium, clean, alpha, depth, target, self.settings.lambda_dssim)[0]

    def update(self, loss: Tensor, iteration: int, info: dict) -> None:
        super().update(loss, iteration, info)
        if iteration <= self.switch:
            self.medium_optimizer.step()  # the background alone has a gradient
        self.medium_optimizer.zero_grad(set_to_none=True)

    # turns beside the run's iterations

    def _turns(self, step, count: int, iteration: int) -> None:
        for index in random_views(
            self.settings.seed, abs(iteration) + (1 << 30) * (iteration < 0), count, len(self.scene)
        ):
            step(self.scene.views[index], self.targets.target(index))

    def _medium_step(self, view: View, target: Tensor) -> None:
        with torch.no_grad():
            clean, alpha, depth, _ = render_with_depth(self.gaussians, view.viewmat, view.K, view.width, view.height)
        self._loss(clean, alpha, depth, target).backward()
        self.medium_optimizer.step()
        self.medium_optimizer.zero_grad(set_to_none=True)

    def _colour_step(self, view: View, target: Tensor) -> None:
        rendered = render_with_depth(self.gaussians, view.viewmat, view.K, view.width, view.height)
        self._loss(*rendered[:3], target).backward()
        self.optimizers["sh0"].step()
        for optimizer in (*self.optimizers.values(), self.medium_optimizer):
            optimizer.zero_grad(set_to_none=True)

    # what stays

    def finite(self) -> bool:
        return super().finite() and all(bool(torch.isfinite(p).all()) for p in self.medium.parameters())

    def log(self) -> dict:
        names = ("attenuation", "backscatter", "veil")
        found = {name: [round(v, 4) for v in getattr(self.medium, name).tolist()] for name in names}
        return {"medium": found} if self.iteration > self.switch else {}

    def finished(self) -> Gaussians:
        tensors = {name: value.detach() for name, value in self.medium.state_dict().items()}
        values = {name: value.detach() for name, value in self.gaussians.parameters.items()}
        return Gaussians(values, self.gaussians.display, tensors, "seasplat")

    def state(self) -> dict:
        medium = {"parameters": self.medium.state_dict(), "optimizer": self.medium_optimizer.state_dict()}
        return {**super().state(), "medium": medium}

    def restore(self, state: dict) -> None:
        super().restore(state)
        self.medium.load_state_dict(state["medium"]["parameters"])
        self.medium_optimizer.load_state_dict(state["medium"]["optimizer"])
