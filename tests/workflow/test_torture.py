"""The fastest part of `make torture`: damaged files of every kind, and every way of cheating, once."""

from collections import Counter
from random import Random

import pytest
import torch  # noqa: F401 - once, instead of in every batch's process
from PIL import Image

from benchmarks.torments.cheats import READ, taken
from benchmarks.torments.mutations import READERS, run_batch
from fujinsplat.core import landlock

SEED = "2"
HELD = "results/demo/references/held/Kogarashi"


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(built, tmp_path, name):
    files = sorted(built.folder.glob(READERS[name][0]))
    assert files, f"the tiny build has no {name}"
    counts, losses = Counter(), []
    run_batch(name, str(Random(SEED).choice(files)), SEED, 12, tmp_path, counts, losses)
    assert losses == [] and sum(counts.values()) == 12 and counts["refused"], counts


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("way", READ)
def test_no_way_of_reading_gets_past_the_boundary(tmp_path, way):
    held = tmp_path / HELD
    held.mkdir(parents=True)
    (tmp_path / "results/demo/gaussians").mkdir()
    Image.new("RGB", (6, 4)).save(held / "0001.png")
    assert not taken(tmp_path, way, f"{HELD}/0001.png", "cheat")
    (tmp_path / "results/demo/gaussians/cheat").unlink(missing_ok=True)
    assert taken(tmp_path, way, f"{HELD}/0001.png", "cheat", opens=[HELD]), "given, it can be read in this way"
