"""`make DEVICE=cuda`, with a Python that writes down what it is asked to do: no network, no GPU."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# stands for the interpreter in PATH and, linked by `-m venv`, for the environment's
PYTHON = """#!/bin/sh
echo "$@" >> {calls}
case "$*" in
  "-m venv "*) mkdir -p $3/bin && ln -sf {python} $3/bin/python ;;
  "-m fujinsplat.core.gpu") exec {real} -m fujinsplat.core.gpu ;;
  *"{failing}"*) [ -z "{failing}" ] || exit 1 ;;
esac
"""


class Folder:
    def __init__(self, path: Path):
        self.path, self.calls = path, path / "calls"
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, path)
        shutil.copytree(ROOT / "envs", path / "envs")
        (path / "fujinsplat" / "core").mkdir(parents=True)
        for name in ("__init__.py", "core/__init__.py", "core/errors.py", "core/gpu.py"):
            shutil.copy(ROOT / "fujinsplat" / name, path / "fujinsplat" / name)
        (path / "bin").mkdir()

    def card(self, *capabilities: str) -> None:
        smi = self.path / "bin" / "nvidia-smi"
        lines = [f"{i}, GPU-{i}{i}, A card, {capability}, 16384, 16000" for i, capability in enumerate(capabilities)]
        smi.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        smi.chmod(0o755)

    def make(self, *arguments: str, failing: str = "") -> tuple[int, list[str], str]:
        """Exit status, what Python was asked for, and what was said."""
        python = self.path / "bin" / "python3"
        values = {"calls": self.calls, "python": python, "real": shutil.which("python3"), "failing": failing}
        python.write_text(PYTHON.format(**values))
        python.chmod(0o755)
        self.calls.write_text("")
        environment = {**os.environ, "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}", "MAKEFLAGS": ""}
        # a make within `make test` would tell of the folders that it enters
        for name in ("PYTHONPATH", "MAKELEVEL"):
            environment.pop(name, None)
        done = subprocess.run(
            ["make", *arguments], cwd=self.path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, self.calls.read_text().splitlines(), done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Folder:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return Folder(tmp_path)


def installed(calls: list[str]) -> list[str]:
    return [
        word.removeprefix("envs/torch-") for call in calls for word in call.split() if word.startswith("envs/torch-")
    ]


def test_a_cpu_environment_is_rebuilt_for_cuda_and_back(folder):
    folder.card("7.0")
    assert installed(folder.make("setup")[1]) == ["cpu.txt"]
    (folder.path / ".venv" / "leftover").touch()
    status, calls, said = folder.make("setup", "DEVICE=cuda")
    assert status == 0, said
    assert "-m venv .venv" in calls and not (folder.path / ".venv" / "leftover").exists(), "made anew"
    assert installed(calls) == ["cu126.txt"] and calls[-1] == "-m fujinsplat.warmup"
    assert folder.make("setup", "DEVICE=cuda")[1] == [], "once"
    assert folder.make("setup")[1] == [], "plain make keeps what is there"
    assert installed(folder.make("setup", "DEVICE=cpu")[1]) == ["cpu.txt"]


@pytest.mark.parametrize("capability, build", [("7.0", "cu126"), ("8.9", "cu126"), ("9.0", "cu126"), ("12.0", "cu130")])
def test_the_wheel_is_the_cards(folder, capability, build):
    folder.card(capability)
    assert installed(folder.make("setup", "DEVICE=cuda")[1]) == [f"{build}.txt"]
    assert installed(folder.make("setup", "DEVICE=cuda", "CUDA=cu130")[1]) == (
        [] if build == "cu130" else ["cu130.txt"]
    )


def test_cards_of_two_kinds_are_set_up_for_one_after_the_other(folder, monkeypatch):
    folder.card("7.0", "12.0")
    status, calls, said = folder.make("setup", "DEVICE=cuda")
    assert status != 0 and installed(calls) == [] and "CUDA_VISIBLE_DEVICES" in said
    for uuid, build in (("GPU-00", "cu126"), ("GPU-11", "cu130")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", uuid)
        shutil.rmtree(folder.path / ".venv", ignore_errors=True)
        assert installed(folder.make("setup", "DEVICE=cuda")[1]) == [f"{build}.txt"]


def test_an_interrupted_setup_goes_on(folder):
    folder.make("setup")
    status, _, said = folder.make("setup", "DEVICE=cuda", failing="--requirement envs/torch-cu126.txt")
    assert status != 0 and "cu126 wheel index" in said
    (folder.path / ".venv" / "downloaded").touch()
    status, calls, _ = folder.make("setup", "DEVICE=cuda")
    assert status == 0 and installed(calls) == ["cu126.txt"]
    assert (folder.path / ".venv" / "downloaded").exists(), "nothing is thrown away that fits"
    assert [path.name for path in (folder.path / ".venv").glob("*-cu*")] == ["ready-cu126"]


def test_plain_make_goes_on_with_a_setup_for_cuda(folder):
    folder.make("setup", "DEVICE=cuda", "CUDA=cu130", failing="--requirement envs/torch-cu130.txt")
    (folder.path / ".venv" / "downloaded").touch()
    status, calls, said = folder.make("setup")
    assert status == 0 and installed(calls) == ["cu130.txt"], said
    assert (folder.path / ".venv" / "downloaded").exists()


@pytest.mark.parametrize("wrong", ["DEVICE=gpu", "CUDA=cu128"])
def test_a_build_that_does_not_exist_is_a_sentence(folder, wrong):
    device = [] if wrong.startswith("DEVICE") else ["DEVICE=cuda"]
    folder.make("setup")
    status, calls, said = folder.make("setup", *device, wrong)
    assert status != 0 and calls == [] and len(said.splitlines()) == 1, said
    assert all(words in said for words in (wrong.partition("=")[2], "DEVICE=cpu", "CUDA=cu126", "CUDA=cu130"))
    assert (folder.path / ".venv" / "ready-cpu").exists(), "nothing was touched"


def test_a_setup_without_kernels_is_not_ready(folder):
    status, _, _ = folder.make("setup", "DEVICE=cuda", failing="-m fujinsplat.warmup")
    assert status != 0 and not list((folder.path / ".venv").glob("ready-*"))


def test_a_card_older_than_every_build_is_a_sentence(folder):
    folder.card("3.5")
    status, calls, said = folder.make("setup", "DEVICE=cuda")
    assert status != 0 and "older than any torch build" in said and installed(calls) == []


def test_every_build_has_its_requirements():
    for build in ("cpu", "cu126", "cu130"):
        lines = (ROOT / "envs" / f"torch-{build}.txt").read_text().splitlines()
        assert any(line.startswith("torch=") for line in lines)
    cuda = (ROOT / "envs" / "cuda.yaml").read_text()
    for package in ("cuda-nvcc", "gxx", "torchvision", "ninja"):
        assert f"- {package}" in cuda, package
