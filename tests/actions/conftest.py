"""A captured scene on disk, small, with a known uniform veil, in the layout the capture stage writes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fujinsplat.core.color import decode
from fujinsplat.core.files import write_json

GAINS = (2.0, 1.0, 1.6)


@dataclass(frozen=True)
class Scene:
    """Folders `source` and `clean`, the base's file, and the planted veil of each view (RAW coordinate)."""

    source: Path
    clean: Path
    base: Path
    veils: dict[str, tuple[float, tuple[float, float, float]]]


def write_views(folder: Path, raws: dict[str, np.ndarray], base) -> None:
    from PIL import Image

    from fujinsplat.isp import develop, materialize

    folder.mkdir(parents=True)
    for stem, raw in raws.items():
        levels = np.round(np.clip(raw, 0, 1) * 65535).astype(np.uint16)
        np.save(folder / f"{stem}.npy", levels)
        Image.fromarray(materialize(develop(base, levels.astype(np.float32) / 65535))).save(folder / f"{stem}.png")
    write_json(folder / "views.json", [{"stem": stem, "white_balance": GAINS, "camera_matrix": None} for stem in raws])


@pytest.fixture(scope="session")
def scene(tmp_path_factory) -> Scene:
    """Four crops of a photograph as four views; a camera that is exactly a Base ISP."""
    from skimage.data import astronaut

    from fujinsplat.isp import BaseISP, save

    folder = tmp_path_factory.mktemp("Mine")
    base = BaseISP(base_exposure=0.5, base_white_balance=np.log(GAINS) - np.log(GAINS).mean())
    save(base, folder / "base.safetensors", scene="Mine")
    picture = 0.25 * decode(astronaut() / 255.0) / np.array(GAINS) + 0.002
    veils = {f"{i:04d}": (t, (0.05, 0.11, 0.07)) for i, t in enumerate((0.25, 0.4, 0.6, 0.8), start=1)}
    cleans = {stem: picture[40 * i : 40 * i + 240 : 4, 100:420:4] for i, stem in enumerate(veils)}
    hazes = {stem: t * cleans[stem] + (1 - t) * np.array(pivot) for stem, (t, pivot) in veils.items()}
    write_views(folder / "source", hazes, base)
    write_views(folder / "clean", cleans, base)
    return Scene(folder / "source", folder / "clean", folder / "base.safetensors", veils)
