"""Training a controller: a fixed number of AdamW updates, the final iterate, no selection [supp. G].

Killed at any moment, the next run goes on from the last checkpoint and ends with the weights of an unbroken run:
batches depend on seed and step alone, and the checkpoint holds weights, both moments and the losses so far.
"""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch

from fujinsplat.compat.optim import AdamW, cosine, count_steps_where_they_are_read
from fujinsplat.controller import losses
from fujinsplat.controller.data import Observations, batch_at
from fujinsplat.controller.network import Controller
from fujinsplat.controller.presentations import presented
from fujinsplat.controller.store import read_tensors
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.progress import progress, say
from fujinsplat.core.settings import ControllerSettings
from fujinsplat.flow import probe_grid
from fujinsplat.flow.photometric import Target

TERMS = ("parameter", "reconstruction", "function")
LOOK_EVERY = 20  # steps between looks at the losses on a GPU


def train(
    observations: Observations,
    settings: ControllerSettings,
    objective: str = "label",
    checkpoint: Path | None = None,
    device: str = "cpu",
    on_step: Callable[[int], None] | None = None,
) -> tuple[Controller, torch.Tensor]:
    """The trained controller and its losses `[steps, 3]` (parameter, reconstruction, function terms, unweighted).

    `objective`: "label" as the paper; "reconstruction" switches the parameter term off. Observations drawn from actions
    are compared as functions instead of coefficients. `on_step` is called after every update.
    """
    scaled_to = observations.summary if settings.start == "scaled" else None
    controller = Controller.seeded(settings.seed, observations.K, observations.M, scaled_to)
    trainer = _Trainer(controller, observations, settings, objective, device)
    first = trainer.resume(checkpoint) if checkpoint else 0
    saved = time.monotonic()
    for step in progress(range(first, settings.steps), "controller", unit="step"):
        trainer.update(step)
        if on_step:
            on_step(step)
        if checkpoint and time.monotonic() - saved > settings.checkpoint_seconds and step + 1 < settings.steps:
            trainer.save(checkpoint, step + 1)
            saved = time.monotonic()
    return controller.cpu().eval(), trainer.losses.cpu()


class _Trainer:
    def __init__(self, controller, observations: Observations, settings, objective: str, device: str):
        self.controller, self.data, self.settings = controller.to(device).train(), observations, settings
        self.objective, self.device = objective, device
        # a half of the action that the labels do not use stays at zero, whatever the reconstruction term would like
        controller.curve_heads.requires_grad_(observations.curves)
        controller.coupling_head.requires_grad_(observations.couplings)
        self.parameters = [parameter for parameter in controller.parameters() if parameter.requires_grad]
        self.optimiser = AdamW(self.parameters, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
        self.losses = torch.zeros(settings.steps, len(TERMS), device=device)
        self.probes = probe_grid(dtype=torch.float32, device=device)
        own = settings.model_dump(mode="json", exclude={"checkpoint_seconds", "presentations"})
        # the kind of device, not which: a run may go on on another GPU
        described = [own, objective, observations.key, observations.K, observations.M, device.split(":")[0]]
        self.key = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def update(self, step: int) -> None:
        data, s = self.data, self.settings
        rows, presentations = batch_at(step, s.batch, len(data), s.seed)
        summary = presented(data.summary[rows], presentations).to(self.device)
        base, target, label = (t[rows].to(self.device) for t in (data.base, data.target, data.label))
        predicted = self.controller(summary)
        reconstruction = losses.reconstruction_loss(predicted, base, Target(target), data.K, data.M, s)
        parameter = function = predicted.new_zeros(())
        if self.objective == "reconstruction":
            total = reconstruction
        elif data.draws == "actions":
            function = losses.function_loss(predicted, label, self.probes, data.K, data.M)
            total = function + s.weight_reconstruction * reconstruction
        else:
            parameter = losses.parameter_loss(predicted, label, data.K, data.M, s.beta)
            total = parameter + s.weight_reconstruction * reconstruction
        self.optimiser.param_groups[0]["lr"] = s.lr * cosine(step, s.steps, s.lr_final)
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, s.clip)
        self.optimiser.step()
        self.losses[step] = torch.stack([parameter, reconstruction, function]).detach()
        if self.device == "cpu" or (step + 1) % LOOK_EVERY == 0 or step + 1 == s.steps:
            self.look_at(max(0, step + 1 - LOOK_EVERY), step + 1)

    def look_at(self, first: int, end: int) -> None:
        """Stop where a loss is no number. On a GPU this waits for it, so it is not done at every step."""
        bad = (~torch.isfinite(self.losses[first:end]).all(1)).nonzero()
        if len(bad):
            raise UserError(
                f"the controller's loss is not finite at step {first + int(bad[0])}; "
                "lower controller.lr or check the labels"
            )

    def save(self, path: Path, step: int) -> None:
        self.look_at(0, step)
        tensors = {"losses": self.losses.cpu()}
        for index, parameter in enumerate(self.parameters):
            state = self.optimiser.state[parameter]
            tensors[f"{index}.weight"] = parameter.detach().cpu()
            for moment in ("exp_avg", "exp_avg_sq", "step"):
                tensors[f"{index}.{moment}"] = state[moment].detach().cpu()
        write_tensors(path, tensors, {"key": self.key, "step": str(step)})

    def resume(self, path: Path) -> int:
        """The step to go on from: 0 without a checkpoint of exactly this run."""
        if not path.is_file():
            return 0
        try:
            tensors, notes = read_tensors(path)
        except UserError:
            return 0
        if notes.get("key") != self.key:
            return 0
        for index, parameter in enumerate(self.parameters):
            with torch.no_grad():
                parameter.copy_(tensors[f"{index}.weight"])
            moments = ("step", "exp_avg", "exp_avg_sq")
            self.optimiser.state[parameter] = {m: tensors[f"{index}.{m}"].to(parameter.device) for m in moments}
        count_steps_where_they_are_read(self.optimiser)
        self.losses = tensors["losses"].to(self.device)
        say(f"going on from step {notes['step']}")
        return int(notes["step"])
