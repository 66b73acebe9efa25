"""Killed at any moment, a training run continues and ends with the same bits as an unbroken one."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

SETTINGS = {
    "iterations": 260,
    "sh_degree": 1,
    "densify_every": 10,
    "max_gaussians": 500,
    "bake_steps": 8,
    "checkpoint_seconds": 0.02,
}
OUTPUTS = {"out": "a.ply", "model": "a.linear.safetensors", "log": "a.log.jsonl", "reconciled": "a.delta.json"}


def start(files, folder):
    command = [sys.executable, "-m", "fujinsplat", "splat", "train", *files.arguments(), "--reconcile=delta"]
    command += [f"--{name}={folder / file}" for name, file in OUTPUTS.items()]
    command += [f"--checkpoints={folder / 'checkpoints'}", "--threads=1", "--device=cpu"]
    return subprocess.Popen(
        [*command, "--settings", json.dumps({"splat": SETTINGS})], stderr=subprocess.PIPE, text=True
    )


def lines(folder):
    log = folder / "checkpoints" / "log.jsonl"
    return log.read_text().count("\n") if log.exists() else 0


def kill_at(process, folder, line, number):
    """Send the signal once the training log has reached `line`; returns the exit code, or None if it finished first."""
    while process.poll() is None and lines(folder) < line:
        time.sleep(0.002)
    if process.poll() is None:
        process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def result(folder):
    files = {name: (folder / file).read_bytes() for name, file in OUTPUTS.items() if name != "log"}
    entries = [json.loads(line) for line in (folder / OUTPUTS["log"]).read_text().splitlines()]
    for entry in entries:
        for measured in ("seconds", "iterations_per_second", "memory_mb"):
            entry.pop(measured, None)
    return files, entries


@pytest.fixture(scope="module")
def unbroken(scene_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    process = start(scene_files, folder)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert not (folder / "checkpoints").exists()
    return result(folder)


@pytest.mark.parametrize("numbers", [(signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)], ids=["kill-term-kill"])
def test_a_run_killed_at_random_moments_ends_the_same(scene_files, tmp_path, unbroken, numbers):
    seed = int(os.environ.get("KILL_SEED", time.time_ns() % 2**32))
    moments = random.Random(seed)
    line = 0
    for number in numbers:
        line += moments.randint(5, 40)
        code, errors = kill_at(start(scene_files, tmp_path), tmp_path, line, number)
        assert code in (-signal.SIGKILL, 128 + signal.SIGTERM, -signal.SIGTERM, 0), f"KILL_SEED={seed}\n{errors}"
        if code == 128 + signal.SIGTERM:
            assert "checkpoint" in errors
        if code != 0:
            assert not any((tmp_path / file).exists() for file in OUTPUTS.values()), f"KILL_SEED={seed}"
    process = start(scene_files, tmp_path)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, f"KILL_SEED={seed}\n{errors}"
    assert result(tmp_path) == unbroken, f"KILL_SEED={seed}"


def test_sigterm_saves_the_very_last_iteration(scene_files, tmp_path):
    code, errors = kill_at(start(scene_files, tmp_path), tmp_path, 10, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, errors
    import torch

    state = torch.load(tmp_path / "checkpoints" / "state.pt", weights_only=True)
    assert state["iteration"] >= 20 and f"iteration {state['iteration']}" in errors
