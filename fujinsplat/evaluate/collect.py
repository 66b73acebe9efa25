"""Reading the score files of a whole dataset.

A variant trained with several seeds has one file per seed: `{variant}.csv`, `{variant}@2.csv`, `{variant}@3.csv`, …
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.outline import Outline
from fujinsplat.paths import inside

THROUGH = "through_"  # through_psnr is the PSNR of the picture through the medium


@dataclass(frozen=True)
class Value:
    """A mean over seeds; `deviation` (sample standard deviation) only when there are several."""

    mean: float
    deviation: float | None = None


@dataclass(frozen=True)
class SceneScores:
    """One score file: `views[stem]` = {metric: value or None} of the held views, and the source views' PSNR."""

    views: dict[str, dict[str, float | None]]
    source_psnr: dict[str, float]
    medium: dict[str, dict[str, float | None]] = field(default_factory=dict)  # the same views through a medium

    def mean(self, metric: str) -> float | None:
        if metric == "train_psnr":
            values = list(self.source_psnr.values())
        elif metric.startswith(THROUGH):
            values = [view[metric.removeprefix(THROUGH)] for view in self.medium.values()]
        else:
            values = [view[metric] for view in self.views.values()]
        return _mean(values)


class Metrics:
    """Every score of one dataset; what is missing is None, never an error."""

    def __init__(self, scores: dict[tuple[str, str], list[SceneScores]]):
        self._scores = scores

    def of(self, scene: str, variant: str) -> list[SceneScores]:
        return self._scores.get((scene, variant), [])

    def scene(self, scene: str, variant: str, metric: str) -> Value | None:
        return _value([scores.mean(metric) for scores in self.of(scene, variant)])

    def seeds(self, scenes: list[str], variant: str) -> int:
        """Seeds that every scene has been scored with."""
        return min((len(self.of(scene, variant)) for scene in scenes), default=0)

    def average(self, scenes: list[str], variant: str, metric: str) -> Value | None:
        """Equal-scene mean, seed by seed; None unless every scene has the number, since a part would mislead."""
        means = []
        for repeat in range(self.seeds(scenes, variant)):
            values = [self.of(scene, variant)[repeat].mean(metric) for scene in scenes]
            means.append(_mean(values))
        return _value(means)


def _mean(values: Sequence[float | None]) -> float | None:
    """None where there is nothing, or a part is missing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _value(values: list[float | None]) -> Value | None:
    mean = _mean(values)
    if mean is None:
        return None
    if len(values) == 1 or not math.isfinite(mean):
        return Value(mean)
    squares = sum((value - mean) ** 2 for value in values if value is not None)
    return Value(mean, math.sqrt(squares / (len(values) - 1)))


def read_metrics(results: Path, outline: Outline) -> Metrics:
    """The scores of a build's scenes and rows, all seeds of each; those not made are left out."""
    scores = {}
    for scene in outline.scenes:
        for name in outline.rows:
            files = [inside(results, "scores", scene=scene, variant=variant) for variant in outline.repeats(name)]
            if found := [read_scores(file) for file in files if file.is_file()]:
                scores[scene, name] = found
    return Metrics(scores)


def read_scores(path: Path) -> SceneScores:
    """One score file, as `fujinsplat evaluate score` wrote it."""
    views, source, medium = {}, {}, {}
    try:
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                if row["split"] == "source":
                    source[row["view"]] = float(row["psnr"])
                else:
                    part = medium if row["split"] == "medium" else views
                    part[row["view"]] = {m: float(row[m]) if row[m] else None for m in ("psnr", "ssim", "lpips")}
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path} is not a score file ({error}); score that scene again") from None
    return SceneScores(views, source, medium)
