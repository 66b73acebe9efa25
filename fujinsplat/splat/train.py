"""Reconstruct one scene from its developed source views [Sec. 3.4, supp. G]. Reads top to bottom."""

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fujinsplat.config import SplatSettings
from fujinsplat.errors import UserError
from fujinsplat.files import sha256
from fujinsplat.optim import Adam
from fujinsplat.progress import progress, say
from fujinsplat.splat.checkpoint import Checkpoints, StopRequest
from fujinsplat.splat.data import TrainingScene
from fujinsplat.splat.delta import DeltaISP
from fujinsplat.splat.densify import strategy
from fujinsplat.splat.loss import display, photometric_loss, psnr
from fujinsplat.splat.model import NAMES, Gaussians
from fujinsplat.splat.schedule import Schedule

LOG_ENTRIES = 100  # lines of the training log per run
NOT_OF_THE_RESULT = {"checkpoint_seconds", "memory_mb", "bake_steps"}


@dataclass(frozen=True)
class Inputs:
    """The files of one run; `delta` says whether the delta-ISP reconciles the views."""

    developed: Path
    cameras: Path
    points: Path
    delta: bool


@dataclass
class Trained:
    gaussians: Gaussians
    alpha: dict[str, float]  # kept share of each view's displacement
    delta_residual: float
    checkpoints: Checkpoints  # with the log; the caller removes it when everything is written


def train(inputs: Inputs, settings: SplatSettings, checkpoints: Path, device: str) -> Trained:
    """Train, resuming from `checkpoints` when they hold this very run. The training log grows in that folder."""
    scene = TrainingScene(inputs.developed, inputs.cameras, inputs.points, settings, device)
    saved = Checkpoints(checkpoints, _fingerprint(inputs, settings, device))
    return _Run(scene, settings, inputs.delta, saved).to_the_end()


def _fingerprint(inputs: Inputs, settings: SplatSettings, device: str) -> dict:
    files = {name: sha256(getattr(inputs, name)) for name in ("developed", "cameras", "points")}
    values = {k: v for k, v in settings.model_dump(mode="json").items() if k not in NOT_OF_THE_RESULT}
    return {"files": files, "settings": values, "delta": inputs.delta, "device": device.split(":")[0]}


