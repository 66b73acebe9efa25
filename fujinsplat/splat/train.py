"""Reconstruct one scene from its developed source views [Sec. 3.4, supp. G]. Reads top to bottom.

What is optimised is the row's model part, what it is compared with follows from the row's front and reconcile parts;
here is the loop they share, with its order of views, its log and its checkpoints.
"""

import math
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import checksum
from fujinsplat.core.progress import progress, say
from fujinsplat.core.settings import Settings, SplatSettings
from fujinsplat.core.versions import processor
from fujinsplat.splat.checkpoint import Checkpoints, StopRequest
from fujinsplat.splat.data import TrainingScene
from fujinsplat.splat.guide import DepthGuide
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.models import MODELS
from fujinsplat.splat.reconcilers import RECONCILERS
from fujinsplat.splat.targets import EncodedTargets, LinearTargets, Targets
from fujinsplat.views.fronts import FRONTS

LOG_ENTRIES = 100  # lines of the training log per run
ABSURD = 10  # a photometric loss beyond this has diverged; a model's own loss may be of any size
LOOK_EVERY = 20  # iterations between looks at the losses on a GPU: each look waits for it
NOT_OF_THE_RESULT = {"checkpoint_seconds", "memory_mb", "bake_steps"}


@dataclass(frozen=True)
class Inputs:
    """The files of one run by name: `views`, `developed`, `cameras`, `points`, and what else the row's parts open."""

    paths: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]

    @property
    def points(self) -> Path:
        """The points it starts from: the dataset's, or those of the smoky views."""
        return self.paths["points"] if "points" in self.paths else self.paths["view_points"]

    def checksums(self) -> dict[str, str]:
        return {name: checksum(path) for name, path in sorted(self.paths.items())}


@dataclass(frozen=True)
class Composition:
    """The parts of a row that training runs, by name, and the settings of each."""

    splat: SplatSettings
    front: str = "base"
    model: str = "gaussians"
    reconcile: str = "none"
    own: tuple[tuple[str, Settings], ...] = ()  # settings of parts that have some
    smoke: Settings | None = None  # of a front that gives linear light

    @classmethod
    def of(cls, settings: Any, front: str, model: str, reconcile: str) -> "Composition":
        """The parts by name, with their blocks of `settings` (all stages' and parts')."""
        parts = (FRONTS[front], MODELS[model], RECONCILERS[reconcile])
        own = tuple((part.name, getattr(settings, part.name)) for part in parts if part.has_settings)
        return cls(settings.splat, front, model, reconcile, own, settings.smoke if parts[0].light else None)

    def settings_of(self, part: Any) -> Settings:
        return dict(self.own).get(part.name) or part.Settings()

    def described(self) -> dict:
        """Everything of it that the result depends on."""
        values = {k: v for k, v in self.splat.model_dump(mode="json").items() if k not in NOT_OF_THE_RESULT}
        own = {name: settings.model_dump(mode="json") for name, settings in self.own}
        parts = {"front": self.front, "model": self.model, "reconcile": self.reconcile}
        smoke = self.smoke.model_dump(mode="json") if self.smoke else None
        return {"settings": values, **parts, "own": own, "smoke": smoke}


@dataclass
class Trained:
    gaussians: Gaussians
    iterations: int
    summary: dict  # what stays of the reconciliation
    checkpoints: Checkpoints  # with the log; the caller removes it when everything is written


def train(inputs: Inputs, parts: Composition, checkpoints: Path, device: str) -> Trained:
    """Train, resuming from `checkpoints` when they hold this very run. The training log grows in that folder."""
    files = (inputs["views"], inputs["developed"], inputs["cameras"], inputs.points)
    front, model, reconcile = FRONTS[parts.front], MODELS[parts.model], RECONCILERS[parts.reconcile]
    own = parts.settings_of(model)
    splat = model.budget(parts.splat, own)
    scene = TrainingScene(*files, splat, device)
    trainee = model.run(scene, splat, own)
    if front.light is not None:
        light = front.light(inputs.paths, scene.cameras, scene.xyz, parts.smoke, device)
        targets: Targets = LinearTargets(scene, light, trainee, splat)
    else:
        reconciler = reconcile.run(scene.actions, parts.settings_of(reconcile), splat.iterations)
        targets = EncodedTargets(scene, splat, reconciler)
    trainee.targets = targets
    guide = DepthGuide.of(scene, splat)
    fingerprint = {"files": inputs.checksums(), **parts.described(), "device": device.split(":")[0]}
    return _Run(scene, splat, trainee, targets, guide, Checkpoints(checkpoints, fingerprint)).to_the_end()


