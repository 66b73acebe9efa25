"""From shards to files: the controller, its losses and their figure."""

from pathlib import Path

import torch

from fujinsplat.controller.data import load_observations
from fujinsplat.controller.store import save
from fujinsplat.controller.training import TERMS, train
from fujinsplat.core.files import atomic_file
from fujinsplat.core.progress import say
from fujinsplat.core.runtime import pick_device
from fujinsplat.core.settings import ControllerSettings


def train_to_files(
    shards: list[Path],
    out: Path,
    losses: Path | None,
    figure: Path | None,
    settings: ControllerSettings,
    device: str,
) -> None:
    """Train, write the controller and what else is asked for; the checkpoint lies beside `out` until then."""
    input, objective = settings.input, settings.objective
    observations = load_observations(shards, input)
    checkpoint = out.with_name(f".{out.name}.checkpoint")
    device = pick_device(device)
    say(
        f"{len(observations)} observations, K = {observations.K}, M = {observations.M}; "
        f"{settings.steps} steps on {device}"
    )
    controller, history = train(observations, settings, objective, checkpoint, device)
    if losses:
        write_losses(losses, history)
    if figure:
        draw_losses(figure, history, objective)
    save(
        controller,
        out,
        input=input,
        objective=objective,
        draws=observations.draws,
        steps=str(settings.steps),
        presentations=str(settings.presentations),
    )
    checkpoint.unlink(missing_ok=True)


def write_losses(path: Path, history: torch.Tensor) -> None:
    """One line per step, the terms unweighted."""
    with atomic_file(path) as temporary:
        rows = [",".join([str(step), *(f"{value:.7g}" for value in row)]) for step, row in enumerate(history.tolist())]
        temporary.write_text("\n".join([",".join(["step", *TERMS]), *rows]) + "\n")


def draw_losses(path: Path, history: torch.Tensor, objective: str) -> None:
    """Loss curves on a logarithmic scale, each step and a running median."""
    from fujinsplat.controller.figure import loss_figure

    loss_figure(path, history.numpy(), objective)
