"""The same seed gives the same bytes, on any number of threads and beside any other scene; another seed does not."""

from pathlib import Path

import pytest

from fujinsplat.core.files import sha256
from fujinsplat.demo import write_external, write_scene


def digests(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): sha256(p) for p in files}


@pytest.fixture(scope="module")
def first(tmp_path_factory, tiny) -> dict[str, str]:
    root = tmp_path_factory.mktemp("first")
    write_scene(root, "Kogarashi", tiny, threads=1)
    return digests(root / "Kogarashi")


def test_same_seed_same_bytes_on_other_threads_and_after_another_scene(first, tiny, tmp_path):
    write_scene(tmp_path, "Hayate", tiny, threads=1)
    write_scene(tmp_path, "Kogarashi", tiny, threads=3)
    assert digests(tmp_path / "Kogarashi") == first
    assert digests(tmp_path / "Hayate") != first


def test_another_seed_is_another_world(first, tiny, tmp_path):
    write_scene(tmp_path, "Kogarashi", tiny.model_copy(update={"seed": tiny.seed + 1}), threads=1)
    other = digests(tmp_path / "Kogarashi")
    assert other.keys() == first.keys()
    pictures = [name for name in first if name.endswith((".dng", ".JPG", ".ply"))]
    assert pictures and not [name for name in pictures if other[name] == first[name]]


def test_any_name_makes_a_scene_of_its_own(first, tiny, tmp_path):
    write_scene(tmp_path, "Harmattan", tiny, threads=1)
    other = digests(tmp_path / "Harmattan")
    assert other.keys() == first.keys() and other["val/0001.dng"] != first["val/0001.dng"]


def test_external_captures_do_not_depend_on_threads_or_count(tiny, tmp_path):
    write_external(tmp_path / "one", tiny, threads=1)
    write_external(tmp_path / "two", tiny.model_copy(update={"external": 4}), threads=3)
    one, two = digests(tmp_path / "one"), digests(tmp_path / "two")
    pictures = [name for name in one if name != "captures.csv"]
    assert len(pictures) == 4 and all(one[name] == two[name] for name in pictures)


def test_what_was_there_is_replaced_as_a_whole(tiny, tmp_path):
    stale = tmp_path / "Kogarashi" / "train" / "9999.dng"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"old")
    write_scene(tmp_path, "Kogarashi", tiny, threads=1)
    assert not stale.exists() and sorted(p.name for p in tmp_path.iterdir()) == ["Kogarashi"]
