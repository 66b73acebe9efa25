"""Tables of the supplement's studies: fidelity of the base ISP, rank-one structure of the smoke residual, and the
measured correction distribution."""

from pathlib import Path
from typing import Any

from fujinsplat.core.files import read_json
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
    """Contrast t and pivot ratio of the measured pairs, in RAW (the published coordinate) and in the base output."""
    headers = ["Scene", "pairs", "t (RAW)", "ratio (RAW)", "t (base)", "ratio (base)"]
    table = Table("population", f"Correction distribution measured on {outline.dataset}", headers)
    table.caption = (
        "Medians over the pairs of a scene; the ratio is pivot level over clean median. RAW: camera-linear, no white "
        "balance, the published measurement. Base: decoded base output, where the action works."
    )
    table.headers += ["RealX3D (paper): t (RAW)", "RealX3D (paper): ratio (RAW)"]
    table.published = frozenset({6, 7})
    found, paper = _read(inside(results, "population")), published()["population"]
    same = is_published_dataset(outline.scenes)
    blocks = [(scene, found.get("scenes", {}).get(scene, {}), paper.get(scene, {})) for scene in outline.scenes]
    for title, block, quoted in [*blocks, ("All pairs", found, paper["all"])]:
        raw, base = block.get("raw") or {}, block.get("base") or {}
        quotes = quoted if same or title == "All pairs" else {}
        cells = [_number((raw or base).get("pairs"), 0)]
        cells += [_number(part.get(key), 3) for part in (raw, base) for key in ("t_median", "pivot_ratio")]
        cells += [_number(quotes.get(key), digits) for key, digits in (("t_median", 3), ("pivot_ratio", 2))]
        table.rows.append(Row([Cell(title), *cells], section="mean" if title == "All pairs" else ""))
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
    return {
        row["scene"]: row for row in _read(inside(results, "study", study=name, file="result.json")).get("table", [])
    }


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
