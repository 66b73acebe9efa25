"""Labels with one half of the action switched off, for the component ablation [Sec. 4.2]."""

import torch

from fujinsplat.compat.optim import Adam
from fujinsplat.flow import apply, probe_grid
from fujinsplat.flow.layout import pack, split

STEPS, RATE, CHUNK = 150, 3e-2, 32


def only_curves(labels: torch.Tensor, K: int, M: int) -> torch.Tensor:
    """Labels `[B, P]` with their coupling part zero."""
    curves, couplings = split(labels, K, M)
    return pack(curves, torch.zeros_like(couplings))


def only_couplings(labels: torch.Tensor, K: int, M: int) -> torch.Tensor:
    """Labels `[B, P]` with zero curves, and couplings fitted to the full label's map on the probe grid.

    Adam from the label's own couplings, a fixed number of steps: deterministic, and each label independent of the rest
    of its batch because every one has its own sum in the loss.
    """
    probes = probe_grid(dtype=torch.float32)
    results = []
    for part in labels.float().split(CHUNK):
        curves, couplings = split(part, K, M)
        still = torch.zeros_like(curves)
        grid = probes.expand(len(part), -1, -1).contiguous()
        with torch.no_grad():
            target = apply(grid, part, K, M).clamp(0, 1)
        fitted = couplings.clone().requires_grad_(True)
        optimiser = Adam([fitted], lr=RATE)
        for step in range(STEPS):
            optimiser.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
            optimiser.zero_grad()
            residual = apply(grid, pack(still, fitted), K, M) - target
            residual.square().mean(dim=(1, 2)).sum().backward()
            optimiser.step()
        results.append(pack(still, fitted.detach()))
    return torch.cat(results).double()
