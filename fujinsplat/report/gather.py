"""Everything the report shows, read from a results folder; what is not there becomes a sentence in `missing`."""

import platform
from dataclasses import dataclass, field
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.reading import reading
from fujinsplat.core.versions import installed
from fujinsplat.evaluate.benchmarks import Run, read_runs
from fujinsplat.evaluate.collect import Metrics, read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables import TABLES, build_table
from fujinsplat.evaluate.tables.baselines import compared
from fujinsplat.evaluate.tables.model import Table
from fujinsplat.paths import inside
from fujinsplat.report.viewer import split_view

SLIDER_VIEWS = 3
# pictures other stages leave, as (folder, pattern), with the sentence shown under each kind
COLLECTED = {
    "figures": ("*.png", "comparisons, curves, the pipeline"),
    "analysis": ("*/*.png", "the paper's read-only studies"),
    "synthetic": ("*/gallery.png", "synthetic observations beside real smoke"),
    "smoke": ("*.png", "the smoke as the capture itself tells it"),
    "developed": ("*/{method}.png", "what the controller does to source views"),
    "controller": ("*.png", "training of the controller"),
}
MOST_OF_A_KIND = {"smoke": 4, "developed": 2, "synthetic": 2, "controller": 3}
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
    title: str  # of the row that was rendered


@dataclass(frozen=True)
class Panel:
    """One picture of a strip; `psnr` against the clean capture, in dB, where it was scored."""

    title: str
    file: Path
    psnr: float | None = None


@dataclass
class Scene:
    name: str
    pairs: list[Pair] = field(default_factory=list)
    strip: list[Panel] = field(default_factory=list)  # one held view by every method, then as it is
    scores: dict[str, float] = field(default_factory=dict)
    gain: float | None = None  # dB over the base without correction
    viewer: tuple[str, str] | str | None = None  # (shell, data), or why there is none
    others: list[tuple[str, str]] = field(default_factory=list)  # 3D views of other methods: (title, page beside this)


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
    changed: list[tuple[str, str, str, str]]
    versions: dict[str, str]
    averages: dict[str, float]
    missing: list[str]


def gather(results: Path, outline: Outline) -> Content:
    """Read `results/{dataset}`; never fails for a part that was not built."""
    if not results.is_dir():
        raise UserError(f"{results} does not exist; build something first, e.g. `snakemake --cores all`")
    method, base = outline.method, next(iter(outline.of_role("raw_base")), None)
    metrics = read_metrics(results, outline)
    missing: list[str] = []
    scenes = [_scene(results, outline, name, method, base, metrics, missing) for name in outline.scenes]
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
        changed_settings(outline),
        {**versions(), **processors(results)},
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
    shown: dict[str, None] = dict.fromkeys([*([method] if method else []), *outline.opening("smoke")[:1]])
    scene.pairs = [pair for row in shown for pair in slider_pairs(results, name, row, outline.title(row))]
    if not scene.pairs:
        missing.append(f"{name}: no render at a source pose, so no before/after slider.")
    scene.strip = strip(results, outline, name, metrics)
    pages = {row: inside(results, "view_of", scene=name, variant=row) for row in outline.rows}
    scene.others = [
        (outline.title(row), page.relative_to(results).as_posix()) for row, page in pages.items() if page.is_file()
    ]
    view = inside(results, "view", scene=name)
    if outline.viewer:
        with reading(view, "3D view", "remove it so that it is made again"):
            scene.viewer = split_view(view.read_text()) if view.is_file() else f"{view.name} was not built"
        if isinstance(scene.viewer, str):
            missing.append(f"{name}: no 3D view. {scene.viewer}")
    return scene


def slider_pairs(results: Path, scene: str, variant: str, title: str) -> list[Pair]:
    """Up to three source poses, evenly spread, that have both a smoky picture and a render."""
    source = inside(results, "source", scene=scene)
    renders = inside(results, "renders_source", scene=scene, variant=variant)
    stems = [path.stem for path in sorted(source.glob("*.png")) if (renders / path.name).is_file()]
    count = min(SLIDER_VIEWS, len(stems))
    chosen = [stems[(2 * i + 1) * len(stems) // (2 * count)] for i in range(count)]
    return [Pair(stem, source / f"{stem}.png", renders / f"{stem}.png", title) for stem in chosen]


def strip(results: Path, outline: Outline, scene: str, metrics: Metrics) -> list[Panel]:
    """The first held view as every method renders it, what a medium's model sees through it beside that, and the clean
    capture; nothing where there is nothing to compare."""
    held = inside(results, "held", scene=scene)
    clean = next(iter(sorted(held.glob("*.png"))), None)
    if clean is None:
        return []
    panels = []
    for name in compared(outline):
        scores = metrics.of(scene, name)
        kinds = [("renders", "", scores[0].views if scores else {})]
        kinds += [("renders_medium", ", with its medium", scores[0].medium if scores else {})]
        for kind, what, views in kinds:
            path = inside(results, kind, scene=scene, variant=name) / clean.name
            if path.is_file():
                number = views.get(clean.stem, {}).get("psnr")
                panels.append(Panel(outline.title(name) + what, path, number))
    return [*panels, Panel("clean capture", clean)] if panels else []


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
    special = {*outline.scenes, *outline.rows, *TABLES, *(Path(name).name for name in CAPTIONS)}
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


def changed_settings(outline: Outline) -> list[tuple[str, str, str, str]]:
    """`(setting, value here, the paper's value, rows)` for every setting that differs in some row's result."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in outline.rows.values():
        for difference in row.differences:
            found.setdefault(difference, []).append(row.title)
    everywhere = len(outline.rows)
    return [
        (*difference, "all" if len(rows) == everywhere else ", ".join(rows))
        for difference, rows in sorted(found.items())
    ]


def processors(results: Path) -> dict[str, str]:
    """The CPUs that scores were trained and scored on: across machines equal code differs by tenths of a decibel."""
    found: dict[str, list[str]] = {}
    for path in sorted((results / "metrics").glob("*/*.json")):
        about = read_json(path)
        for part in (about.get("training"), about) if isinstance(about, dict) else ():
            if isinstance(part, dict) and isinstance(name := part.get("processor"), str):
                found.setdefault(name, []).append(f"{path.parent.name}/{path.stem}")
                break
    # of several CPUs, which made which
    listed = "; ".join(
        f"{name} ({', '.join(scores) if len(found) > 1 else f'all {len(scores)} scores'})"
        for name, scores in found.items()
    )
    return {"CPU of the scores": listed} if listed else {}


def versions() -> dict[str, str]:
    system = f"{platform.system()} {platform.machine()}"
    return {"Python": platform.python_version(), "system": system, **installed(PACKAGES)}
