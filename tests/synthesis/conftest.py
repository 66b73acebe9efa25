"""A handful of external captures as real DNG files, and a small measured population."""

import csv
from pathlib import Path

import numpy as np
import pytest
import skimage.data

from fujinsplat.actions.population import Fit, Pair, Population
from fujinsplat.core.color import decode
from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.demo import sensor

WHITE_BALANCE = (2428 / 1024, 1.0, 1700 / 1024)


def photograph(number: int, height: int = 64, width: int = 96) -> np.ndarray:
    """A crop of a bundled photograph, linear light `[H, W, 3]`."""
    picture = (skimage.data.astronaut(), skimage.data.coffee(), skimage.data.cat())[number % 3][..., :3]
    top, left = 20 * number % (picture.shape[0] - height * 3), 30 * number % (picture.shape[1] - width * 3)
    return decode(picture[top : top + 3 * height : 3, left : left + 3 * width : 3] / 255.0)


def write_captures(folder: Path, count: int) -> Path:
    """NAME.dng, NAME.depth.npy and captures.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"capture{number}" for number in range(count)]
    for number, name in enumerate(names):
        random = np.random.default_rng(number)
        linear = photograph(number) * (0.15 + 0.1 * number / count) / np.array(WHITE_BALANCE)
        sensor.write_dng(folder / f"{name}.dng", sensor.expose(linear.astype(np.float32), random))
        depth = 1 + (1 + number / 3) * np.linspace(0, 1, 30)[None, :] * np.ones((20, 1))
        np.save(folder / f"{name}.depth.npy", depth.astype(np.float32))
    with (folder / "captures.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("name", "path", "split"))
        rows.writerows((name, f"{name}.dng", "train") for name in names)
    return folder


def make_population(count: int = 6) -> Population:
    """Pairs of two scenes with contrasts from 0.2 to 0.8 and pivots that are not quite grey."""
    pairs = []
    for number in range(count):
        t = 0.2 + 0.6 * number / max(count - 1, 1)
        tint = np.array([1.0, 1.0, 1.0]) + 0.1 * np.array([-1, 0, 1]) * (number - count / 2) / count
        pairs.append(
            Pair(
                scene="one" if number < count / 2 else "two",
                view=f"{number:04d}",
                white_balance=WHITE_BALANCE,
                raw=Fit(t=t, pivot=tuple(0.08 * tint / np.array(WHITE_BALANCE)), clean_median=0.05),
                base=Fit(t=t, pivot=tuple(0.25 * tint), clean_median=0.2),
            )
        )
    return Population.of(pairs, [])


@pytest.fixture(scope="session")
def external(tmp_path_factory) -> Path:
    """Six captures; read-only."""
    return write_captures(tmp_path_factory.mktemp("external"), 6)


@pytest.fixture(scope="session")
def population() -> Population:
    return make_population()


@pytest.fixture(scope="session")
def settings() -> SynthesisSettings:
    return SynthesisSettings(depth="files", shard=4, pixels=512, calibration_captures=3, light=0.3)


@pytest.fixture(scope="session")
def sampled(external, settings, tmp_path_factory):
    """All captures of `external`, sampled as one shard."""
    from fujinsplat.synthesis.captures import Captures, sample
    from fujinsplat.synthesis.sheet import read_sheet

    out = tmp_path_factory.mktemp("sampled") / "0000.safetensors"
    sample(read_sheet(external), out, settings)
    return Captures.load(out)


@pytest.fixture(scope="session")
def matrix(external, settings):
    from fujinsplat.synthesis.external import fit_matrix
    from fujinsplat.synthesis.sheet import read_sheet

    return fit_matrix(read_sheet(external), settings.calibration_captures)[0]
