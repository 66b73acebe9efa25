"""The paper's own numbers (`published.json`), transcribed from its tables. Quoted, never mixed with what we measure."""

from functools import cache
from pathlib import Path
from typing import Any

from fujinsplat.config import Variant
from fujinsplat.files import read_json


@cache
def published() -> dict[str, Any]:
    """`scenes`, `baselines` and `rows` (per scene), `ablation`, `seven`, `capacity`; and the numbers of two studies,
    `base_fidelity` and `rank_one`, per scene and as `mean`."""
    from fujinsplat.analysis import published as studies

    return {
        **read_json(Path(__file__).with_name("published.json")),
        "base_fidelity": {**studies.FIDELITY_SCENES, "mean": studies.FIDELITY},
        "rank_one": {**studies.RANK_ONE_SCENES, "mean": studies.RANK_ONE},
    }


def is_published_dataset(scenes: list[str]) -> bool:
    """Whether these are the paper's scenes, so that its numbers are about the same pictures."""
    return set(scenes) <= set(published()["scenes"])


def quoted(row: dict[str, Any], scenes: list[str], metric: str) -> tuple[list[float], float]:
    """A quoted row's per-scene values and their mean over `scenes`; the paper's own mean when these are all of them."""
    everything = published()["scenes"]
    values = [row[metric][everything.index(scene)] for scene in scenes]
    mean = row["mean"][metric] if set(scenes) == set(everything) else sum(values) / len(values)
    return values, mean


def role(variant: Variant) -> str | None:
    """Which row of the paper a variant reproduces, from what it does and not from its name; None: a row of our own."""
    plain = variant.labels is None and variant.coordinate is None and variant.draws is None
    if variant.oracle != "none" or variant.shared or not plain:
        return None
    if variant.base == "none":
        return "rgb_base"
    if variant.input == "none":
        return "raw_base"
    if (variant.K, variant.M) != (7, 16):
        return "capacity"
    if variant.objective == "reconstruction":
        return "reconstruction"
    if not (variant.curves and variant.couplings):
        return "curves_only" if variant.curves else "couplings_only" if variant.couplings else None
    if variant.input == "rgb":
        return "rgb_input"
    return "method" if variant.delta else "no_delta"
