"""What ran and how long it took, from the benchmark file that Snakemake leaves for every job.

`results/{dataset}/benchmarks/{stage}/{action}/….tsv` has a header and one line per run: seconds, h:m:s, max_rss (MB), …
"""

import csv
from dataclasses import dataclass
from pathlib import Path

# jobs a person pays for once per scene and row; capture and evaluation are not part of the method's time
SCENE_JOBS = {
    "isp": "calibrate/{scene}",
    "views": "make/{front}.{scene}",
    "develop": "scene/{scene}.{variant}",
    "splat": "train/{scene}.{variant}",
}
COUNTED = (
    "Minutes of a method run here are those of its jobs for one scene: calibration, pictures, colour actions and "
    "training. FujinSplat's synthesis and its controller's training, once for all scenes, are not counted."
)


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
        first, *rest = path.relative_to(root).with_suffix("").parts
        try:
            with path.open(newline="") as stream:
                rows = list(csv.DictReader(stream, delimiter="\t"))
            seconds = sum(float(row["s"]) for row in rows)
        except (KeyError, ValueError, TypeError):
            continue
        stage = first if rest else first.split(".")[0]
        runs.append(Run(stage, "/".join(rest) or first, seconds, _largest(rows, "max_rss")))
    return runs


def _largest(rows: list[dict[str, str]], column: str) -> float | None:
    values = []
    for row in rows:
        try:
            values.append(float(row[column]))
        except (KeyError, ValueError, TypeError):
            continue  # very short jobs have no sample: "-"
    return max(values, default=None)


def minutes_per_scene(results: Path, scenes: list[str], variant: str, front: str) -> float | None:
    """Minutes of calibration, views, development and reconstruction, averaged over the scenes; None when any scene
    was not reconstructed. `front`: the name of the row's pictures."""
    totals, runs = [], read_runs(results)
    for scene in scenes:
        jobs = {stage: job.format(scene=scene, variant=variant, front=front) for stage, job in SCENE_JOBS.items()}
        mine = [run for run in runs if jobs.get(run.stage) == run.job]
        if not any(run.stage == "splat" for run in mine):
            return None
        totals.append(sum(run.seconds for run in mine) / 60)
    return sum(totals) / len(totals) if totals else None


def cost(results: Path, scenes: list[str], variant: str, front: str, base: bool) -> tuple[float | None, float | None]:
    """(minutes per scene, peak GB) of a row: its front's pictures, its calibrated base if it has one, its training.

    None when a scene is missing. Pictures of a front are counted for every row that starts from them.
    """
    totals, peaks, runs = [], [], read_runs(results)
    for scene in scenes:
        jobs = {stage: job.format(scene=scene, variant=variant, front=front) for stage, job in SCENE_JOBS.items()}
        mine = [run for run in runs if jobs.get(run.stage) == run.job and (base or run.stage != "isp")]
        if not any(run.stage == "splat" for run in mine):
            return None, None
        totals.append(sum(run.seconds for run in mine) / 60)
        peaks += [run.memory_mb for run in mine if run.memory_mb is not None]
    return (sum(totals) / len(totals) if totals else None), (max(peaks) / 1000 if peaks else None)
