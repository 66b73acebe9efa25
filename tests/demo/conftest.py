"""Small demo folders, made once per session."""

from pathlib import Path

import pytest

from fujinsplat.core.settings import DemoSettings

SMALL = DemoSettings(width=96, height=64, source_views=6, held_views=2, points=500, external=6)
TINY = DemoSettings(width=32, height=32, source_views=2, held_views=1, points=60, external=2)


@pytest.fixture(scope="session")
def small() -> DemoSettings:
    return SMALL


@pytest.fixture(scope="session")
def tiny() -> DemoSettings:
    return TINY


@pytest.fixture(scope="session")
def scene(tmp_path_factory, small) -> Path:
    """One small scene with a wide range of smoke."""
    from fujinsplat.demo import write_scene

    root = tmp_path_factory.mktemp("demo")
    write_scene(root, "Minami", small, threads=2)
    return root / "Minami"


@pytest.fixture(scope="session")
def external(tmp_path_factory, small) -> Path:
    from fujinsplat.demo import write_external

    folder = tmp_path_factory.mktemp("demo") / "external"
    write_external(folder, small, threads=2)
    return folder


@pytest.fixture(scope="session")
def decode():
    """Linear RAW `[H, W, 3]` of a DNG on the picture's grid: LibRaw with unit multipliers, then area-averaged."""
    import numpy as np
    import rawpy

    def decode(path: Path) -> np.ndarray:
        with rawpy.imread(str(path)) as file:
            raw = file.postprocess(
                demosaic_algorithm=rawpy.DemosaicAlgorithm.AHD, user_wb=[1, 1, 1, 1], no_auto_bright=True, gamma=(1, 1),
                output_color=rawpy.ColorSpace.raw, output_bps=16, adjust_maximum_thr=0.0,
            )  # fmt: skip
        h, w, _ = raw.shape
        return (raw / 65535).reshape(h // 2, 2, w // 2, 2, 3).mean((1, 3))

    return decode
