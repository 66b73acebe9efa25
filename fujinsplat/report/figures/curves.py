"""Curves: capacity of the colour flow, and training of the Gaussians."""

import json
from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.reading import reading
from fujinsplat.core.settings import PAPER_ITERATIONS
from fujinsplat.core.style import BLUE, GREY, MARKERS, ORANGE, VERMILION, WIDE, figure, panel
from fujinsplat.evaluate.collect import read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import is_published_dataset, published
from fujinsplat.paths import inside


def capacity(results: Path, outline: Outline):
    """Novel-view PSNR against couplings and knots; the paper's own points only on the paper's own scenes."""
    metrics = read_metrics(results, outline)
    sizes = {}
    for name in [*outline.of_role("method"), *outline.of_role("capacity")]:
        value = metrics.average(outline.scenes, name, "psnr")
        if value is not None:
            sizes.setdefault(outline.rows[name].flow, value)
    paper = {(row["K"], row["M"]): row["psnr"] for row in published()["capacity"]}
    adopted = next((row["K"], row["M"]) for row in published()["capacity"] if row["axis"] == "adopted")
    if not sizes:
        raise UserError(f"{results} has no scored variant of any capacity; build the group `capacity` first")
    fig, axes = figure(1, 2, width=WIDE, height=2.3, sharey=True)
    for axis, ax, letter, title in ((0, axes[0], "a", "couplings"), (1, axes[1], "b", "knots per curve")):
        mine = sorted((size[axis], v) for size, v in sizes.items() if size[1 - axis] == adopted[1 - axis])
        xs, values = [x for x, _ in mine], [v for _, v in mine]
        errors = [v.deviation or 0 for v in values]
        ax.errorbar(xs, [v.mean for v in values], yerr=errors, color=BLUE, marker="o", label="measured here", capsize=2)
        if is_published_dataset(outline.scenes):
            theirs = sorted((size[axis], v) for size, v in paper.items() if size[1 - axis] == adopted[1 - axis])
            ax.plot(*zip(*theirs, strict=True), color=GREY, marker="s", ls="--", label="paper")
        if adopted in sizes:
            ax.plot(adopted[axis], sizes[adopted].mean, marker="*", ms=11, color=VERMILION, ls="none", label="adopted")
        ax.set(xlabel=title, xticks=sorted({*xs, *(size[axis] for size in paper)}))
        panel(ax, letter, title)
    axes[0].set_ylabel("novel-view PSNR (dB)")
    axes[1].legend(loc="best")
    return fig


def training(results: Path, outline: Outline):
    """Loss, PSNR of the logged view, number of Gaussians and retained displacement of the method, scene by scene."""
    name = outline.method
    logs = {scene: read_log(inside(results, "training", scene=scene, variant=name)) for scene in outline.scenes}
    logs = {scene: log for scene, log in logs.items() if log}
    if not logs:
        raise UserError(f"{results} has no training log of {name}; train it first")
    parts = {"loss": "training loss", "psnr": "PSNR of the logged view (dB)", "gaussians": "Gaussians"}
    parts["alpha_mean"] = "retained displacement α, mean"
    fig, axes = figure(2, 2, width=WIDE, height=4.2, sharex=True)
    for letter, ax, (key, title) in zip("abcd", axes.flat, parts.items(), strict=True):
        for i, (scene, log) in enumerate(logs.items()):
            points = [(entry["iteration"], entry[key]) for entry in log if entry.get(key) is not None]
            if points:
                xs, ys = map(np.array, zip(*points, strict=True))
                (line,) = ax.plot(xs, ys, lw=0.4, alpha=0.3)
                every = max(1, len(xs) // 5)
                style = {"color": line.get_color(), "marker": MARKERS[i % 8], "ms": 3.5, "markevery": every}
                ax.plot(xs, running_median(ys), label=scene, **style)
        panel(ax, letter, title)
        for start, end in _windows(outline):
            ax.axvspan(start, end, color=ORANGE, alpha=0.12, lw=0)
    axes[0, 0].set_yscale("log")
    axes[1, 1].set_ylim(-0.02, 1.02)
    for ax in axes[1]:
        ax.set_xlabel("iteration (shaded: Δ-ISP)")
    axes[0, 1].legend(ncols=2)
    return fig


def running_median(values: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Each logged view differs in difficulty: the median over a window of a tenth of the run shows the trend."""
    half = max(0, round(len(values) * share / 2))
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def _windows(outline: Outline) -> list[tuple[float, float]]:
    """The Δ-ISP's window; settings give it for the paper's number of iterations, and it scales with theirs."""
    delta, factor = outline.settings["delta"], outline.settings["splat"]["iterations"] / PAPER_ITERATIONS
    return [(delta["after"] * factor, delta["until"] * factor)]


def read_log(path: Path) -> list[dict]:
    """The lines of a training log; none when there is no such file."""
    if not path.is_file():
        return []
    with reading(path, "training log", "train that scene again"):
        return [dict(json.loads(line)) for line in path.read_text().splitlines() if line.strip()]
