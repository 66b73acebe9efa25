"""Tables made of scores: main, seven scenes, ablation, ablation per scene, capacity.

The paper's numbers stand in columns of their own, headed "RealX3D (paper)", and never take part in a rank: scene by
scene on its own scenes, as means on any other dataset. A blank has nothing to hold; a "–" is a number that is missing.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fujinsplat.evaluate.benchmarks import COUNTED, minutes_per_scene
from fujinsplat.evaluate.collect import Metrics, Value
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import is_published_dataset, line, published, quoted
from fujinsplat.evaluate.tables.baselines import QUOTED, RUN, WITH_MEDIUM, compared
from fujinsplat.evaluate.tables.model import DIGITS, Cell, Row, Table, measured, rank, scenes

METRICS = ("psnr", "ssim", "lpips")
ARROWS = {"psnr": "PSNR ↑", "ssim": "SSIM ↑", "lpips": "LPIPS ↓", "train_psnr": "Train PSNR ↑"}
PAPER = "RealX3D (paper)"
# the paper's ablation rows, in its order; a row without a variant stays as a gap
ABLATION = ("raw_base", "rgb_input", "curves_only", "couplings_only", "no_delta", "reconstruction", "method")
PARTS = ("raw", "curve", "coupling", "delta")
PER_SCENE = ("rgb_base", "raw_base", "rgb_input", "curves_only", "couplings_only", "no_delta", "method")


def main(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The paper's main table: each method with three lines (PSNR, SSIM, LPIPS), a column per scene, their mean."""
    mine = [name for role in ("method", "rgb_base", "raw_base", "baseline") for name in outline.of_role(role)]
    headers = ["Method", "Metric", *outline.scenes, "Avg.", *_paper_headers(outline), "Numbers"]
    table = Table("main", f"Novel-view smoke restoration on {outline.dataset}", headers)
    table.caption = caption = "Each scene value averages its held views; Avg. is the equal-scene mean."
    table.published = frozenset(range(len(outline.scenes) + 3, len(headers) - 1))
    ranked: dict[str, list[list[Cell]]] = {metric: [] for metric in METRICS}

    def add(title: str, ours: Callable[[str], list[Cell]], paper: dict | None, note: str, section: str) -> None:
        for i, metric in enumerate(METRICS):
            cells = ours(metric)
            if not note:
                ranked[metric].append(cells)
            cells = [*cells, *_paper_cells(outline, paper, metric), Cell(QUOTED if note == "quoted" else RUN)]
            table.rows.append(Row([Cell(title if i == 0 else ""), Cell(ARROWS[metric]), *cells], note, section))

    for name in [*mine, *outline.own_rows, *outline.oracles]:
        row = outline.rows[name]
        note = "oracle" if row.oracle else ""
        ours = partial(_measured_cells, outline, metrics, name)
        add(row.title, ours, line(row.line), note, note or "ours")
        if any(metrics.scene(scene, name, "through_psnr") for scene in outline.scenes):
            cells = [*ours("through_psnr"), *_paper_cells(outline, None, "psnr"), Cell(RUN)]
            table.rows.append(Row([Cell(""), Cell(WITH_MEDIUM), *cells], note, note or "ours"))
            table.caption = (
                f"{caption} A model with a medium is scored without it; {WITH_MEDIUM} is of its other picture."
            )
    run = {outline.rows[name].line for name in mine}
    for row in [*published()["baselines"], published()["rows"]["method"]]:
        if row["name"] not in run:
            blank = [Cell("")] * (len(outline.scenes) + 1)
            add(row["name"], lambda _, blank=blank: blank, row, "quoted", row.get("group", "ours"))
    for metric, lines in ranked.items():
        for column in zip(*lines, strict=True):
            rank(list(column), metric)
    return table


def _paper_headers(outline: Outline) -> list[str]:
    """Columns of the paper's numbers: scene by scene where these are its scenes, else its mean alone."""
    if not is_published_dataset(outline.scenes):
        return [PAPER]
    return [f"{PAPER}: {name}" for name in (*outline.scenes, "Avg.")]


