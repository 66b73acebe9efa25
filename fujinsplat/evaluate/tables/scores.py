"""Tables made of scores: main, seven scenes, ablation, ablation per scene, capacity.

On the paper's own scenes its numbers stand beside ours as quoted rows. On any other dataset they stand in columns of
their own, headed "RealX3D (paper)", and never take part in a rank.
"""

from collections.abc import Callable
from pathlib import Path

from fujinsplat.evaluate.benchmarks import minutes_per_scene
from fujinsplat.evaluate.collect import Metrics, Value
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import is_published_dataset, line, published, quoted
from fujinsplat.evaluate.tables.baselines import QUOTED, RUN
from fujinsplat.evaluate.tables.model import DIGITS, Cell, Row, Table, measured, rank

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
    headers = ["Method", "Metric", *outline.scenes, "Avg."]
    same = is_published_dataset(outline.scenes)
    table = Table("main", f"Novel-view smoke restoration on {outline.dataset}", headers)
    table.caption = "Each scene value averages its held views; Avg. is the equal-scene mean."
    if not same:
        headers.append(PAPER)
        table.published = frozenset([len(headers) - 1])
    headers.append("Numbers")
    ranked: dict[str, list[list[Cell]]] = {metric: [] for metric in METRICS}

    def add(
        title: str, line: Callable[[str], list[Cell]], note: str = "", section: str = "", field: bool = True
    ) -> None:
        for i, metric in enumerate(METRICS):
            cells = [*line(metric), Cell(QUOTED if note == "quoted" else RUN)]
            table.rows.append(Row([Cell(title if i == 0 else ""), Cell(ARROWS[metric]), *cells], note, section))
            if field:
                ranked[metric].append(cells[: len(outline.scenes) + 1])

    for row in published()["baselines"] if same else []:
        add(row["name"], lambda m, row=row: _quoted_cells(row, outline.scenes, m), "quoted", row["group"])
    if same:
        row = published()["rows"]["method"]
        add("FujinSplat, paper", lambda m: _quoted_cells(row, outline.scenes, m), "quoted", "ours", field=False)
    for name in [*mine, *outline.own_rows, *outline.oracles]:
        note = "oracle" if outline.rows[name].oracle else ""
        paper = None if same else line(outline.rows[name].line)
        add(
            outline.title(name),
            lambda m, name=name, paper=paper: _measured_cells(outline, metrics, name, m, paper, same),
            note,
            note or "ours",
            field=not note,
        )
    run = {outline.rows[name].line for name in mine}
    for row in [] if same else [row for row in published()["baselines"] if row["name"] not in run]:
        blank = [Cell(None)] * (len(outline.scenes) + 1)
        add(
            row["name"],
            lambda m, row=row, blank=blank: [*blank, Cell(row["mean"][m], DIGITS[m])],
            "quoted",
            row["group"],
            field=False,
        )
    for metric, lines in ranked.items():
        for column in zip(*lines, strict=True):
            rank(list(column), metric)
    return table


def _quoted_cells(row: dict, scenes: list[str], metric: str) -> list[Cell]:
    values, mean = quoted(row, scenes, metric)
    return [Cell(value, DIGITS[metric]) for value in (*values, mean)]


def _measured_cells(outline, metrics, name, metric, paper, same) -> list[Cell]:
    cells = [measured(metrics.scene(scene, name, metric), metric) for scene in outline.scenes]
    cells.append(measured(metrics.average(outline.scenes, name, metric), metric))
    if not same:
        cells.append(Cell(paper["mean"][metric] if paper else None, DIGITS[metric]))
    return cells


