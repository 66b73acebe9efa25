"""Everything the report shows, read from a results folder; what is not there becomes a sentence in `missing`."""

import platform
from dataclasses import dataclass, field
from pathlib import Path

from fujinsplat.config import StageSettings
from fujinsplat.errors import UserError
from fujinsplat.evaluate.benchmarks import Run, read_runs
from fujinsplat.evaluate.collect import Metrics, read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables import TABLES, build_table
from fujinsplat.evaluate.tables.model import Table
from fujinsplat.evaluate.tables.scores import by_role
from fujinsplat.report.viewer import split_view
from fujinsplat.versions import installed

SLIDER_VIEWS = 3
# pictures other stages leave, as (folder, pattern), with the sentence shown under each kind
COLLECTED = {
    "figures": ("*.png", "comparisons, curves, the pipeline"),
    "analysis": ("*/*.png", "the paper's read-only studies"),
    "synthetic": ("*/gallery.png", "synthetic observations beside real smoke"),
    "developed": ("*/{method}.png", "what the controller does to source views"),
    "controller": ("*.png", "training of the controller"),
}
MOST_OF_A_KIND = {"developed": 2, "synthetic": 2, "controller": 3}
CAPTIONS = {
    "figures/qualitative": "Held views: the smoky camera picture from the nearest pose, our renders, and the clean "
    "capture. Cyan insets enlarge the colour chart.",
    "figures/ablation_renders": "Ablation at one held view per scene, with its PSNR in dB against the clean capture. "
    "In the input, linear RAW is left of the seam and the camera's picture right of it.",
    "figures/capacity": "Capacity of the colour flow: novel-view PSNR against couplings and knots per curve.",
    "figures/training": "Training of the Gaussians, scene by scene.",
    "figures/pipeline": "The pipeline as it ran: rules, their jobs and the time they "
    "took together. An arrow that follows from others is left out.",
}
PACKAGES = (
    "fujinsplat",
    "snakemake",
    "torch",
    "numpy",
    "numba",
    "gsplat",
    "scikit-image",
    "lpips",
    "rawpy",
    "safetensors",
)


@dataclass(frozen=True)
class Pair:
    """One source pose: the smoky camera picture and our render, as files."""

    stem: str
    smoky: Path
    render: Path


@dataclass
class Scene:
    name: str
    pairs: list[Pair] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    gain: float | None = None  # dB over the base without correction
    viewer: tuple[str, str] | str | None = None  # (shell, data), or why there is none


@dataclass(frozen=True)
class Timing:
    """Jobs of one kind together."""

    label: str
    jobs: int
    seconds: float
    longest: float
    memory_mb: float | None


@dataclass
class Content:
    outline: Outline
    method: str | None
    scenes: list[Scene]
    tables: list[Table]
    figures: list[tuple[str, Path]]
    timings: list[Timing]
    changed: list[tuple[str, str, str]]
    versions: dict[str, str]
    averages: dict[str, float]
    missing: list[str]


def gather(results: Path, outline: Outline) -> Content:
    """Read `results/{dataset}`; never fails for a part that was not built."""
    if not results.is_dir():
        raise UserError(f"{results} does not exist; build something first, e.g. `snakemake --cores all`")
    roles = by_role(outline)
    method = roles.get("method") or next(iter(outline.variants), None)
    metrics = read_metrics(results, outline.scenes, list(outline.variants))
    missing: list[str] = []
    scenes = [
        _scene(results, outline, name, method, roles.get("raw_base"), metrics, missing) for name in outline.scenes
    ]
    averages = {}
    for metric in ("psnr", "ssim", "lpips"):
        value = metrics.average(outline.scenes, method, metric) if method else None
        if value is not None:
            averages[metric] = value.mean
    if not averages:
        missing.append("No held view has been scored, so score tables have gaps.")
    figures = collect_figures(results, method or "")
    for folder, (_, what) in COLLECTED.items():
        if not any(path.is_relative_to(results / folder) for _, path in figures):
            missing.append(f"No pictures in {folder}/ ({what}).")
    return Content(
        outline,
        method,
        scenes,
        [build_table(name, outline, results) for name in TABLES],
        figures,
        timings(read_runs(results), outline),
        changed_settings(outline.settings),
        versions(),
        averages,
        missing,
    )


