"""The pipeline as it ran: rules as boxes, drawn from Snakemake's records, with the jobs and the time each took."""

from collections import Counter, defaultdict
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.style import WIDE, figure
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.provenance import Record, read_records, rule_edges

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
    """Layers from top to bottom by the longest way from a source; the report's own rules are left out."""
    records = [record for record in read_records(results) if not record.rule.startswith("report")]
    if not records:
        raise UserError(f"Snakemake's records are not beside {results}; draw the pipeline where it ran")
    jobs, seconds = job_counts(records)
    edges = reduced(rule_edges(records))
    places = layout(sorted(jobs), edges)
    across, down = 1 + max(x for x, _ in places.values()), 1 + max(y for _, y in places.values())
    fig, ax = figure(width=WIDE, height=0.2 + 0.52 * down)
    ax.set(xlim=(-0.55, across - 0.45), ylim=(down - 0.6, -0.4))
    ax.axis("off")
    for start, end in sorted(edges):
        _arrow(ax, places[start], places[end])
    for rule, (x, y) in places.items():
        _box(ax, rule, x, y, jobs[rule], seconds[rule])
    return fig


def job_counts(records: list[Record]) -> tuple[Counter[str], dict[str, float]]:
    """Jobs and seconds by rule; the outputs of one job share its command."""
    jobs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        jobs.setdefault((record.rule, record.command or record.output), []).append(record)
    counts, seconds = Counter(rule for rule, _ in jobs), defaultdict[str, float](float)
    for (rule, _), made in jobs.items():
        seconds[rule] += max(0.0, max(record.ended for record in made) - min(record.started for record in made))
    return counts, seconds


def reduced(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that do not follow from others: without them some rule could no longer be reached."""
    after: dict[str, set[str]] = {}
    for start, end in edges:
        after.setdefault(start, set()).add(end)

    def reaches(start: str, end: str, seen: set[str]) -> bool:
        fresh = after.get(start, set()) - seen
        seen |= fresh
        return end in fresh or any(reaches(other, end, seen) for other in fresh)

    return {(a, b) for a, b in edges if not any(reaches(other, b, {a}) for other in after[a] - {b})}


def layout(rules: list[str], edges: set[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """`{rule: (place across, layer)}`: layers by longest path, order across by the mean place of what feeds a rule."""
    feeds = {rule: sorted(a for a, b in edges if b == rule) for rule in rules}
    layer: dict[str, int] = {}

    def depth(rule: str, path: tuple[str, ...] = ()) -> int:
        if rule not in layer:
            before = [depth(other, (*path, rule)) for other in feeds[rule] if other not in path]
            layer[rule] = 1 + max(before, default=-1)
        return layer[rule]

    order = {stage: i for i, stage in enumerate(TONES)}
    layers: dict[int, list[str]] = {}
    for rule in sorted(rules, key=lambda rule: (order.get(_stage(rule), 99), rule)):
        layers.setdefault(depth(rule), []).append(rule)
    widest = max(len(members) for members in layers.values())
    places: dict[str, tuple[float, float]] = {}
    for y, members in sorted(layers.items()):
        known = {rule: [places[other][0] for other in feeds[rule]] for rule in members}
        means = {rule: sum(xs) / len(xs) if xs else 0.0 for rule, xs in known.items()}
        for i, rule in enumerate(sorted(members, key=means.__getitem__)):
            places[rule] = ((widest - len(members)) / 2 + i, y)
    return places


def _stage(rule: str) -> str:
    return rule.split("_")[0]


def _box(ax, rule: str, x: float, y: float, jobs: int, seconds: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    tone = TONES.get(_stage(rule), "#f5f5f5")
    shape = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch((x - 0.4, y - 0.3), 0.8, 0.6, boxstyle=shape, fc=tone, ec="#777777", lw=0.5, zorder=2))
    spent = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
    spent = spent if seconds < 7200 else f"{seconds / 3600:.1f} h"
    ax.text(x, y - 0.08, rule.replace("_", " "), ha="center", va="center", fontsize=7, zorder=3)
    text = f"{jobs} jobs, {spent}" if jobs > 1 else spent
    ax.text(x, y + 0.17, text, ha="center", va="center", fontsize=5.5, color="#444444", zorder=3)


def _arrow(ax, start: tuple[float, float], end: tuple[float, float]) -> None:
    from matplotlib.patches import FancyArrowPatch

    a, b = (start[0], start[1] + 0.31), (end[0], end[1] - 0.31)
    bend = 0.0 if end[1] - start[1] <= 1 else 0.18 if end[0] >= start[0] else -0.18
    style = {"arrowstyle": "-|>", "mutation_scale": 6, "lw": 0.7, "color": "#8a8a8a", "zorder": 1}
    ax.add_patch(FancyArrowPatch(a, b, connectionstyle=f"arc3,rad={bend}", **style))
