"""Every table by name."""

from collections.abc import Callable
from pathlib import Path

from fujinsplat.configfile import nearest
from fujinsplat.errors import UserError
from fujinsplat.evaluate.collect import Metrics, read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables import scores, setup, studies
from fujinsplat.evaluate.tables.model import Table

TABLES: dict[str, Callable[[Outline, Metrics, Path], Table]] = {
    "main": scores.main,
    "seven_scenes": scores.seven_scenes,
    "ablation": scores.ablation,
    "ablation_per_scene": scores.ablation_per_scene,
    "capacity": scores.capacity,
    "base_fidelity": studies.base_fidelity,
    "rank_one": studies.rank_one,
    "settings": setup.settings,
    "supervision": setup.supervision,
}


def build_table(name: str, outline: Outline, results: Path) -> Table:
    """One table from what lies below `results`; what is missing is a gap."""
    if name not in TABLES:
        raise UserError(f"there is no table {name!r}{nearest(name, TABLES)}")
    metrics = read_metrics(results, outline.scenes, list(outline.variants))
    return TABLES[name](outline, metrics, results)
