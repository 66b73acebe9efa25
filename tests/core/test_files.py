"""Outputs are whole or absent."""

import errno
import os
import subprocess

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from PIL import Image

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, atomic_folder, read_json, write_json


def test_a_failed_write_leaves_the_old_file_and_no_remains(tmp_path):
    path = tmp_path / "a" / "x.npy"
    with atomic_file(path) as temporary:
        np.save(temporary, np.ones(3))
    with pytest.raises(RuntimeError), atomic_file(path) as temporary:
        np.save(temporary, np.zeros(3))
        raise RuntimeError
    assert np.load(path).sum() == 3
    assert [p.name for p in path.parent.iterdir()] == ["x.npy"]


def test_a_folder_appears_whole_and_replaces_the_old_one(tmp_path):
    for content in ("one", "two"):
        with atomic_folder(tmp_path / "out") as temporary:
            (temporary / content).write_text(content)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["two"]
    with pytest.raises(RuntimeError), atomic_folder(tmp_path / "other") as temporary:
        (temporary / "x").write_text("x")
        raise RuntimeError
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_unwritable_place_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*writable"):
        write_json(tmp_path / "file" / "x.json", {})


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match="no space left"), atomic_folder(tmp_path / "out") as temporary:
        (temporary / "half").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not let a test mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


NOISE = np.random.default_rng(0).integers(0, 255, (400, 400, 3), np.uint8)
WRITERS = {
    "text.json": lambda path: path.write_text(str(NOISE.tolist())),
    "array.npy": lambda path: np.save(path, NOISE),
    "picture.png": lambda path: Image.fromarray(NOISE).save(path),
    "tensors.safetensors": lambda path: safetensors.torch.save_file({"x": torch.from_numpy(NOISE)}, path),
    "arrays.safetensors": lambda path: safetensors.numpy.save_file({"x": NOISE}, path),
    "state.pt": lambda path: torch.save({"x": torch.from_numpy(NOISE)}, path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_really_full_disk_is_one_sentence_whoever_writes(small_disk, name):
    with (
        pytest.raises(UserError, match=rf"cannot write .*{name}: .*; free space"),
        atomic_file(small_disk / name) as path,
    ):
        WRITERS[name](path)
    with (
        pytest.raises(UserError, match=r"cannot write .*views: .*; free space"),
        atomic_folder(small_disk / "views") as path,
    ):
        WRITERS[name](path / name)
    assert list(small_disk.iterdir()) == []


def test_an_inputs_error_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "out" / "x.txt"):
        (tmp_path / "elsewhere" / "absent.txt").read_text()


def test_json_is_reproducible_and_refuses_nan(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5]})
    write_json(tmp_path / "b.json", {"a": [1.5], "b": 1})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_json(tmp_path / "a.json") == {"a": [1.5], "b": 1}
    with pytest.raises(ValueError):
        write_json(tmp_path / "c.json", float("nan"))
    (tmp_path / "d.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read_json(tmp_path / "d.json")


def test_files_are_as_readable_as_the_umask_says(tmp_path):
    from fujinsplat.core.files import write_tensors

    write_tensors(tmp_path / "x.safetensors", {"a": np.ones(2)}, {})
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "x.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_in_the_place_of_a_file_is_not_blamed_on_space(tmp_path):
    (tmp_path / "x.json").mkdir()
    with pytest.raises(UserError, match="is a directory; correct the path, or move away what lies there"):
        write_json(tmp_path / "x.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_folder_that_holds_anything_else_is_not_replaced(tmp_path):
    out = tmp_path / "holiday"
    for content in ("first", "second"):  # what was made before is replaced
        with atomic_folder(out, (".png",)) as temporary:
            (temporary / f"{content}.png").write_text(content)
    (out / "2019").mkdir()
    (out / "2019" / "DSC1.ARW").write_text("a photograph")
    with pytest.raises(UserError, match=r"holiday holds '2019/DSC1.ARW', which .* would be lost; name another folder"):
        with atomic_folder(out, (".png",)):
            raise AssertionError("nothing is begun")
    assert (out / "2019" / "DSC1.ARW").is_file() and (out / "second.png").is_file() and not (out / "first.png").exists()
    with pytest.raises(UserError, match="is a file, where a folder"), atomic_folder(out / "second.png", (".png",)):
        raise AssertionError("nothing is begun")
    assert [path.name for path in tmp_path.iterdir()] == ["holiday"]
