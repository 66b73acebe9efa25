"""Score one scene under one variant: renders on disk against the references on disk, written as CSV and JSON.

Held references come first in the CSV (`split` = held); the renders at source poses follow (`split` = source) with their
PSNR against the clean twins, the ablation table's train-view number. A model with a medium has a second picture of each
held view, through it (`split` = medium). No reference is opened before every render is
known to be there.
"""

import csv
import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fujinsplat.capture import HeldViews
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, sha256, write_json
from fujinsplat.core.metrics import psnr
from fujinsplat.core.progress import progress, say
from fujinsplat.core.reading import reading
from fujinsplat.core.settings import EvaluateSettings
from fujinsplat.core.versions import installed, processor
from fujinsplat.evaluate.perceptual import load_perceptual
from fujinsplat.evaluate.protocol import METRICS, Scorer, fitted, read_picture

COLUMNS = ("split", "view", *METRICS)
PACKAGES = ("fujinsplat", "numpy", "scikit-image", "torch", "lpips", "gsplat", "numba")


@dataclass(frozen=True)
class Job:
    """What is compared: renders `{stem}.png` with the held folder; renders at source poses with the clean twins."""

    renders: Path
    held: Path
    source_renders: Path | None = None
    clean: Path | None = None
    model: Path | None = None
    training_log: Path | None = None
    about: dict[str, Any] = field(default_factory=dict)  # scene, variant, seeds: copied into the JSON
    medium_renders: Path | None = None  # held poses again, through the model's medium


def score_scene(job: Job, out: Path, settings: EvaluateSettings | None = None, device: str = "cpu") -> dict[str, Any]:
    """Write `out` (CSV, one row per view) and the JSON beside it; returns the JSON's content."""
    settings = settings or EvaluateSettings()
    started = time.perf_counter()
    held = HeldViews(job.held)
    twins = HeldViews(job.clean) if job.clean is not None and job.source_renders is not None else None
    if not held.stems:
        raise UserError(f"{job.held} holds no views; the dataset has nothing to score against")
    _all_there(job.renders, held.stems)
    if job.medium_renders is not None:
        _all_there(job.medium_renders, held.stems)
    trained = twins.stems if twins else []
    if trained and job.source_renders is not None:
        _all_there(job.source_renders, trained)

    perceptual = load_perceptual(settings.lpips_weights, device) if settings.lpips else None
    reason = "evaluate.lpips is off" if perceptual is None else perceptual.reason
    if reason:
        say(reason)
    scorer = Scorer(perceptual)
    rows: list[dict[str, Any]] = []
    checksums: dict[str, Any] = {"renders": {}, "references": {}}
    for stem in progress(held.stems, "scoring"):
        path = job.renders / f"{stem}.png"
        rows.append({"split": "held", "view": stem, **scorer(read_picture(path), held.rgb(stem))})
        checksums["renders"][stem] = sha256(path)
        checksums["references"][stem] = sha256(job.held / f"{stem}.png")
    if job.medium_renders is not None:
        for stem in held.stems:
            scored = scorer(read_picture(job.medium_renders / f"{stem}.png"), held.rgb(stem))
            rows.append({"split": "medium", "view": stem, **scored})
    if twins is not None and job.source_renders is not None and job.clean is not None:
        for stem in trained:
            path, reference = job.source_renders / f"{stem}.png", twins.rgb(stem)
            psnr_alone = {"psnr": psnr(fitted(read_picture(path), reference), reference, math.inf)}
            rows.append({"split": "source", "view": stem, **psnr_alone, "ssim": None, "lpips": None})
            checksums["renders"][stem] = sha256(path)
            checksums["references"][stem] = sha256(job.clean / f"{stem}.png")
    if job.model is not None:
        checksums["model"] = sha256(job.model)

    summary = {
        **job.about,
        "mean": {metric: _plain(_mean(rows, "held", metric)) for metric in METRICS},
        "through_medium": {metric: _plain(_mean(rows, "medium", metric)) for metric in METRICS},
        "train_psnr": _plain(_mean(rows, "source", "psnr")),
        "views": {"held": len(held.stems), "source": len(trained)},
        "lpips": {"weights": perceptual.origin if perceptual else None, "left_out": reason},
        "training": _training(job.training_log),
        "checksums": checksums,
        "versions": _versions(),
        "device": device,
        "processor": processor(),
        "seconds": round(time.perf_counter() - started, 3),
        "peak_memory_mb": round(_peak_memory_mb(), 1),
    }
    write_csv(out, rows)
    write_json(out.with_suffix(".json"), summary)
    return summary


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Six decimals, empty where a number is missing: equal scores make an equal file."""
    with atomic_file(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            writer.writerow([row["split"], row["view"], *(_decimal(row[metric]) for metric in METRICS)])


def _all_there(renders: Path, stems: list[str]) -> None:
    missing = [stem for stem in stems if not (renders / f"{stem}.png").is_file()]
    if missing:
        raise UserError(
            f"{renders} lacks {len(missing)} of {len(stems)} renders ({', '.join(missing[:4])}); render them first"
        )


def _training(log: Path | None) -> dict[str, Any] | None:
    """What the training says of itself at its last iteration (the export's line follows it): iteration, Gaussians,
    seconds, peak memory."""
    if log is None:
        return None
    with reading(log, "training log", "train that scene again"):
        last = [entry for line in log.read_text().splitlines() if "iteration" in (entry := json.loads(line))][-1]
    return {key: last[key] for key in ("iteration", "gaussians", "seconds", "memory_mb", "processor") if key in last}


def _mean(rows: list[dict[str, Any]], split: str, metric: str) -> float | None:
    values = [row[metric] for row in rows if row["split"] == split]
    return sum(values) / len(values) if values and None not in values else None


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _plain(value: float | None) -> float | str | None:
    """JSON has no infinity; equal pictures have an infinite PSNR."""
    return value if value is None or math.isfinite(value) else str(value)


def _versions() -> dict[str, str]:
    import platform

    return {"python": platform.python_version(), **installed(PACKAGES)}


def _peak_memory_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