def _scene(
    results: Path,
    outline: Outline,
    name: str,
    method: str | None,
    base: str | None,
    metrics: Metrics,
    missing: list[str],
) -> Scene:
    scene = Scene(name)
    for metric in ("psnr", "ssim", "lpips"):
        value = metrics.scene(name, method, metric) if method else None
        if value is not None:
            scene.scores[metric] = value.mean
    reference = metrics.scene(name, base, "psnr") if base else None
    if reference is not None and "psnr" in scene.scores:
        scene.gain = scene.scores["psnr"] - reference.mean
    scene.pairs = slider_pairs(results, name, method) if method else []
    if not scene.pairs:
        missing.append(f"{name}: no render at a source pose, so no before/after slider.")
    view = results / "viewer" / f"{name}.html"
    if outline.settings.report.viewer:
        scene.viewer = split_view(view.read_text()) if view.is_file() else f"{view.name} was not built"
        if isinstance(scene.viewer, str):
            missing.append(f"{name}: no 3D view. {scene.viewer}")
    return scene


def slider_pairs(results: Path, scene: str, variant: str) -> list[Pair]:
    """Up to three source poses, evenly spread, that have both a smoky picture and a render."""
    source, renders = results / "capture" / scene / "source", results / "renders_source" / scene / variant
    stems = [path.stem for path in sorted(source.glob("*.png")) if (renders / path.name).is_file()]
    count = min(SLIDER_VIEWS, len(stems))
    chosen = [stems[(2 * i + 1) * len(stems) // (2 * count)] for i in range(count)]
    return [Pair(stem, source / f"{stem}.png", renders / f"{stem}.png") for stem in chosen]


def collect_figures(results: Path, method: str) -> list[tuple[str, Path]]:
    """`(caption, file)` of every figure that exists, the report's own first."""
    found = []
    for folder, (pattern, _) in COLLECTED.items():
        paths = sorted((results / folder).glob(pattern.format(method=method)), key=_order)
        found += [(caption(path, results), path) for path in paths[: MOST_OF_A_KIND.get(folder)]]
    return found


def _order(path: Path) -> tuple[int, Path]:
    """The report's own figures as `CAPTIONS` lists them, others by name."""
    own = [Path(name).name for name in CAPTIONS]
    return (own.index(path.stem) if path.stem in own else len(own), path)


def caption(path: Path, results: Path) -> str:
    """A figure's caption: the sentence its study left beside it, or a readable form of its path."""
    sentence = path.with_name("result.txt")
    if sentence.is_file():
        return sentence.read_text().strip()
    words = [*path.relative_to(results).parent.parts, path.stem]
    if "/".join(words) in CAPTIONS:
        return CAPTIONS["/".join(words)]
    words = [word for word in words if word not in ("figures", "figure", "analysis")]
    text = " · ".join(word.replace("_", " ") for word in words)
    return text[:1].upper() + text[1:]


def timings(runs: list[Run], outline: Outline) -> list[Timing]:
    """Runs of one kind together: names of scenes, variants, tables and figures are taken out of the job's name."""
    special = {*outline.scenes, *outline.variants, *TABLES, *(Path(name).name for name in CAPTIONS)}
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        words = run.job.replace("/", ".").split(".")
        kind = [w for w in words if w.split("@")[0] not in special and not w.isdigit() and w != run.stage]
        kinds.setdefault(" ".join([run.stage, *kind]), []).append(run)
    rows = []
    for label, group in kinds.items():
        memory = max((run.memory_mb for run in group if run.memory_mb is not None), default=None)
        seconds = [run.seconds for run in group]
        rows.append(Timing(label, len(group), sum(seconds), max(seconds), memory))
    return sorted(rows, key=lambda row: -row.seconds)


def changed_settings(settings: StageSettings) -> list[tuple[str, str, str]]:
    """`(setting, value here, the paper's value)` for every setting that differs."""
    rows = []
    for stage, values in settings.model_dump(mode="json", exclude_defaults=True).items():
        paper = getattr(StageSettings(), stage)
        for key, value in values.items():
            rows.append((f"{stage}.{key}", str(value), str(getattr(paper, key))))
    return rows


def versions() -> dict[str, str]:
    system = f"{platform.system()} {platform.machine()}"
    return {"Python": platform.python_version(), "system": system, **installed(PACKAGES)}
