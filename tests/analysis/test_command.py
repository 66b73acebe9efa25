"""`fujinsplat analysis` as the rules call it: five files per study, the paper's numbers marked as such."""

import csv
import json

import pytest


@pytest.fixture(scope="module")
def actions(scene, tmp_path_factory):
    from fujinsplat import flow
    from fujinsplat.actions.fit import fit_scene
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.settings import ActionsSettings
    from fujinsplat.isp import load

    path = tmp_path_factory.mktemp("actions") / "base.safetensors"
    views = SourceViews(scene.source), SourceViews(scene.clean)
    flow.save(path, fit_scene(load(scene.base), *views, ActionsSettings(steps=30, pixels=300), 7, 16))
    return path


@pytest.mark.parametrize("study", ["rank-one", "base-fidelity", "observability", "family"])
def test_each_study_writes_its_five_files(fujinsplat, scene, actions, tmp_path, study):
    parts = {"source": scene.source, "clean": scene.clean, "base": scene.base, "actions": actions}
    wanted = {"family": ("source", "actions"), "observability": tuple(parts)}.get(study, ("source", "clean", "base"))
    options = [x for part in wanted for x in (f"--{part}", parts[part])]
    if study in ("family", "observability"):
        options += ["--settings", '{"classifier_steps": 5, "refits": 2}']
    if study == "observability":
        options += ["--fit-settings", '{"steps": 20, "pixels": 300}', "--pair", "base/0002"]
    fujinsplat("analysis", study, *options, "--out", tmp_path, "--threads", 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "figure.pdf",
        "figure.png",
        "result.json",
        "result.txt",
        "table.csv",
    ]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["published on RealX3D"] and result["result"]
    text = (tmp_path / "result.txt").read_text()
    assert text.count("\n") == 1 and "published on RealX3D" in text and text.strip() == result["sentence"]
    header = (tmp_path / "table.csv").read_text()
    assert "published on RealX3D" in header and len(list(csv.reader(header.splitlines()))) > 1


def test_mismatched_lists_are_explained(fujinsplat, scene, tmp_path):
    done = fujinsplat("analysis", "rank-one", "--source", scene.source, "--clean", scene.clean, "--base", scene.base,
                      "--base", scene.base, "--out", tmp_path, code=2)  # fmt: skip
    assert "1 --source, 1 --clean, 2 --base" in done.stderr and not list(tmp_path.iterdir())