def _paper_cells(outline: Outline, row: dict | None, metric: str) -> list[Cell]:
    """A published row in those columns; blank where the paper has none."""
    if row is None:
        return [Cell("")] * len(_paper_headers(outline))
    if not is_published_dataset(outline.scenes):
        return [Cell(row["mean"][metric], DIGITS[metric])]
    values, mean = quoted(row, outline.scenes, metric)
    return [Cell(value, DIGITS[metric]) for value in (*values, mean)]


def _measured_cells(outline: Outline, metrics: Metrics, name: str, metric: str) -> list[Cell]:
    cells = [measured(metrics.scene(scene, name, metric), metric) for scene in outline.scenes]
    return [*cells, measured(metrics.average(outline.scenes, name, metric), metric)]


def seven_scenes(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The challenge comparison: mean PSNR without the excluded scene, with run time and model calls."""
    kept = [scene for scene in outline.scenes if scene != outline.excluded_from_seven]
    without = f"without {outline.excluded_from_seven}" if len(kept) < len(outline.scenes) else "none left out"
    headers = ["Method", "PSNR ↑", "Run time per scene", f"{PAPER}: PSNR ↑", f"{PAPER}: run time", "MLLM"]
    headers.append("Calls per view")
    table = Table("seven_scenes", f"Comparison over {scenes(len(kept))} of {outline.dataset}, {without}", headers)
    table.caption = (
        "Challenge entries are as they reported themselves; run times come from different machines. " + COUNTED
    )
    table.published, table.timed = frozenset([3, 4]), frozenset([2])
    for entry in [*published()["seven"], *published()["elsewhere"]]:
        title = entry["name"] + (", paper" if entry["name"] == "FujinSplat" else "")
        title += f" ({entry['from']})" if "from" in entry else ""
        digits = len(str(entry["psnr"]).partition(".")[2])
        cells = [Cell(title), Cell(""), Cell(""), Cell(entry["psnr"], digits), Cell(entry.get("runtime"))]
        table.rows.append(Row([*cells, Cell(entry["mllm"] or "none"), Cell(str(entry["calls"]))], "quoted", "quoted"))
    for name in outline.of_role("method"):
        value = metrics.average(kept, name, "psnr")
        minutes = minutes_per_scene(results, outline.scenes, name, outline.rows[name].front_file)
        spent = Cell(f"{minutes:.1f} min" if minutes is not None else None)
        cells = [Cell(outline.title(name)), _precise(value), spent, Cell(""), Cell(""), Cell("none"), Cell("0")]
        table.rows.append(Row(cells, "", "ours"))
    return table


def _precise(value: Value | None) -> Cell:
    return Cell(None) if value is None else Cell(value.mean, 4, value.deviation)


def _quote(paper: dict, metric: str) -> Cell:
    return Cell(paper[metric], DIGITS[metric]) if paper.get(metric) is not None else Cell("")


def ablation(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Components on and off, train-view and novel-view quality; the paper's values in columns of their own."""
    shown = ("train_psnr", "psnr", "ssim", "lpips")
    headers = ["Variant", "RAW", "Curve", "Coupling", "Δ", *(ARROWS[metric] for metric in shown)]
    first = len(headers)
    headers += [f"{PAPER}: {ARROWS[metric]}" for metric in shown[:3]]
    table = Table("ablation", f"Ablation on {outline.dataset}", headers)
    table.caption = "All variants share the frozen per-scene base and the training budget."
    table.published = frozenset(range(first, len(headers)))
    fields: list[list[Cell]] = []

    def add(title: str, parts: list[bool], name: str | None, paper: dict, note: str = "", section: str = "") -> None:
        cells = [measured(metrics.average(outline.scenes, name, m) if name else None, m) for m in shown]
        if not note:
            fields.append(cells)
        quotes = [_quote(paper, metric) for metric in shown[:3]]
        table.rows.append(Row([Cell(title), *map(Cell, parts), *cells, *quotes], note, section))

    for key in ABLATION:
        paper = published()["ablation"][key]
        parts = [paper[part] for part in PARTS]
        for name in outline.of_role(key) or [None]:
            add(outline.title(name) if name else paper["name"], parts, name, paper)
    others = compared(outline)  # another method shares neither base nor budget
    for name in [*(name for name in outline.own_rows if name not in others), *outline.oracles]:
        row = outline.rows[name]
        kind = ("oracle", "o") if row.oracle else ("", "own")
        add(row.title, [part in row.marks for part in PARTS], name, {}, *kind)
    for metric, column in zip(shown, zip(*fields, strict=True), strict=True):
        rank(list(column), metric)
    return table


def ablation_per_scene(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The ablation scene by scene; RGB base only stands outside the ranking, as in the paper."""
    headers = ["Variant", "Metric", *outline.scenes, "Avg.", *_paper_headers(outline)]
    table = Table("ablation_per_scene", f"Ablation per scene on {outline.dataset}", headers)
    table.caption = "Each scene value averages its held views; Avg. is the equal-scene mean."
    table.published = frozenset(range(len(outline.scenes) + 3, len(headers)))
    ranked: dict[str, list[list[Cell]]] = {metric: [] for metric in METRICS}
    for key in PER_SCENE:
        paper = published()["rows"].get(key)
        for name in outline.of_role(key) or [None]:
            title = outline.title(name) if name else (paper or published()["ablation"][key])["name"]
            for i, metric in enumerate(METRICS):
                if name:
                    cells = _measured_cells(outline, metrics, name, metric)
                else:
                    cells = [Cell(None, DIGITS[metric])] * (len(outline.scenes) + 1)
                if key != "rgb_base":
                    ranked[metric].append(cells)
                cells = [Cell(title if i == 0 else ""), Cell(ARROWS[metric]), *cells]
                table.rows.append(Row([*cells, *_paper_cells(outline, paper, metric)], section=key))
    for metric, lines in ranked.items():
        for column in zip(*lines, strict=True):
            rank(list(column), metric)
    return table


def capacity(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Couplings and knots around the adopted setting; settings of our own follow the paper's."""
    headers = ["Axis", "Couplings", "Knots", *(ARROWS[m] for m in METRICS), *(f"{PAPER}: {ARROWS[m]}" for m in METRICS)]
    table = Table("capacity", f"Capacity of the Monotone Color Flow on {outline.dataset}", headers)
    table.caption = "One axis is varied at a time about the adopted setting."
    table.published = frozenset(range(6, 9))
    sizes: dict[tuple[int, int], list[str]] = {}
    for name in [*outline.of_role("method"), *outline.of_role("capacity")]:
        sizes.setdefault(outline.rows[name].flow, []).append(name)
    quotes = {(row["K"], row["M"]): row for row in published()["capacity"]}
    fields = []
    for K, M in sorted({*sizes, *quotes}, key=lambda size: (_axis(*size)[0], size)):
        paper, axis = quotes.get((K, M), {}), _axis(K, M)[1]
        for name in sizes.get((K, M)) or [None]:
            cells = [measured(metrics.average(outline.scenes, name, m) if name else None, m) for m in METRICS]
            fields.append(cells)
            paper_cells = [_quote(paper, metric) for metric in METRICS]
            table.rows.append(Row([Cell(axis), Cell(str(K)), Cell(str(M)), *cells, *paper_cells], section=axis))
    for metric, column in zip(METRICS, zip(*fields, strict=True), strict=True):
        rank(list(column), metric)
    return table


def _axis(K: int, M: int) -> tuple[int, str]:
    adopted = next(row for row in published()["capacity"] if row["axis"] == "adopted")
    if (K, M) == (adopted["K"], adopted["M"]):
        return 3, "Adopted"
    if M == adopted["M"]:
        return 0, "Couplings"
    return (1, "Curve knots") if adopted["K"] == K else (2, "Both")
