"""Planted score files: a dataset's `metrics/` folder with values a test chooses."""

from pathlib import Path

import pytest

from fujinsplat.evaluate.outline import Outline, RowFacts
from fujinsplat.evaluate.paper import line_names
from fujinsplat.evaluate.scoring import write_csv
from fujinsplat.rows.outline import facts
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import RowSpec, compose

ROWS = {
    "ours": {"title": "FujinSplat", "correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
    "raw_base": {"title": "RAW base only", "paper": "RAW base only"},
    "rgb_base": {"front": "camera", "paper": "RGB base only"},
    "rgb_input": {"like": "ours", "settings": {"controller": {"input": "rgb"}}, "paper": "RGB input"},
    "curves_only": {"like": "no_delta", "settings": {"synthesis": {"action": "curves"}}, "paper": "Curves only"},
    "couplings_only": {
        "like": "no_delta",
        "settings": {"synthesis": {"action": "couplings"}},
        "paper": "Couplings only",
    },
    "no_delta": {"title": "w/o Δ-ISP", "like": "ours", "reconcile": "none", "paper": "w/o Δ-ISP"},
    "reconstruction": {
        "like": "no_delta",
        "settings": {"controller": {"objective": "reconstruction"}},
        "paper": "Reconstruction objective",
    },
    "fitted_labels": {"like": "ours", "settings": {"synthesis": {"labels": "fitted"}}},
    "k5": {"like": "ours", "settings": {"flow": {"K": 5}}, "paper": "K=5"},
    "m_8": {"title": "8 knots & more", "like": "ours", "settings": {"flow": {"M": 8}}, "paper": "M=8"},
    "oracle": {"front": "clean"},
}


def row_facts(specs: dict[str, dict]) -> dict[str, RowFacts]:
    """What tables know of these rows, from their parts alone."""
    rows = compose({name: RowSpec(**spec) for name, spec in specs.items()}, line_names())
    return {name: facts(row, row.settings(AllSettings())) for name, row in rows.items()}


def plant_scores(results: Path, scene: str, name: str, psnr, ssim=0.5, lpips=0.5, train: float | None = None) -> None:
    """Four held views around the given means (they average back to them), and one source view."""
    rows = []
    for i, shift in enumerate((-0.02, -0.01, 0.01, 0.02)):
        values = {"psnr": psnr + shift, "ssim": ssim + shift, "lpips": None if lpips is None else lpips + shift}
        rows.append({"split": "held", "view": f"{26 + i:04d}", **values})
    if train is not None:
        rows.append({"split": "source", "view": "0001", "psnr": train, "ssim": None, "lpips": None})
    write_csv(results / "metrics" / scene / f"{name}.csv", rows)


@pytest.fixture
def plant():
    return plant_scores


@pytest.fixture
def outline():
    """An outline of every kind of row; `outline(["A", "B"])` has other scenes than the paper's."""
    rows = row_facts(ROWS)
    both = {"settings": AllSettings(), "paper": AllSettings.paper()}
    values = {name: settings.model_dump(mode="json") for name, settings in both.items()}

    def make(scenes: list[str], dataset: str = "demo", **changes) -> Outline:
        return Outline(dataset=dataset, scenes=scenes, **{"rows": rows, **values, **changes})

    return make
