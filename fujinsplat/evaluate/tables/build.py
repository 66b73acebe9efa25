"""Every table by name."""

from collections.abc import Callable
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import nearest
from fujinsplat.evaluate.collect import Metrics, read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables import baselines, overview, scores, setup, studies
from fujinsplat.evaluate.tables.model import Table

TABLES: dict[str, Callable[[Outline, Metrics, Path], Table]] = {
    "overview": overview.overview,
    "recipes": overview.recipes,
    "main": scores.main,
    "baselines": baselines.baselines,
    "seven_scenes": scores.seven_scenes,
    "ablation": scores.ablation,
    "ablation_per_scene": scores.ablation_per_scene,
    "capacity": scores.capacity,
    "base_fidelity": studies.base_fidelity,
    "rank_one": studies.rank_one,
    "population": studies.population,
    "inverse": studies.inverse,
    "settings": setup.settings,
    "supervision": setup.supervision,
}


def build_table(name: str, outline: Outline, results: Path) -> Table:
    """One table from what lies below `results`; what is missing is a gap."""
    if name not in TABLES:
        raise UserError(f"there is no table {name!r}{nearest(name, TABLES)}")
    metrics = read_metrics(results, outline)
    return TABLES[name](outline, metrics, results)
