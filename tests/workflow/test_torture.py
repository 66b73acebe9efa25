"""The fastest part of `make torture`: damaged files of every kind, and every way of cheating, once."""

from collections import Counter
from random import Random

import pytest

from benchmarks.torments.cheats import READ, taken
from benchmarks.torments.mutations import READERS, run_batch
from fujinsplat.core import landlock

SEED = "2"


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(built, tmp_path, name):
    files = sorted(built.folder.glob(READERS[name][0]))
    assert files, f"the tiny build has no {name}"
    counts, losses = Counter(), []
    run_batch(name, str(Random(SEED).choice(files)), SEED, 12, tmp_path, counts, losses)
    assert losses == [] and sum(counts.values()) == 12 and counts["refused"], counts


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("way", READ)
def test_no_way_of_reading_gets_past_the_boundary(built, copy_of_build, way):
    held = "results/demo/references/held/Kogarashi"
    path = sorted((built.folder / held).glob("*.png"))[0].relative_to(built.folder)
    assert not taken(copy_of_build.folder, way, str(path), "cheat")
    (copy_of_build.folder / "results/demo/gaussians/cheat").unlink(missing_ok=True)
    assert taken(copy_of_build.folder, way, str(path), "cheat", opens=[held]), "given, it can be read in this way"