class _Run:
    def __init__(self, scene: TrainingScene, settings: SplatSettings, delta: bool, checkpoints: Checkpoints):
        self.scene, self.settings, self.checkpoints = scene, settings, checkpoints
        self.schedule = Schedule.of(settings)
        self.gaussians = Gaussians.from_points(scene.xyz, scene.rgb_encoded, settings.sh_degree, scene.device)
        self.optimizers = self._optimizers()
        self.strategy = strategy(settings, self.schedule)
        self.densification = self.strategy.initialize_state(scene_scale=scene.extent)
        # without the delta-ISP every view keeps the action it was developed with
        self.delta = DeltaISP(scene.actions, settings.lr_alpha) if delta else None
        self.iteration = 0
        self._restore(checkpoints.load(scene.device))

    # one iteration

    def step(self) -> tuple[float, int, Tensor, Tensor]:
        """Render one view, compare, update; returns (loss, view index, render, target), pictures encoded."""
        iteration = self.iteration + 1
        index = self._view_of(iteration)
        view = self.scene.views[index]
        self._set_position_rate(iteration)
        moving = self.delta is not None and self.schedule.in_delta_window(iteration)

        target = self.scene.develop(index, self.delta.actions()[index]) if moving else self._constant_target(index)
        degree = self.schedule.sh_degree(iteration, self.settings.sh_degree)
        image_linear, _, info = self.gaussians.render(view.viewmat, view.K, view.width, view.height, degree)
        rendered = display(image_linear)
        loss = photometric_loss(rendered, target, self.settings.lambda_dssim)

        densifying = iteration <= self.schedule.densify_until
        if densifying:
            self.strategy.step_pre_backward(
                self.gaussians.parameters, self.optimizers, self.densification, iteration, info
            )
        loss.backward()
        for optimizer in self.optimizers.values():
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if moving:
            self.delta.step()
            if iteration == self.schedule.delta_until:
                self.scene.forget_targets()  # alpha is frozen from here on: develop each view once more
        if densifying:
            torch.manual_seed(self.settings.seed + iteration)  # splitting draws: a function of the iteration alone
            self.strategy.step_post_backward(
                self.gaussians.parameters, self.optimizers, self.densification, iteration, info
            )
        self.iteration = iteration
        return float(loss.detach()), index, rendered, target

    def _constant_target(self, index: int) -> Tensor:
        if self.delta is None:
            return self.scene.target(index, self.scene.actions)
        with torch.no_grad():
            return self.scene.target(index, self.delta.actions())

    def _view_of(self, iteration: int) -> int:
        """Views in a fresh random order for each pass over the scene; a function of seed and iteration alone."""
        turn, place = divmod(iteration - 1, len(self.scene))
        generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + turn)
        return int(torch.randperm(len(self.scene), generator=generator)[place])

    def _set_position_rate(self, iteration: int) -> None:
        """3DGS: the positions' rate decays exponentially over the run, in units of the scene's extent."""
        s, done = self.settings, (iteration - 1) / max(1, self.settings.iterations - 1)
        rate = s.lr_means ** (1 - done) * s.lr_means_final**done
        self.optimizers["means"].param_groups[0]["lr"] = rate * self.densification["scene_scale"]

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        s = self.settings
        rates = dict(zip(NAMES, (s.lr_means, s.lr_quats, s.lr_scales, s.lr_opacities, s.lr_sh0, s.lr_shn), strict=True))
        return {name: Adam([self.gaussians.parameters[name]], lr=rates[name], eps=1e-15, fused=True) for name in NAMES}

    # the run

    def to_the_end(self) -> Trained:
        s, started, last_save = self.settings, time.monotonic(), time.monotonic()
        first, log_every = self.iteration, max(1, s.iterations // LOG_ENTRIES)
        bar = progress(what="Gaussians", total=s.iterations)
        bar.update(self.iteration)
        with StopRequest() as stop:
            while self.iteration < s.iterations:
                loss, index, rendered, target = self.step()
                bar.update(1)
                logging = self.iteration % log_every == 0 or self.iteration == s.iterations
                if not loss < 10 or (logging and not self._finite()):
                    raise UserError(self._diverged(loss, index))
                if logging:
                    seconds = time.monotonic() - started
                    self._log(loss, index, psnr(rendered, target), seconds, (self.iteration - first) / seconds)
                if stop.signal or time.monotonic() - last_save > s.checkpoint_seconds:
                    self.checkpoints.save(self.iteration, self._state())
                    last_save = time.monotonic()
                if stop.signal:
                    say(f"stopped by signal {stop.signal}; {self.checkpoints.where()}")
                    sys.exit(128 + stop.signal)
        bar.close()
        if self.checkpoints.saved_iteration < self.iteration:  # what follows (the export) may be killed as well
            self.checkpoints.save(self.iteration, self._state())
        return self._result()

    def _result(self) -> Trained:
        alpha = [1.0] * len(self.scene) if self.delta is None else self.delta.alpha.tolist()
        stems = [view.stem for view in self.scene.views]
        residual = 0.0 if self.delta is None else self.delta.residual()
        return Trained(self.gaussians, dict(zip(stems, alpha, strict=True)), residual, self.checkpoints)

    def _finite(self) -> bool:
        return all(bool(torch.isfinite(value.sum())) for value in self.gaussians.parameters.values())

    def _diverged(self, loss: float, index: int) -> str:
        return (
            f"training diverged at iteration {self.iteration}, view {self.scene.views[index].stem!r} (loss {loss}, "
            f"{len(self.gaussians)} Gaussians); {self.checkpoints.where()}; look at that view's developed picture, "
            "or lower settings.splat.lr_means and run again"
        )

    def _log(self, loss: float, index: int, view_psnr: float, seconds: float, rate: float) -> None:
        entry = {
            "iteration": self.iteration,
            "loss": loss,
            "view": self.scene.views[index].stem,
            "psnr": view_psnr,
            "gaussians": len(self.gaussians),
            "iterations_per_second": round(rate, 2),
            "seconds": round(seconds, 2),
            "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        }
        if self.delta is not None:
            alpha = self.delta.alpha.detach()
            entry |= {
                "alpha_mean": float(alpha.mean()),
                "alpha_min": float(alpha.min()),
                "alpha_max": float(alpha.max()),
            }
            entry["delta_residual"] = self.delta.residual()
        self.checkpoints.log(entry)

    # saving and resuming

    def _state(self) -> dict:
        return {
            "parameters": {name: value.detach() for name, value in self.gaussians.parameters.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "densification": dict(self.densification),
            "delta": None if self.delta is None else self.delta.state(),
        }

    def _restore(self, state: dict | None) -> None:
        if state is None:
            return
        self.iteration = state["iteration"]
        self.gaussians = Gaussians(state["parameters"])
        self.optimizers = self._optimizers()
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.densification = state["densification"]
        if self.delta is not None:
            self.delta.restore(state["delta"])
        say(f"continuing at iteration {self.iteration} of {self.settings.iterations}")