class _Run:
    def __init__(
        self,
        scene: TrainingScene,
        settings: SplatSettings,
        model: Any,
        targets: Targets,
        guide: DepthGuide | None,
        checkpoints: Checkpoints,
    ):
        self.scene, self.settings, self.checkpoints = scene, settings, checkpoints
        self.model, self.targets, self.guide = model, targets, guide
        self.iteration = 0
        self._restore(checkpoints.load(scene.device))

    def step(self) -> tuple[torch.Tensor, int]:
        """Render one view, compare, update; returns (loss, view index). Nothing in it waits for a GPU."""
        iteration = self.iteration + 1
        index = self._view_of(iteration)
        view = self.scene.views[index]
        self.model.before(iteration)
        guided = self.guide is not None and iteration % self.settings.depth_every == 0
        picture, alpha, info = self.model.render(view, iteration, with_depth=guided)
        loss = self.targets.loss(self.model, picture, alpha, info, index, iteration)
        penalties = [self.model.penalty(view, picture, alpha, info, iteration)]
        if self.guide is not None and guided:
            penalties.append(self.guide.penalty(index, info["depth"], alpha))
        self.model.update(sum((p for p in penalties if p is not None), start=loss), iteration, info)
        self.targets.after(self.model, iteration)
        self.iteration = iteration
        return loss.detach(), index

    def _view_of(self, iteration: int) -> int:
        """Views in a fresh random order for each pass over the scene; a function of seed and iteration alone."""
        turn, place = divmod(iteration - 1, len(self.scene))
        generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + turn)
        return int(torch.randperm(len(self.scene), generator=generator)[place])

    def to_the_end(self) -> Trained:
        s, started, last_save = self.settings, time.monotonic(), time.monotonic()
        first, log_every = self.iteration, max(1, s.iterations // LOG_ENTRIES)
        look_every = LOOK_EVERY if gpu.holds(self.scene.actions) else 1
        recent: list[tuple[int, int, torch.Tensor]] = []  # iteration, view, loss: not yet looked at
        bar = progress(what="Gaussians", total=s.iterations)
        bar.update(self.iteration)
        with StopRequest() as stop:
            while self.iteration < s.iterations:
                loss, index = self.step()
                recent.append((self.iteration, index, loss))
                bar.update(1)
                logging = self.iteration % log_every == 0 or self.iteration == s.iterations
                saving = stop.signal or time.monotonic() - last_save > s.checkpoint_seconds
                if logging or saving or len(recent) >= look_every:
                    latest = self._look_at(recent, closely=logging or bool(saving))
                if logging:
                    seconds = time.monotonic() - started
                    self._log(latest, index, seconds, (self.iteration - first) / seconds)
                if saving:
                    self.checkpoints.save(self.iteration, self._state())
                    last_save = time.monotonic()
                if stop.signal:
                    say(f"stopped by signal {stop.signal}; {self.checkpoints.where()}")
                    sys.exit(128 + stop.signal)
        bar.close()
        if self.checkpoints.saved_iteration < self.iteration:  # what follows (the export) may be killed as well
            self.checkpoints.save(self.iteration, self._state())
        return Trained(self.model.finished(), self.iteration, self.targets.summary(), self.checkpoints)

    def _look_at(self, recent: list[tuple[int, int, torch.Tensor]], closely: bool) -> float:
        """The last of the recent losses; stops at the first that is no number, or absurd. `closely`: parameters too."""
        losses = torch.stack([loss for _, _, loss in recent]).tolist()
        bound = math.inf if self.model.own_loss else ABSURD
        for (iteration, index, _), loss in zip(recent, losses, strict=True):
            if not loss < bound:
                raise UserError(self._diverged(loss, index, iteration))
        if closely and not self.model.finite():
            raise UserError(self._diverged(losses[-1], recent[-1][1], self.iteration))
        recent.clear()
        return losses[-1]

    def _diverged(self, loss: float, index: int, iteration: int) -> str:
        return (
            f"training diverged at iteration {iteration}, view {self.scene.views[index].stem!r} (loss {loss}, "
            f"{len(self.model.gaussians)} Gaussians); {self.checkpoints.where()}; look at that view's picture, "
            f"or lower {self.model.rates} and run again"
        )

    def _log(self, loss: float, index: int, seconds: float, rate: float) -> None:
        self.checkpoints.log(
            {
                "iteration": self.iteration,
                "loss": loss,
                "view": self.scene.views[index].stem,
                "psnr": self.targets.quality(),
                "gaussians": len(self.model.gaussians),
                "iterations_per_second": round(rate, 2),
                "seconds": round(seconds, 2),
                "processor": processor(),
                "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
                **gpu.peak_mb(self.scene.device),
                **self.model.log(),
                **self.targets.log(),
            }
        )

    # saving and resuming

    def _state(self) -> dict:
        return {"model": self.model.state(), "targets": self.targets.state()}

    def _restore(self, state: dict | None) -> None:
        if state is None:
            return
        self.iteration = state["iteration"]
        self.model.restore(state["model"])
        self.targets.restore(state["targets"])
        say(f"continuing at iteration {self.iteration} of {self.settings.iterations}")
