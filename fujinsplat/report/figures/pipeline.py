"""The pipeline as it ran: rules as boxes, drawn from Snakemake's records, with the jobs and the time each took."""

from collections import Counter
from pathlib import Path

from fujinsplat.errors import UserError
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.provenance import read_records, rule_edges
from fujinsplat.report.style import WIDE, figure

# stages in the order of the data, each with a light tone that keeps black text readable
TONES = {
    "demo": "#eeeeee",
    "capture": "#dcecf7",
    "isp": "#fbe3d2",
    "actions": "#d5efe6",
    "synthesis": "#f6e2ee",
    "controller": "#fdf0cd",
    "develop": "#e0f2fb",
    "splat": "#dfe3f5",
    "render": "#e9e4f0",
    "evaluate": "#e4f0d8",
    "analysis": "#f2ece0",
    "report": "#eeeeee",
}


def pipeline(results: Path, outline: Outline):
    """Layers from left to right by the longest way from a source; the report's own rules are left out."""
    records = [record for record in read_records(results) if not record.rule.startswith("report")]
    if not records:
        raise UserError(f"Snakemake's records are not beside {results}; draw the pipeline where it ran")
    edges = rule_edges(records)
    jobs, seconds = job_counts(records)
    places = layout(sorted(jobs), edges)
    across, down = max(x for x, _ in places.values()) + 1, max(y for _, y in places.values()) + 1
    fig, ax = figure(width=max(WIDE, 1.25 * across), height=max(1.6, 0.62 * down))
    ax.set(xlim=(-0.05, across - 0.05), ylim=(-0.55, down - 0.35))
    ax.axis("off")
    for start, end in sorted(edges):
        _arrow(ax, places[start], places[end])
    for rule, (x, y) in places.items():
        _box(ax, rule, x, y, jobs[rule], seconds[rule])
    return fig


def job_counts(records) -> tuple[Counter, Counter]:
    """Jobs and seconds by rule; outputs of one job share its times."""
    jobs = {(record.rule, record.started, record.ended) for record in records}
    counts, seconds = Counter(rule for rule, _, _ in jobs), Counter()
    for rule, start, end in jobs:
        seconds[rule] += max(end - start, 0)
    return counts, seconds


def layout(rules: list[str], edges: set[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """`{rule: (layer, height)}`: layers by longest path, heights by the mean height of what feeds a rule."""
    feeds = {rule: sorted(a for a, b in edges if b == rule) for rule in rules}
    layer: dict[str, int] = {}

    def depth(rule: str, path: tuple[str, ...] = ()) -> int:
        if rule not in layer:
            before = [depth(other, (*path, rule)) for other in feeds[rule] if other not in path]
            layer[rule] = 1 + max(before, default=-1)
        return layer[rule]

    order = {stage: i for i, stage in enumerate(TONES)}
    columns: dict[int, list[str]] = {}
    for rule in sorted(rules, key=lambda rule: (order.get(_stage(rule), 99), rule)):
        columns.setdefault(depth(rule), []).append(rule)
    tallest = max(len(column) for column in columns.values())
    places: dict[str, tuple[float, float]] = {}
    for x, column in sorted(columns.items()):

        def height(rule: str) -> float:
            known = [places[other][1] for other in feeds[rule] if other in places]
            return -sum(known) / len(known) if known else 0.0

        column = sorted(column, key=height)
        for i, rule in enumerate(column):
            places[rule] = (x, (tallest - len(column)) / 2 + len(column) - 1 - i)
    return places


def _stage(rule: str) -> str:
    return rule.split("_")[0]


def _box(ax, rule: str, x: float, y: float, jobs: int, seconds: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    tone = TONES.get(_stage(rule), "#f5f5f5")
    box = FancyBboxPatch((x, y - 0.27), 0.78, 0.54, boxstyle="round,pad=0,rounding_size=0.08", fc=tone, ec="#777777")
    box.set_linewidth(0.5)
    box.set_zorder(2)
    ax.add_patch(box)
    time = (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.1f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
    ax.text(
        x + 0.39, y + 0.09, rule.replace("_", "\n", 1) if len(rule) > 12 else rule, ha="center", va="center", fontsize=6
    )
    ax.text(
        x + 0.39,
        y - 0.19,
        f"{jobs} × · {time}" if jobs > 1 else time,
        ha="center",
        va="center",
        fontsize=5,
        color="#444444",
    )


def _arrow(ax, start: tuple[float, float], end: tuple[float, float]) -> None:
    from matplotlib.patches import FancyArrowPatch

    a, b = (start[0] + 0.79, start[1]), (end[0] - 0.01, end[1])
    bend = 0.12 * (1 if end[1] >= start[1] else -1) if end[0] - start[0] > 1 else 0.0
    arrow = FancyArrowPatch(a, b, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=5, lw=0.5)
    arrow.set(color="#9a9a9a", zorder=1)
    ax.add_patch(arrow)
