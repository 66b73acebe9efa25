"""Every figure by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.style import save
from fujinsplat.core.validation import nearest
from fujinsplat.evaluate.outline import Outline
from fujinsplat.report.figures import curves, flow, grids, pipeline

FIGURES: dict[str, Callable[[Path, Outline], Any]] = {
    "qualitative": grids.qualitative,
    "ablation_renders": grids.ablation_renders,
    "capacity": curves.capacity,
    "training": curves.training,
    "pipeline": pipeline.pipeline,
    "mcf": flow.mcf,
    "action_family": flow.action_family,
}


def write_figure(name: str, results: Path, outline: Outline, folder: Path) -> list[Path]:
    """`folder/{name}.png` and `.pdf`."""
    if name not in FIGURES:
        raise UserError(f"there is no figure {name!r}{nearest(name, FIGURES)}")
    return save(FIGURES[name](results, outline), folder / f"{name}.png")
