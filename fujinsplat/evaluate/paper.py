"""The paper's own numbers (`paper.json`), transcribed from its tables, and what others report of themselves
(`elsewhere`). Quoted, never mixed with what we measure."""

from functools import cache
from pathlib import Path
from typing import Any

from fujinsplat.core.files import read_json


@cache
def published() -> dict[str, Any]:
    """`scenes`, `baselines` and `rows` (per scene), `ablation`, `seven`, `elsewhere`, `capacity`; and of studies,
    `base_fidelity` and `rank_one` per scene and as `mean`, `population` per scene and over `all` pairs, `inverse`."""
    from fujinsplat.analysis import published_studies as studies

    return {
        **read_json(Path(__file__).with_name("paper.json")),
        "base_fidelity": {**studies.FIDELITY_SCENES, "mean": studies.FIDELITY},
        "rank_one": {**studies.RANK_ONE_SCENES, "mean": studies.RANK_ONE},
        "inverse": studies.INVERSE,
        "population": {**studies.POPULATION_SCENES, "all": studies.POPULATION},
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


@cache
def lines() -> dict[str, str]:
    """The paper's lines by name, with the role a row plays that is compared with it.

    Rows of the ablation have roles of their own; sizes of the colour flow (`K=5`, `M=32`) share `capacity`, and the
    methods of the main table `baseline`.
    """
    content = published()
    named = {row["name"]: key for key, row in content["rows"].items()}
    named |= {"RGB input": "rgb_input", "Reconstruction objective": "reconstruction"}
    for row in content["capacity"]:
        if row["axis"] != "adopted":
            named[f"K={row['K']}" if row["axis"] == "couplings" else f"M={row['M']}"] = "capacity"
    return named | {row["name"]: "baseline" for row in content["baselines"]}


def line_names() -> set[str]:
    return set(lines())


def role_of(line: str | None) -> str | None:
    """Which of the paper's rows a line is; None: a row of our own."""
    return None if line is None else lines()[line]


def line(name: str | None) -> dict[str, Any] | None:
    """A published row with its per-scene numbers, by the paper's name; None where the paper prints none."""
    rows = [*published()["rows"].values(), *published()["baselines"]]
    return next((row for row in rows if row["name"] == name), None)
