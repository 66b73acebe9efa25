"""Every figure by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fujinsplat.configfile import nearest
from fujinsplat.errors import UserError
from fujinsplat.evaluate.outline import Outline
from fujinsplat.report.figures import curves, grids, pipeline
from fujinsplat.report.style import save

FIGURES: dict[str, Callable[[Path, Outline], Any]] = {
    "qualitative": grids.qualitative,
    "ablation_renders": grids.ablation_renders,
    "capacity": curves.capacity,
    "training": curves.training,
    "pipeline": pipeline.pipeline,
}


def write_figure(name: str, results: Path, outline: Outline, folder: Path) -> list[Path]:
    """`folder/{name}.png` and `.pdf`."""
    if name not in FIGURES:
        raise UserError(f"there is no figure {name!r}{nearest(name, FIGURES)}")
    return save(FIGURES[name](results, outline), folder / f"{name}.png")
