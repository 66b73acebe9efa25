"""The delta-ISP: one scalar per source view that says how much of the controller's own disagreement to keep [Sec. 3.4].

With the frozen predictions p_i, their mean p and displacements d_i = p_i - p, view i is developed with p + Delta_i,
where

    Delta_i = alpha_i d_i - (1/N) sum_j alpha_j d_j                                                       (Eq. 4)

so the scene-wide action p is never moved: sum_i Delta_i = 0. Starting from alpha = 0, the photometric objective moves
alpha (Eq. 5) by Adam, and alpha is clamped to [0, 1] after each step. Nothing of this exists at unseen poses.
"""

import torch
from torch import Tensor

from fujinsplat.optim import Adam


class DeltaISP:
    """Per-view scalars on centred displacements. float64: the zero mean has to hold to 1e-9 at every forward pass."""

    def __init__(self, actions: Tensor, lr: float):
        """`actions [V, P]`: the controller's predictions for the source views."""
        actions = actions.to(torch.float64)
        self.shared = actions.mean(0)
        self.displacements = actions - self.shared
        self.alpha = torch.zeros(len(actions), dtype=torch.float64, device=actions.device, requires_grad=True)
        self.optimizer = Adam([self.alpha], lr=lr)

    def deltas(self) -> Tensor:
        """Delta `[V, P]`, zero mean over views."""
        kept = self.alpha[:, None] * self.displacements
        return kept - kept.mean(0)

    def actions(self) -> Tensor:
        """p + Delta `[V, P]`, float32: what each view is developed with. Differentiable in alpha."""
        return (self.shared + self.deltas()).to(torch.float32)

    def step(self) -> None:
        """One update of alpha from the gradients of a backward pass."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            self.alpha.clamp_(0, 1)

    def residual(self) -> float:
        """Largest coefficient of the mean Delta: the distance from the zero-mean constraint."""
        with torch.no_grad():
            return float(self.deltas().mean(0).abs().max()) if self.displacements.numel() else 0.0

    def state(self) -> dict:
        return {"alpha": self.alpha.detach().clone(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: dict) -> None:
        with torch.no_grad():
            self.alpha.copy_(state["alpha"])
        self.optimizer.load_state_dict(state["optimizer"])
