"""One scene from developed views to files: train, bake, measure, write."""

import json
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.capture import read_cameras
from fujinsplat.core import gpu
from fujinsplat.core.files import atomic_file, write_json
from fujinsplat.core.progress import say
from fujinsplat.core.runtime import exclusive
from fujinsplat.splat.export import agreement, bake
from fujinsplat.splat.models import MODELS
from fujinsplat.splat.ply import write_ply
from fujinsplat.splat.train import Composition, Inputs, Trained, train

REMEDY = (
    "lower settings.splat.max_gaussians, settings.splat.max_width or settings.splat.memory_mb, "
    "or train on a GPU with more memory: the checkpoint is kept"
)


@dataclass(frozen=True)
class Outputs:
    ply: Path
    model: Path
    log: Path
    reconciled: Path


def run(inputs: Inputs, outputs: Outputs, parts: Composition, checkpoints: Path, device: str) -> None:
    """One process at a time works on a folder of checkpoints; a second one waits, then goes on from what it finds."""
    waiting = f"another process trains in {checkpoints}; waiting until it has finished or was stopped"
    with exclusive(checkpoints.with_name(f"{checkpoints.name}.lock"), lambda: say(waiting)):
        model = MODELS[parts.model]
        if model.whole_job:
            model.run(inputs, outputs, parts.settings_of(model))
            return
        with gpu.memory_bound(REMEDY):
            _run(inputs, outputs, parts, checkpoints, device)


def _run(inputs: Inputs, outputs: Outputs, parts: Composition, checkpoints: Path, device: str) -> None:
    trained, settings = train(inputs, parts, checkpoints, device), parts.splat
    source, held = (read_cameras(inputs["cameras"], part) for part in ("source", "held"))
    baked = bake(trained.gaussians, source, settings)
    exported = agreement(trained.gaussians, baked, held or source)
    mean = sum(exported.values()) / len(exported)
    poses = "held" if held else "source"
    say(f"{len(trained.gaussians)} Gaussians; the exported file shows our renders at {mean:.2f} dB ({poses} poses)")

    trained.gaussians.save(outputs.model, {"iterations": str(trained.iterations), "seed": str(settings.seed)})
    comments = ("FujinSplat: display-encoded SH, dataset frame", f"{mean:.2f} dB to the linear model on {poses} poses")
    write_ply(outputs.ply, baked, comments)
    _write_log(outputs.log, trained, {"export_psnr": mean, "export_psnr_by_view": exported, "export_poses": poses})
    write_json(outputs.reconciled, trained.summary)
    trained.checkpoints.remove()


def _write_log(path: Path, trained: Trained, last: dict) -> None:
    """The training log, with the export's measurement as its last line."""
    lines = trained.checkpoints.log_file.read_text() if trained.checkpoints.log_file.exists() else ""
    with atomic_file(path) as temporary:
        temporary.write_text(lines + json.dumps(last) + "\n")
