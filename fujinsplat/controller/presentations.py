"""The eight spatial presentations of a view, which all have the same label [supp. F]: in training and in prediction."""

import torch
from torch import Tensor

from fujinsplat.controller.network import Controller

PRESENTATIONS = 8  # four rotations, each with and without a flip


def presented(summary: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """Summaries `[B, 3, S, S]`, each turned and flipped as `which [B]` in 0 … 7 says. The label does not change."""
    result = torch.empty_like(summary)
    for presentation in range(PRESENTATIONS):
        chosen = which == presentation
        if chosen.any():
            turned = torch.rot90(summary[chosen], presentation % 4, dims=(2, 3))
            result[chosen] = turned.flip(3) if presentation >= 4 else turned
    return result


@torch.inference_mode()
def predict(controller: Controller, summaries: Tensor, presentations: int | None = None, batch: int = 64) -> Tensor:
    """Actions `[V, P]` of summaries `[V, 3, S, S]`: the mean prediction over the first `presentations` of the eight.

    Turning a view changes nothing about its smoke, so what differs between the eight predictions is error; the
    published controller looks once. Left out, it is as the controller's file says (`controller.presentations`).
    """
    device = next(controller.parameters()).device
    count = int(presentations or getattr(controller, "notes", {}).get("presentations", PRESENTATIONS))
    actions = []
    for part in summaries.to(device).split(batch):
        turns = [presented(part, torch.full((len(part),), turn, device=device)) for turn in range(count)]
        actions.append(torch.stack([controller(turn) for turn in turns]).mean(dim=0).cpu())
    return torch.cat(actions)
