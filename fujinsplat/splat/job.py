"""One scene from developed views to files: train, bake, measure, write."""

import json
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.capture import read_cameras
from fujinsplat.config import SplatSettings
from fujinsplat.files import atomic_file, write_json
from fujinsplat.progress import say
from fujinsplat.runtime import exclusive
from fujinsplat.splat.export import agreement, bake
from fujinsplat.splat.ply import write_ply
from fujinsplat.splat.train import Inputs, Trained, train


@dataclass(frozen=True)
class Outputs:
    ply: Path
    model: Path
    log: Path
    alpha: Path


def run(inputs: Inputs, outputs: Outputs, settings: SplatSettings, checkpoints: Path, device: str) -> None:
    """One process at a time works on a folder of checkpoints; a second one waits, then goes on from what it finds."""
    waiting = f"another process trains in {checkpoints}; waiting until it has finished or was stopped"
    with exclusive(checkpoints.with_name(f"{checkpoints.name}.lock"), lambda: say(waiting)):
        _run(inputs, outputs, settings, checkpoints, device)


def _run(inputs: Inputs, outputs: Outputs, settings: SplatSettings, checkpoints: Path, device: str) -> None:
    trained = train(inputs, settings, checkpoints, device)
    source, held = (read_cameras(inputs.cameras, part) for part in ("source", "held"))
    baked = bake(trained.gaussians, source, settings)
    exported = agreement(trained.gaussians, baked, held or source)
    mean = sum(exported.values()) / len(exported)
    poses = "held" if held else "source"
    say(f"{len(trained.gaussians)} Gaussians; the exported file shows our renders at {mean:.2f} dB ({poses} poses)")

    trained.gaussians.save(outputs.model, {"iterations": str(settings.iterations), "seed": str(settings.seed)})
    comments = ("FujinSplat: display-encoded SH, dataset frame", f"{mean:.2f} dB to the linear model on {poses} poses")
    write_ply(outputs.ply, baked, comments)
    _write_log(outputs.log, trained, {"export_psnr": mean, "export_psnr_by_view": exported, "export_poses": poses})
    write_json(outputs.alpha, {"delta": inputs.delta, "alpha": trained.alpha, "residual": trained.delta_residual})
    trained.checkpoints.remove()


def _write_log(path: Path, trained: Trained, last: dict) -> None:
    """The training log, with the export's measurement as its last line."""
    lines = trained.checkpoints.log_file.read_text() if trained.checkpoints.log_file.exists() else ""
    with atomic_file(path) as temporary:
        temporary.write_text(lines + json.dumps(last) + "\n")
