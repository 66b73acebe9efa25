"""What ran and how long it took, from the benchmark file that Snakemake leaves for every job.

`results/{dataset}/benchmarks/{stage}/….tsv` has a header and one line per run: seconds, h:m:s, max_rss (MB), …
"""

import csv
from dataclasses import dataclass
from pathlib import Path

# stages a person pays for once per scene and variant; capture and evaluation are not part of the method's time
SCENE_STAGES = ("isp", "develop", "splat")


@dataclass(frozen=True)
class Run:
    """One job: its stage (the folder), the rest of its file name, seconds and peak memory."""

    stage: str
    job: str
    seconds: float
    memory_mb: float | None


def read_runs(results: Path) -> list[Run]:
    """Every benchmark below `results`, sorted by path; a file that is still being written is left out."""
    root = results / "benchmarks"
    runs = []
    for path in sorted(root.rglob("*.tsv")):
        parts = path.relative_to(root).with_suffix("").parts
        try:
            with path.open(newline="") as stream:
                rows = list(csv.DictReader(stream, delimiter="\t"))
            seconds = sum(float(row["s"]) for row in rows)
        except (KeyError, ValueError, TypeError):
            continue
        stage = parts[0] if len(parts) > 1 else parts[0].split(".")[0]
        runs.append(Run(stage, "/".join(parts[1:]) or parts[0], seconds, _largest(rows, "max_rss")))
    return runs


def _largest(rows: list[dict[str, str]], column: str) -> float | None:
    values = []
    for row in rows:
        try:
            values.append(float(row[column]))
        except (KeyError, ValueError, TypeError):
            continue  # very short jobs have no sample: "-"
    return max(values, default=None)


def minutes_per_scene(results: Path, scenes: list[str], variant: str) -> float | None:
    """Minutes of calibration, development and reconstruction, averaged over the scenes; None when any is missing."""
    totals = []
    for scene in scenes:
        mine = [run for run in read_runs(results) if run.stage in SCENE_STAGES and _about(run.job, scene, variant)]
        if not any(run.stage == "splat" for run in mine):
            return None
        totals.append(sum(run.seconds for run in mine) / 60)
    return sum(totals) / len(totals) if totals else None


def _about(job: str, scene: str, variant: str) -> bool:
    """Whether a job belongs to this scene, and to this variant or to all of them."""
    words = job.replace("/", ".").split(".")
    return scene in words and (variant in words or len(words) == 1)
