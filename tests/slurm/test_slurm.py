"""The workflow on a real SLURM, started on this machine for these tests and stopped by pid afterwards."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLUSTER = Path(__file__).with_name("cluster.sh")
PROFILE = ("--profile", str(ROOT / "slurm"))
QUICK = (
    *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"),
    *("--latency-wait", "5"),
)

# what two runs may differ in: times, and what tells of them
VOLATILE = re.compile(r"/(logs|benchmarks|checkpoints|figures)/|report\.html$|\.log\.jsonl$|/metrics/.*\.json$")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if not os.environ.get("FUJINSPLAT_TEST_SLURM"):
        pytest.skip("set FUJINSPLAT_TEST_SLURM=1 to start a SLURM on this machine (as root; several minutes)")
    if os.geteuid() != 0:
        pytest.skip("starting a SLURM needs root")
    if not (shutil.which("slurmctld") and shutil.which("munged")):
        pytest.skip("no SLURM here: apt-get install slurm-wlm munge")
    state = tmp_path_factory.mktemp("slurm")
    subprocess.run([CLUSTER, "start", state], check=True, timeout=120)
    yield state
    subprocess.run([CLUSTER, "stop", state], check=False, timeout=60)


def differing(left: Path, right: Path) -> list[str]:
    """Result files that are missing on one side or differ."""
    names = {
        str(path.relative_to(folder))
        for folder in (left, right)
        for path in (folder / "results").rglob("*")
        if path.is_file() and not VOLATILE.search(f"/{path.relative_to(folder)}")
    }
    _, mismatched, missing = filecmp.cmpfiles(left, right, sorted(names), shallow=False)
    return [*mismatched, *missing]


def queued(rule: str) -> list[str]:
    """Ids of the running jobs of one rule."""
    listed = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i %k"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listed.stdout.splitlines() if rule in line]


def test_a_cluster_run_gives_the_files_of_a_local_one(cluster, built, make_workspace, tmp_path):
    scenes = built.config()["datasets"]["demo"]["scenes"]
    workspace = make_workspace(tmp_path, scenes, build="main")
    workspace.snakemake(*PROFILE, *QUICK, timeout=1500)
    assert differing(built.folder, workspace.folder) == []
    assert list((workspace.folder / "logs/slurm").rglob("*.log")), "job logs lie where the profile says"


def test_a_cancelled_training_continues_from_its_checkpoint(cluster, built, tmp_path):
    target = "results/demo/gaussians/Kogarashi/raw_base.ply"
    copies = {}
    for name in ("local", "slurm"):
        shutil.copytree(built.folder, tmp_path / name, symlinks=True)
        copies[name] = type(built)(tmp_path / name)
        config = built.config()
        config["datasets"]["demo"]["settings"]["splat"].update(iterations=2500, checkpoint_seconds=1)
        copies[name].write_config(config)
    copies["local"].snakemake(target)

    workspace = copies["slurm"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), target]
    command += [*PROFILE, *QUICK, "--retries", "0"]
    log = (tmp_path / "first.log").open("w")
    process = subprocess.Popen(command, cwd=workspace.folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        checkpoints = workspace.folder / "results/demo/checkpoints/Kogarashi/raw_base"
        deadline = time.monotonic() + 180
        while not (checkpoints.is_dir() and any(checkpoints.iterdir())):
            assert time.monotonic() < deadline and process.poll() is None, (tmp_path / "first.log").read_text()[-3000:]
            time.sleep(0.5)
        subprocess.run(["scancel", *queued("splat_train")], check=True)
        assert process.wait(timeout=120) != 0, "the cancelled job fails the run"
    finally:
        process.kill()
    assert not (workspace.folder / target).exists(), "nothing half-written is taken as done"

    workspace.snakemake(target, *PROFILE, *QUICK)
    assert (
        "continuing at iteration" in (workspace.folder / "results/demo/logs/splat/Kogarashi.raw_base.log").read_text()
    )
    model = "results/demo/gaussians/Kogarashi/raw_base.linear.safetensors"
    assert filecmp.cmp(copies["local"].folder / model, workspace.folder / model, shallow=False)


SNAKEFILE = """
from fujinsplat.workflow import Plan

rule all:
    input: "memory.txt", "gpu.txt"

rule memory:
    output: "memory.txt"
    resources: mem_mb=Plan.grows(500), runtime=5
    shell: "python3 -c 'x = bytearray(550 << 20); import time; time.sleep(8)' && touch {output}"

rule gpu:
    output: "gpu.txt"
    resources: mem_mb=400, runtime=5, gpu=1
    shell: "echo device=$CUDA_VISIBLE_DEVICES > {output}"
"""


def test_a_memory_kill_is_retried_with_more_and_a_gpu_is_given(cluster, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *PROFILE, *QUICK],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-4000:]
    assert (tmp_path / "gpu.txt").read_text().strip() == "device=0"
    assert "mem_mb=1000" in text, "the second attempt asks for twice the memory"
