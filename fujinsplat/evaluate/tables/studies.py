"""Tables of the supplement's studies: fidelity of the base ISP, rank-one structure of the smoke residual."""

from pathlib import Path
from typing import Any

from fujinsplat.evaluate.collect import Metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.published import is_published_dataset, published
from fujinsplat.evaluate.tables.model import Cell, Row, Table
from fujinsplat.files import read_json

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
    return {**_read(results / "base" / f"{scene}.json"), **_study(results, "base_fidelity").get(scene, {})}


def rank_one(outline: Outline, metrics: Metrics, results: Path) -> Table:
    """Leading energy fraction of the same-ISP smoke residual: linear XYZ, linear sRGB, display-encoded."""
    headers = ["Scene", "ρ₁ P1 (linear XYZ)", "ρ₁ P2 (linear sRGB)", "ρ₁ P3 (encoded)"]
    table = Table("rank_one", f"Rank-one structure of the smoke residual on {outline.dataset}", headers)
    found = {scene: _study(results, "rank_one").get(scene, {}) for scene in outline.scenes}
    return _per_scene(table, outline.scenes, found, published()["rank_one"], {"rho1_p1": 4, "rho1_p2": 4, "rho1_p3": 4})


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
    return {row["scene"]: row for row in _read(results / "analysis" / name / "result.json").get("table", [])}


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