def seven_scenes(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The challenge comparison: mean PSNR without the excluded scene, with run time and model calls."""
    kept = [scene for scene in outline.scenes if scene != outline.excluded_from_seven]
    without = f"without {outline.excluded_from_seven}" if len(kept) < len(outline.scenes) else "all of them"
    same = is_published_dataset(outline.scenes)
    headers = ["Method", "PSNR ↑", "Run time per scene", "MLLM", "Calls per view"]
    table = Table("seven_scenes", f"Comparison over {len(kept)} scenes of {outline.dataset}, {without}", headers)
    table.caption = "Challenge entries are as they reported themselves; run times come from different machines."
    if not same:
        headers.insert(1, PAPER)
        table.published = frozenset([1])
    table.timed = frozenset([headers.index("Run time per scene")])
    for entry in [*published()["seven"], *published()["elsewhere"]]:
        title = entry["name"] + (", paper" if entry["name"] == "FujinSplat" else "")
        title += f" ({entry['from']})" if "from" in entry else ""
        digits = len(str(entry["psnr"]).partition(".")[2])
        cells = [Cell(title), Cell(entry["psnr"], digits), *([] if same else [Cell(None)])]
        cells += [Cell(entry.get("runtime")), Cell(entry["mllm"] or "none"), Cell(str(entry["calls"]))]
        table.rows.append(Row(cells, "quoted", "quoted"))
    for name in outline.of_role("method"):
        value = metrics.average(kept, name, "psnr")
        minutes = minutes_per_scene(results, outline.scenes, name, outline.rows[name].front_file)
        cells = [Cell(outline.title(name)), *([] if same else [Cell(None)]), _precise(value)]
        cells += [Cell(f"{minutes:.1f} min" if minutes is not None else None), Cell("none"), Cell("0")]
        table.rows.append(Row(cells, "", "ours"))
    return table


def _precise(value: Value | None) -> Cell:
    return Cell(None) if value is None else Cell(value.mean, 4, value.deviation)


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
        quotes = [Cell(paper.get(metric), DIGITS[metric]) for metric in shown[:3]]
        table.rows.append(Row([Cell(title), *map(Cell, parts), *cells, *quotes], note, section))

    for key in ABLATION:
        paper = published()["ablation"][key]
        parts = [paper[part] for part in PARTS]
        for name in outline.of_role(key) or [None]:
            add(outline.title(name) if name else paper["name"], parts, name, paper)
    for name in [*outline.own_rows, *outline.oracles]:
        row = outline.rows[name]
        kind = ("oracle", "o") if row.oracle else ("", "own")
        add(row.title, [part in row.marks for part in PARTS], name, {}, *kind)
    for metric, column in zip(shown, zip(*fields, strict=True), strict=True):
        rank(list(column), metric)
    return table


def ablation_per_scene(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The ablation scene by scene; RGB base only stands outside the ranking, as in the paper."""
    same = is_published_dataset(outline.scenes)
    headers = ["Variant", "Metric", *outline.scenes, "Avg."]
    table = Table("ablation_per_scene", f"Ablation per scene on {outline.dataset}", headers)
    table.caption = "Each scene value averages its held views; Avg. is the equal-scene mean."
    if not same:
        headers.append(PAPER)
        table.published = frozenset([len(headers) - 1])
    ranked: dict[str, list[list[Cell]]] = {metric: [] for metric in METRICS}
    for key in PER_SCENE:
        paper = published()["rows"].get(key)
        for name in outline.of_role(key) or [None]:
            title = outline.title(name) if name else (paper or published()["ablation"][key])["name"]
            for i, metric in enumerate(METRICS):
                if name:
                    cells = _measured_cells(outline, metrics, name, metric, paper, same)
                else:
                    cells = [Cell(None, DIGITS[metric])] * (len(outline.scenes) + 1)
                    cells += [] if same else [Cell(paper["mean"][metric] if paper else None, DIGITS[metric])]
                if key != "rgb_base":
                    ranked[metric].append(cells[: len(outline.scenes) + 1])
                table.rows.append(Row([Cell(title if i == 0 else ""), Cell(ARROWS[metric]), *cells], section=key))
        for i, metric in enumerate(METRICS if same and paper else ()):
            quotes = _quoted_cells(paper, outline.scenes, metric)
            first = Cell(f"{paper['name']}, paper" if i == 0 else "")
            table.rows.append(Row([first, Cell(ARROWS[metric]), *quotes], "quoted", key))
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
            paper_cells = [Cell(paper.get(metric), DIGITS[metric]) for metric in METRICS]
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
