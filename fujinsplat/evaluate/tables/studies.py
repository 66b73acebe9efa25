"""Tables of the supplement's studies: fidelity of the base ISP, rank-one structure of the smoke residual, the
measured correction distribution, and what its compiled labels undo."""

from pathlib import Path
from statistics import median
from typing import Any

from fujinsplat.core.files import read_json
from fujinsplat.core.reading import reading
from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import is_published_dataset, published
from fujinsplat.evaluate.tables.model import Cell, Row, Table
from fujinsplat.paths import inside

_FIDELITY = {"hazy_psnr": 2, "hazy_ssim": 3, "clean_psnr": 2, "hazy_clean_psnr": 2}


def base_fidelity(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Base ISP output against the hazy camera RGB and the clean twin, on source views."""
    headers = ["Scene", "base → hazy PSNR", "base → hazy SSIM", "base → clean PSNR", "hazy → clean PSNR"]
    table = Table("base_fidelity", f"Source-view fidelity of the base ISP on {outline.dataset}", headers)
    table.caption = "Each scene value averages its source views; the base reproduces the camera, haze included."
    found = {scene: fidelity_of(results, scene) for scene in outline.scenes}
    return _per_scene(table, outline.scenes, found, published()["base_fidelity"], _FIDELITY)


def fidelity_of(results: Path, scene: str) -> dict[str, Any]:
    """What the isp stage (against hazy) and the analysis stage (against clean) measured of one scene."""
    return {**_read(inside(results, "fidelity", scene=scene)), **_study(results, "base_fidelity").get(scene, {})}


def rank_one(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Leading energy fraction of the same-ISP smoke residual: linear XYZ, linear sRGB, display-encoded."""
    headers = ["Scene", "ρ₁ P1 (linear XYZ)", "ρ₁ P2 (linear sRGB)", "ρ₁ P3 (encoded)"]
    table = Table("rank_one", f"Rank-one structure of the smoke residual on {outline.dataset}", headers)
    found = {scene: _study(results, "rank_one").get(scene, {}) for scene in outline.scenes}
    return _per_scene(table, outline.scenes, found, published()["rank_one"], {"rho1_p1": 4, "rho1_p2": 4, "rho1_p3": 4})


def population(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Contrast t, pivot and ratio of the measured pairs, in RAW (the published coordinate) and in the base output."""
    columns = {"t_median": ("t", 3), "t_range": ("t range", 2), "pivot": ("pivot", 3)}
    columns |= {"clean_median": ("clean median", 4), "pivot_ratio": ("ratio", 3)}
    shown = ("t_median", "t_range", "clean_median", "pivot_ratio")  # what the paper prints
    parts = [f"{header} ({where})" for where in ("RAW", "base") for header, _ in columns.values()]
    quotes = [f"RealX3D (paper): {columns[key][0]} (RAW)" for key in shown]
    table = Table(
        "population",
        f"Correction distribution measured on {outline.dataset}",
        ["Scene", "pairs", *parts, *quotes],
        published=frozenset(range(2 + len(parts), 2 + len(parts) + len(quotes))),
    )
    table.caption = (
        "Medians over the pairs of a scene; pivot: red, green, blue; the ratio is pivot level over clean median. RAW: "
        "camera-linear, no white balance, the published measurement. Base: decoded base output, where the action works."
    )
    found, paper = _read(inside(results, "population")), published()["population"]
    same = is_published_dataset(outline.scenes)
    blocks = [(scene, found.get("scenes", {}).get(scene, {}), paper.get(scene, {})) for scene in outline.scenes]
    for title, block, quoted in [*blocks, ("All pairs", found, paper["all"])]:
        pairs = [pair for pair in found.get("pairs", []) if title in ("All pairs", pair["scene"])]
        cells = [_number((block.get("raw") or block.get("base") or {}).get("pairs"), 0)]
        for where in ("raw", "base"):
            pivots = [pair[where]["pivot"] for pair in pairs if pair.get(where)]
            values = _with_range(block.get(where) or {}) | {"pivot": _triplet(pivots)}
            cells += [_value(values.get(key), digits) for key, (_, digits) in columns.items()]
        theirs = _with_range(quoted if same or title == "All pairs" else {})
        cells += [_value(theirs.get(key), columns[key][1]) for key in shown]
        table.rows.append(Row([Cell(title), *cells], section="mean" if title == "All pairs" else ""))
    return table


def _with_range(summary: dict[str, Any]) -> dict[str, Any]:
    if "t_min" not in summary:
        return dict(summary)
    return {**summary, "t_range": f"{summary['t_min']:.2f}–{summary['t_max']:.2f}"}


def _triplet(colours: list[list[float]]) -> str | None:
    """The channelwise median of colours, as text."""
    return " ".join(f"{median(channel):.3f}" for channel in zip(*colours, strict=True)) if colours else None


def _value(value: Any, digits: int) -> Cell:
    return Cell(value) if isinstance(value, str) else _number(value, digits)


def inverse(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """How well compiled labels undo the veil they stand for, contrast by contrast, and whether round trips close."""
    headers = ["Contrast t", "veiled", "published rule", "fitted", "round trip, published", "round trip, fitted"]
    table = Table("inverse", f"Fidelity of the compiled inverse on the external captures of {outline.dataset}", headers)
    table.caption = (
        "PSNR against the clean capture of a uniform veil in linear light, before and after the action compiled from "
        "its pivot and contrast; contrasts are the paper's least, median and most, and two between. Round trip: the "
        "least over captures of inverse and action against the clamped clean colours, float64."
    )
    headers.append("RealX3D (paper): round trip")
    table.published = frozenset([len(headers) - 1])
    columns = {"nothing": 1, "published": 1, "fitted": 1, "published_round_trip": 0, "fitted_round_trip": 0}
    for row in _read(inside(results, "study", study="inverse", file="result.json")).get("table", []):
        cells = [_number(row[key], digits) for key, digits in columns.items()]
        quote = Cell(published()["inverse"]["round_trip"])
        table.rows.append(Row([Cell(f"{row['contrast']:.2f}"), *cells, quote]))
    return table


def _per_scene(table: Table, scenes: list[str], found: dict, paper: dict, columns: dict[str, int]) -> Table:
    """A row per scene and their mean; the paper's values in columns of their own (its mean only, on other scenes)."""
    same = is_published_dataset(scenes)
    first = len(table.headers)
    table.headers += [f"RealX3D (paper): {header}" for header in table.headers[1:]]
    table.published = frozenset(range(first, len(table.headers)))
    for scene in scenes:
        quotes = paper.get(scene, {}) if same else {}
        cells = [_number(found[scene].get(key), digits) for key, digits in columns.items()]
        table.rows.append(Row([Cell(scene), *cells, *(_number(quotes.get(k), d) for k, d in columns.items())]))
    means = []
    for key, digits in columns.items():
        values = [found[scene].get(key) for scene in scenes]
        means.append(_number(None if None in values else sum(values) / len(values), digits))
    quotes = [_number(paper["mean"][key], digits) for key, digits in columns.items()]
    table.rows.append(Row([Cell("Equal-scene mean"), *means, *quotes], section="mean"))
    return table


def _number(value: Any, digits: int) -> Cell:
    return Cell(None if value is None else float(value), digits)


def _study(results: Path, name: str) -> dict[str, dict[str, Any]]:
    """`{scene: row}` of the table that the analysis stage wrote in `analysis/{name}/result.json`."""
    path = inside(results, "study", study=name, file="result.json")
    with reading(path, "result of a study", "make it again"):
        return {row["scene"]: dict(row) for row in _read(path).get("table", [])}


def _read(path: Path) -> dict[str, Any]:
    with reading(path, "result", "make it again"):
        return dict(read_json(path)) if path.is_file() else {}
