"""What a render is compared with: the views of a row's front, as the trainer sees them."""

from typing import Any, Protocol

from torch import Tensor

from fujinsplat.core.metrics import psnr
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.data import TrainingScene
from fujinsplat.splat.displays import CameraDisplay


class Targets(Protocol):
    """Loss of a view, and whatever moves with it. `model` is the model part's object (`GaussianField` or another)."""

    def loss(self, model: Any, picture: Tensor, alpha: Tensor, info: dict, index: int, iteration: int) -> Tensor: ...
    def target(self, index: int) -> Tensor: ...
    def after(self, model: Any, iteration: int) -> None: ...
    def quality(self) -> float: ...
    def log(self) -> dict: ...
    def summary(self) -> dict: ...
    def state(self) -> dict | None: ...
    def restore(self, state: dict | None) -> None: ...


class EncodedTargets:
    """Display-encoded pictures, developed with each view's action; a reconciler may move the actions [Sec. 3.4]."""

    def __init__(self, scene: TrainingScene, settings: SplatSettings, reconciler: Any | None):
        self.scene, self.settings, self.reconciler = scene, settings, reconciler
        self._last: tuple[Tensor, Tensor] | None = None

    def loss(self, model: Any, picture: Tensor, alpha: Tensor, info: dict, index: int, iteration: int) -> Tensor:
        if self.reconciler is not None and self.reconciler.moving(iteration):
            target = self.scene.develop(index, self.reconciler.actions()[index])
        else:
            target = self._constant(index)
        rendered, target = model.shown(picture), model.fitted(target, picture)
        self._last = rendered, target
        return model.compare(rendered, target)

    def target(self, index: int) -> Tensor:
        return self._constant(index)

    def _constant(self, index: int) -> Tensor:
        if self.reconciler is None:
            return self.scene.target(index, self.scene.actions)
        return self.scene.target(index, self.reconciler.actions)

    def after(self, model: Any, iteration: int) -> None:
        """The update is done: the reconciler's own step, where it may move."""
        if self.reconciler is None or not self.reconciler.moving(iteration):
            return
        self.reconciler.step()
        if self.reconciler.settled(iteration):
            self.scene.forget_targets()  # frozen from here on: develop each view once more

    def quality(self) -> float:
        """PSNR of the last compared pair, dB."""
        assert self._last is not None
        return psnr(*self._last)

    def log(self) -> dict:
        return {} if self.reconciler is None else self.reconciler.log()

    def summary(self) -> dict:
        """What stays of the reconciliation: each view's share of its own action, and the constraint's residual."""
        stems = [view.stem for view in self.scene.views]
        alpha = [1.0] * len(stems) if self.reconciler is None else self.reconciler.alpha.tolist()
        residual = 0.0 if self.reconciler is None else self.reconciler.residual()
        return {
            "delta": self.reconciler is not None,
            "alpha": dict(zip(stems, alpha, strict=True)),
            "residual": residual,
        }

    def state(self) -> dict | None:
        return None if self.reconciler is None else self.reconciler.state()

    def restore(self, state: dict | None) -> None:
        if self.reconciler is not None and state is not None:
            self.reconciler.restore(state)


class Light(Protocol):
    """Linear light of the views while training runs, as a front with a `light` gives it.

    Targets are camera-linear, white-balanced, times `gain`, at training size; they may be estimated again on the way
    from renders of the scene so far.
    """

    gain: float
    white_balance: Tensor
    base: Any  # the Base ISP that develops it for the display

    def loss(self, view: int, rendered: Tensor) -> Tensor: ...
    def targets(self, view: int) -> Tensor: ...
    def due(self, iteration: int, iterations: int) -> bool: ...
    def reestimate(self, render: Any) -> Any: ...
    def state(self) -> dict: ...
    def restore(self, state: dict) -> None: ...


class LinearTargets:
    """Unclipped linear light with weights: noise that clearing has amplified stays noise and does not become bias."""

    def __init__(self, scene: TrainingScene, light: Light, model: Any, settings: SplatSettings):
        self.scene, self.light, self.settings = scene, light, settings
        model.start_in(CameraDisplay(light.base, light.white_balance, light.gain))
        self._last: tuple[Tensor, Tensor] | None = None

    def loss(self, model: Any, picture: Tensor, alpha: Tensor, info: dict, index: int, iteration: int) -> Tensor:
        target = model.fitted(self.light.targets(index), picture)
        self._last = picture, target
        return model.compare(picture, target) if model.own_loss else self.light.loss(index, picture)

    def target(self, index: int) -> Tensor:
        return self.light.targets(index)

    def after(self, model: Any, iteration: int) -> None:
        """Estimate again where it is time, from renders of the scene as it now is."""
        if self.light.due(iteration + 1, self.settings.iterations):
            self.light.reestimate(lambda view: model.look(self.scene.views[view]))

    def quality(self) -> float:
        assert self._last is not None
        picture, target = self._last
        return psnr(picture.clamp(0, 1), target.clamp(0, 1))

    def log(self) -> dict:
        return {}

    def summary(self) -> dict:
        return {"delta": False, "alpha": {view.stem: 1.0 for view in self.scene.views}, "residual": 0.0}

    def state(self) -> dict | None:
        return self.light.state()

    def restore(self, state: dict | None) -> None:
        if state is not None:
            self.light.restore(state)
