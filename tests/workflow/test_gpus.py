"""Locally as many GPU jobs run at once as there are GPUs, each on one of its own: shown with pretend GPUs."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from fujinsplat.core import gpu
from fujinsplat.workflow import Plan

ROOT = Path(__file__).parents[2]
JOBS, GPUS = 5, 2

# a job as ours are: it claims a device for as long as its process lives
JOB = """
import sys, time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fujinsplat.core.runtime import claim

begin = time.time()
device = claim([str(i) for i in range(int(sys.argv[2]))], Path("locks"))
time.sleep(0.6)
Path(sys.argv[1]).write_text(f"{device} {begin} {time.time()}")
"""

SNAKEFILE = f"""
from fujinsplat.compat.snakemake_rules import bound

bound(workflow, "gpu", {GPUS})

rule all:
    input: expand("out/{{job}}", job=range({JOBS}))

rule train:
    output: "out/{{job}}"
    resources: gpu=1
    shell: "{sys.executable} job.py {{output}} {GPUS}"
"""


def run(folder: Path, *arguments: str) -> list[tuple[int, float, float]]:
    """(device, begin, end) of each job."""
    (folder / "locks").mkdir(parents=True)
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "snakemake", "--cores", str(JOBS), "--quiet", "all", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    words = [(folder / "out" / str(job)).read_text().split() for job in range(JOBS)]
    return [(int(device), float(begin), float(end)) for device, begin, end in words]


def test_two_jobs_never_share_a_gpu(tmp_path):
    jobs = run(tmp_path)
    assert {device for device, _, _ in jobs} == set(range(GPUS)), "and all are used"
    for device in range(GPUS):
        turns = sorted((begin, end) for own, begin, end in jobs if own == device)
        assert all(first[1] <= second[0] for first, second in pairwise(turns)), turns


def test_the_command_line_has_the_last_word(tmp_path):
    turns = sorted((begin, end) for _, begin, end in run(tmp_path, "--resources", "gpu=1"))
    assert all(first[1] <= second[0] for first, second in pairwise(turns))


def test_the_bound_is_the_machines(monkeypatch):
    import yaml

    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    monkeypatch.setattr(gpu, "count", lambda: 3)
    assert Plan({**config, "device": "auto"}).gpus == 3
    assert Plan({**config, "device": "cpu"}).gpus == 0
    monkeypatch.setattr(gpu, "count", lambda: 0)
    assert Plan({**config, "device": "auto"}).gpus == 0, "without a GPU, cores are the bound"


CARDS = """
from fujinsplat.compat.snakemake_rules import fill_in

rule all:
    input: "with", "without"

rule stage_with:
    output: "with"
    resources: gpu=1
    shell: "touch {output}"

rule stage_without:
    output: "without"
    shell: "touch {output}"

fill_in(workflow, log="logs/{job}", benchmark="benchmarks/{job}", conda="none.yaml", params=lambda rule: {})
"""


def test_type_and_feature_of_a_profile_are_for_jobs_with_a_gpu(tmp_path):
    """`gpu_model` and `constraint` are what the SLURM plugin turns into --gpus=MODEL:1 and -C."""
    (tmp_path / "Snakefile").write_text(CARDS)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "1"]
    command += ["--default-resources", "gpu_model=v100", "gpu_constraint=gpu32gb"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("resources:")]
    asking, others = ([line for line in lines if f"gpu={count}" in line] for count in (1, 0))
    assert len(asking) == 1 and "gpu_model=v100" in asking[0] and " constraint=gpu32gb" in asking[0]
    assert len(others) == 1 and "v100" not in others[0] and "gpu32gb" not in others[0]


@pytest.mark.parametrize(
    "device, present, chosen",
    [("cuda", False, "cuda"), ("auto", True, "cuda"), ("auto", False, "cpu"), ("cpu", True, "cpu")],
)
def test_the_conda_environment_is_the_devices(monkeypatch, device, present, chosen):
    monkeypatch.setenv("FUJINSPLAT_CONDA", "")
    monkeypatch.setattr(gpu, "present", lambda: present)
    plan = Plan.__new__(Plan)
    plan.config = SimpleNamespace(device=device)  # pyright: ignore[reportAttributeAccessIssue]
    assert plan.conda == f"../envs/{chosen}.yaml"
    # a job of this build on a machine of the other kind
    monkeypatch.setattr(gpu, "present", lambda: not present)
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode", "remote"])
    assert plan.conda == f"../envs/{chosen}.yaml"


def test_conda_compiles_the_kernels_once_in_the_new_environment(tmp_path):
    """The script lies where Snakemake looks for it, and warms up this checkout with the environment's own Python."""
    script = ROOT / "envs" / "cuda.post-deploy.sh"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$PYTHONPATH $*" >> {tmp_path}/calls\n')
    python.chmod(0o755)
    environment = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    command = ["bash", str(script)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert (tmp_path / "calls").read_text() == f"{ROOT} -m fujinsplat.warmup\n"
    elsewhere = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert f"{python} -m fujinsplat.warmup" in elsewhere.stderr, "a build with --directory is told what to do"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
