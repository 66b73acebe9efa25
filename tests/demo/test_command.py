"""`fujinsplat demo`: thin commands that leave nothing behind when they refuse."""

import json
import subprocess
import sys

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "fujinsplat", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_scene_and_settings(tmp_path, tiny):
    settings = json.dumps(tiny.model_dump())
    done = run("scene", str(tmp_path / "root"), "Nowaki", "--settings", settings, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert {p.name for p in (tmp_path / "root" / "Nowaki").iterdir()} == {
        "train", "val", "test", "sparse", "point3d.ply",
        "transforms_train.json", "transforms_val.json", "transforms_test.json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("scene", "{root}", "external"), "external"),
        (("scene", "{root}", "a/b"), "a/b"),
        (("scene", "{root}", "Nowaki", "--settings", '{"widht": 32}'), "did you mean 'width'"),
        (("scene", "{root}", "Nowaki", "--settings", '{"width": 33}'), "width"),
        (("scene", "{file}", "Nowaki", "--settings", '{"width": 32, "height": 32, "source_views": 2}'), "cannot write"),
        (("external", "{file}/external", "--settings", '{"width": 32, "height": 32, "external": 1}'), "cannot write"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(tmp_path, arguments, words):
    root, file = tmp_path / "root", tmp_path / "file"
    file.write_text("not a folder")
    done = run(*(a.replace("{root}", str(root)).replace("{file}", str(file)) for a in arguments))
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"] and file.read_text() == "not a folder"
