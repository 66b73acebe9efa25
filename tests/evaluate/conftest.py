"""Planted score files: a dataset's `metrics/` folder with values a test chooses."""

from pathlib import Path

import pytest

from fujinsplat.config import Variant
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.scene import write_csv

VARIANTS = {
    "ours": Variant(title="FujinSplat"),
    "raw_base": Variant(title="RAW base only", input="none", curves=False, couplings=False, delta=False),
    "rgb_base": Variant(input="none", base="none", curves=False, couplings=False, delta=False),
    "rgb_input": Variant(input="rgb"),
    "curves_only": Variant(couplings=False, delta=False),
    "couplings_only": Variant(curves=False, delta=False),
    "no_delta": Variant(title="w/o Δ-ISP", delta=False),
    "reconstruction": Variant(objective="reconstruction", delta=False),
    "fitted_labels": Variant(labels="fitted"),
    "k5": Variant(K=5),
    "m_8": Variant(M=8, title="8 knots & more"),
    "oracle": Variant(input="none", delta=False, oracle="clean"),
}


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
    """An outline of every kind of variant; `outline(["A", "B"])` has other scenes than the paper's."""

    def make(scenes: list[str], dataset: str = "demo", **changes) -> Outline:
        return Outline(dataset=dataset, scenes=scenes, **{"variants": VARIANTS, **changes})

    return make
