"""Calibrating a scene's Base ISP: the initial state, 100 back-only updates, 400 joint ones (supplement B)."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fujinsplat.compat.optim import Adam
from fujinsplat.core.progress import progress
from fujinsplat.core.settings import IspSettings
from fujinsplat.isp import fused, fused_terms, objective, reference
from fujinsplat.isp.initial import initial_state
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.samples import Samples, Views, ViewSamples, take


@dataclass
class Batch:
    """One update's reading, on the device: pixels first, patches behind them, then the Jacobian's probes."""

    raw: Tensor  # [pixels + patches * side^2 + 4 * jacobian pixels, 3] camera-linear
    target: Tensor  # [pixels, 3] encoded camera RGB
    patch_target: Tensor  # [patches, 3] encoded means
    patch_pixels: int

    @property
    def seen(self) -> int:
        """How many pixels the photometric and range terms look at."""
        return len(self.target) + len(self.patch_target) * self.patch_pixels


@dataclass
class Terms:
    """What the objective compares with and draws from beside the batch."""

    initial_front: Tensor  # [3, 3], for `jacobian: front`
    generator: torch.Generator  # of the drawn differences

    @classmethod
    def of(cls, base: BaseISP, settings: IspSettings) -> "Terms":
        return cls(base.front_matrix().detach(), torch.Generator().manual_seed(settings.seed))


@dataclass
class Course:
    """How a calibration went: the photometric loss of every update."""

    losses: list[float] = field(default_factory=list)


def batch_of(view: ViewSamples, turn: int, settings: IspSettings, device: str | torch.device) -> Batch:
    pixels = torch.from_numpy(view.pixels_raw[turn])
    patches = torch.from_numpy(view.patches_raw)
    probes = objective.probe(pixels[: settings.jacobian_pixels], settings.jacobian_step)
    return Batch(
        torch.cat([pixels, patches.reshape(-1, 3), probes]).to(device),
        torch.from_numpy(view.pixels_rgb[turn]).to(device).float() / 255,
        torch.from_numpy(view.patches_rgb).to(device).float().mean(dim=1) / 255,
        patches.shape[1],
    )


def safety_of(lattice: Tensor, encoded: Tensor, batch: Batch, terms: Terms, settings: IspSettings) -> Tensor:
    """The Jacobian penalty of the batch's probes, as `jacobian` says."""
    if settings.jacobian == "output":
        return objective.output_safety(encoded[batch.seen :], settings.jacobian_step)
    return objective.front_safety(lattice[batch.seen :], settings.jacobian_step, terms.initial_front)


def loss_reference(base: BaseISP, batch: Batch, terms: Terms, settings: IspSettings) -> tuple[Tensor, Tensor]:
    """(whole objective, its photometric part) at one batch, term by term as supplement B lists them."""
    operands = base.operands()
    front, lattice, encoded = reference.pixels(operands, batch.raw, base.encoding)
    count, seen = len(batch.target), batch.seen
    matched = objective.photometric(encoded[:count], batch.target, settings)
    if len(batch.patch_target):
        patches = encoded[count:seen].reshape(len(batch.patch_target), batch.patch_pixels, 3)
        matched = matched + settings.weight_patch * objective.patch_means(patches, batch.patch_target)
    loss = matched + settings.weight_range * objective.out_of_range(front[:seen])
    loss = loss + settings.weight_jacobian * safety_of(lattice, encoded, batch, terms, settings)
    return loss + objective.smoothness(base, operands, settings, terms.generator), matched


def loss_fused(base: BaseISP, batch: Batch, terms: Terms, settings: IspSettings) -> tuple[Tensor, Tensor]:
    """The same with the CPU kernels for everything that is large."""
    operands = base.operands()
    front, lattice, encoded = fused.stages(operands, batch.raw, base.encoding)
    loss, matched = fused_terms.photometric_and_range(
        front, encoded, batch.target, batch.patch_target, batch.patch_pixels, settings
    )
    with torch.no_grad():  # nearly always zero, and then so is its gradient
        unsafe = safety_of(lattice, encoded, batch, terms, settings) > 0
    if unsafe:
        loss = loss + settings.weight_jacobian * safety_of(lattice, encoded, batch, terms, settings)
    return loss + objective.smoothness(base, operands, settings, terms.generator), matched


def rate_factor(update: int, updates: int, final: float) -> float:
    """Learning-rate multiplier of update 0 … updates - 1: 1 at the first, on its way to `final`."""
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * update / updates))


def optimise(base: BaseISP, samples: Samples, settings: IspSettings, use_reference: bool = False) -> Course:
    """The paper's updates, in place; the final iterate stays. Off the CPU, or when asked for, the reference runs."""
    device = base.base_matrix.device
    loss_of = loss_reference if use_reference or device.type != "cpu" else loss_fused
    rates = [settings.lr_front, settings.lr_curves, settings.lr_lattice]
    groups = [base.front_parameters(), base.curve_parameters(), base.lattice_parameters()]
    adam = Adam(
        [{"params": group, "lr": rate} for group, rate in zip(groups, rates, strict=True)],
        betas=(0.9, 0.999),
        eps=1e-8,
        fused=True,
    )
    terms = Terms.of(base, settings)
    updates, turns, losses = len(samples.order), [0] * len(samples.views), []
    for update, index in enumerate(progress(samples.order, "calibrating", unit="update")):
        back_only = update < settings.warmup_steps
        for parameter in base.front_parameters():
            parameter.requires_grad_(not back_only)
        for group, rate in zip(adam.param_groups, rates, strict=True):
            group["lr"] = rate * rate_factor(update, updates, settings.lr_final)
        batch = batch_of(samples.views[index], turns[index], settings, device)
        turns[index] += 1
        adam.zero_grad(set_to_none=True)
        loss, matched = loss_of(base, batch, terms, settings)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(base.parameters(), settings.clip)
        adam.step()
        base.project()
        losses.append(matched.detach())  # looked at in the end: each look waits for a GPU
    for parameter in base.parameters():
        parameter.requires_grad_(True)
    return Course(torch.stack(losses).tolist() if losses else [])


def calibrate(views: Views, settings: IspSettings, device: str = "cpu") -> tuple[BaseISP, Course]:
    """A scene's base from its hazy source views alone."""
    torch.manual_seed(settings.seed)
    samples = take(views, settings)
    base = initial_state(samples, settings, str(getattr(views, "folder", "the scene"))).to(device)
    course = optimise(base, samples, settings)
    return base.cpu(), course
