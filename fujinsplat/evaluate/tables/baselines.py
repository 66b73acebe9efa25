"""The methods side by side: what was run here on the same views, poses and scores, with its time and memory, and what
is quoted. The two never share a column."""

from pathlib import Path

from fujinsplat.evaluate.benchmarks import COUNTED, cost
from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import line, published
from fujinsplat.evaluate.tables.model import DIGITS, Cell, Row, Table, measured, rank

RUN, QUOTED = "run here", "quoted"
WITH_MEDIUM = "PSNR with medium"
METRICS = ("psnr", "ssim", "lpips")
HEADERS = [
    "Method",
    "Numbers",
    "PSNR ↑",
    "SSIM ↑",
    "LPIPS ↓",
    WITH_MEDIUM,
    "Minutes per scene",
    "Peak memory, GB",
    "RealX3D (paper): PSNR ↑",
    "RealX3D (paper): SSIM ↑",
    "RealX3D (paper): LPIPS ↓",
]
CAPTION = (
    "Methods run here share views, poses and scores; a model with a medium is scored without it, and the PSNR of its "
    "picture with the medium stands beside. Quoted numbers are the paper's, on its own eight scenes, where the smoky "
    "views themselves have 11.57 dB: the media rows lie below doing nothing, except I2-NeRF, whose PSNR is within 0.63 "
    "dB of the smoky views' in every scene; its released code writes the picture with its medium under that name. "
    + COUNTED
)


def compared(outline: Outline) -> list[str]:
    """Rows that stand for a method as a whole: ours, what it starts from, and every other model or restorer."""
    chosen = [name for role in ("method", "raw_base") for name in outline.of_role(role)]
    others = [
        name
        for name, row in outline.rows.items()
        if not row.oracle and (row.role == "baseline" or row.parts.get("model", "gaussians") != "gaussians")
    ]
    return [*chosen, *(name for name in others if name not in chosen)]


def baselines(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """One line per method."""
    table = Table("baselines", f"Methods compared on {outline.dataset}", list(HEADERS), caption=CAPTION)
    table.timed, table.published = frozenset([6, 7]), frozenset(range(8, 11))
    fields = []
    for name in compared(outline):
        row = outline.rows[name]
        cells = [measured(metrics.average(outline.scenes, name, metric), metric) for metric in METRICS]
        fields.append(cells)
        through = measured(metrics.average(outline.scenes, name, "through_psnr"), "psnr")
        if through.value is None:
            through = Cell("")  # it has no medium
        minutes, memory = cost(results, outline.scenes, name, row.front_file, "base" in row.opens)
        table.rows.append(
            Row([Cell(row.title), Cell(RUN), *cells, through, _cell(minutes, 1), _cell(memory, 1), *_paper(row.line)])
        )
    run = {outline.rows[name].line for name in compared(outline)}
    for entry in [*published()["baselines"], published()["rows"]["method"]]:
        if entry["name"] not in run:
            blank = [Cell("")] * 6
            table.rows.append(
                Row([Cell(entry["name"]), Cell(QUOTED), *blank, *_paper(entry["name"])], QUOTED, "quoted")
            )
    for metric, column in zip(METRICS, zip(*fields, strict=True), strict=True):
        rank(list(column), metric)
    return table


def _cell(value: float | None, digits: int) -> Cell:
    return Cell(value, digits)


def _paper(name: str | None) -> list[Cell]:
    found = line(name)
    return [Cell(found["mean"][metric], DIGITS[metric]) if found else Cell("") for metric in METRICS]
