"""Every row of a build on one line, as the README shows them."""

from pathlib import Path

from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import published
from fujinsplat.evaluate.tables.model import Cell, Row, Table, measured, scenes

SHOWN = {"psnr": "PSNR, held", "ssim": "SSIM", "lpips": "LPIPS", "train_psnr": "train PSNR"}


def overview(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Means over scenes; the paper's PSNR, for RealX3D, in a column of its own."""
    headers = ["Variant", "Row", *SHOWN.values(), "Seeds", "RealX3D (paper): PSNR"]
    table = Table("overview", f"All rows on {outline.dataset}, {scenes(len(outline.scenes))}", headers)
    table.caption = "Means over scenes of the held views; oracles use clean twins of the views they are trained on."
    table.published = frozenset([len(headers) - 1])
    for name, row in outline.rows.items():
        cells = [measured(metrics.average(outline.scenes, name, metric), metric) for metric in SHOWN]
        cells.append(Cell(str(metrics.seeds(outline.scenes, name) or "–")))
        quote = Cell(_published(row.role, row.line, row.flow))
        table.rows.append(Row([Cell(row.title), Cell(f"`{name}`"), *cells, quote], "oracle" if row.oracle else ""))
    return table


def _published(role: str | None, line: str | None, flow: tuple[int, int]) -> float | None:
    """The paper's mean PSNR of the line a row is compared with."""
    content = published()
    if role == "capacity":
        return next((row["psnr"] for row in content["capacity"] if (row["K"], row["M"]) == flow), None)
    if role in content["ablation"]:
        return content["ablation"][role]["psnr"]
    rows = [*content["rows"].values(), *content["baselines"]]
    return next((row["mean"]["psnr"] for row in rows if row["name"] == line), None)


def recipes(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """The method's recipes scene by scene, beside the base they start from and every row with several seeds."""
    bases, methods = outline.of_role("raw_base"), outline.of_role("method")
    several = [name for name, row in outline.rows.items() if row.seeds > 1 and name not in (*bases, *methods)]
    headers = ["Row", "Seeds", *outline.scenes, "Mean PSNR", "over RAW base", "SSIM", "LPIPS"]
    table = Table("recipes", f"Recipes of the method on {outline.dataset}", headers)
    table.caption = "PSNR of held views, scene by scene; docs/recipes.md says in what the recipes differ and why."
    floor = metrics.average(outline.scenes, bases[0], "psnr") if bases else None
    for name in [*bases, *methods, *several]:
        scenes = [measured(metrics.scene(scene, name, "psnr"), "psnr") for scene in outline.scenes]
        mean, ssim, lpips = (metrics.average(outline.scenes, name, metric) for metric in ("psnr", "ssim", "lpips"))
        gain = Cell(None if floor is None or mean is None or name in bases else mean.mean - floor.mean)
        row = outline.rows[name]
        cells = [Cell(row.title), Cell(str(metrics.seeds(outline.scenes, name) or "–")), *scenes]
        cells += [measured(mean, "psnr"), gain, measured(ssim, "ssim"), measured(lpips, "lpips")]
        table.rows.append(Row(cells, "oracle" if row.oracle else ""))
    return table
