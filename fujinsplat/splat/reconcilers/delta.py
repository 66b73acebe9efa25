"""The delta-ISP: one scalar per source view that says how much of the controller's own disagreement to keep [Sec. 3.4].

With the frozen predictions p_i, their mean p and displacements d_i = p_i - p, view i is developed with p + Delta_i,
where

    Delta_i = alpha_i d_i - (1/N) sum_j alpha_j d_j                                                       (Eq. 4)

so the scene-wide action p is never moved: sum_i Delta_i = 0. Starting from alpha = 0, the photometric objective moves
alpha (Eq. 5) by Adam, and alpha is clamped to [0, 1] after each step. Nothing of this exists at unseen poses.
"""

from typing import TYPE_CHECKING

from pydantic import model_validator

from fujinsplat.core.parts import Reconcile
from fujinsplat.core.settings import PAPER_ITERATIONS, Positive, Settings, Steps, setting

if TYPE_CHECKING:
    from torch import Tensor


class DeltaSettings(Settings):
    """The delta-ISP: when and how fast its scalars move."""

    after: Steps = setting(13000, "first iteration of its window minus one, of 18,000; scales with the run [Sec. 4]")
    until: Steps = setting(16000, "last iteration of its window, of 18,000; scales with the run [Sec. 4]")
    lr_alpha: Positive = setting(5e-3, "Adam's learning rate [supp. G]")

    @model_validator(mode="after")
    def _window(self) -> "DeltaSettings":
        if not self.after <= self.until:
            raise ValueError(f"after ({self.after}) must not lie behind until ({self.until})")
        return self


class DeltaISP:
    """Per-view scalars on centred displacements. float64: the zero mean has to hold to 1e-9 at every forward pass."""

    def __init__(self, actions: "Tensor", settings: DeltaSettings, iterations: int):
        """`actions [V, P]`: the controller's predictions for the source views; `iterations`: length of the run."""
        import torch

        from fujinsplat.compat.optim import Adam

        share = iterations / PAPER_ITERATIONS
        self.window = range(round(settings.after * share) + 1, round(settings.until * share) + 1)
        actions = actions.to(torch.float64)
        self.shared = actions.mean(0)
        self.displacements = actions - self.shared
        self.alpha = torch.zeros(len(actions), dtype=torch.float64, device=actions.device, requires_grad=True)
        self.optimizer = Adam([self.alpha], lr=settings.lr_alpha)

    def moving(self, iteration: int) -> bool:
        """Whether the scalars may move at `iteration` (from 1)."""
        return iteration in self.window

    def settled(self, iteration: int) -> bool:
        """Whether this was the last iteration at which they moved: targets are constant again from here on."""
        return bool(self.window) and iteration == self.window[-1]

    def deltas(self) -> "Tensor":
        """Delta `[V, P]`, zero mean over views."""
        kept = self.alpha[:, None] * self.displacements
        return kept - kept.mean(0)

    def actions(self) -> "Tensor":
        """p + Delta `[V, P]`, float32: what each view is developed with. Differentiable in alpha."""
        return (self.shared + self.deltas()).float()

    def step(self) -> None:
        """One update of alpha from the gradients of a backward pass."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.alpha.data.clamp_(0, 1)

    def residual(self) -> float:
        """Largest coefficient of the mean Delta: the distance from the zero-mean constraint."""
        return float(self.deltas().detach().mean(0).abs().max()) if self.displacements.numel() else 0.0

    def log(self) -> dict:
        """What a line of the training log says of it."""
        alpha = self.alpha.detach()
        means = {"alpha_mean": float(alpha.mean()), "alpha_min": float(alpha.min()), "alpha_max": float(alpha.max())}
        return {**means, "delta_residual": self.residual()}

    def state(self) -> dict:
        return {"alpha": self.alpha.detach().clone(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: dict) -> None:
        self.alpha.data.copy_(state["alpha"])
        self.optimizer.load_state_dict(state["optimizer"])


def marks(settings) -> frozenset[str]:
    return frozenset({"delta"})


def make(actions: "Tensor", settings: DeltaSettings, iterations: int) -> DeltaISP:
    return DeltaISP(actions, settings, iterations)


PART = Reconcile(name="delta", run=make, Settings=DeltaSettings, marks=marks, own_actions=True)
