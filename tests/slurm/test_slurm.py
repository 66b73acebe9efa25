"""The workflow on a real SLURM, started on this machine for these tests and stopped by pid afterwards."""

import filecmp
import itertools
import os
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
DAEMONS = ("munged", "slurmctld", "slurmd", "slurmstepd")

NOT_RESULTS = ("logs", "benchmarks", "checkpoints")
# these say how long the build took: they are there, and differ
TELL_TIMES = ("figures/pipeline.", "tables/seven_scenes.", "report.html")


def running(*names: str) -> set[str]:
    """Pids of the processes with these names."""
    listed = subprocess.run(["pgrep", "-x", "|".join(names)], capture_output=True, text=True, check=False)
    return set(listed.stdout.split())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if not os.environ.get("FUJINSPLAT_TEST_SLURM"):
        pytest.skip("set FUJINSPLAT_TEST_SLURM=1 to start a SLURM on this machine (as root; several minutes)")
    if os.geteuid() != 0:
        pytest.skip("starting a SLURM needs root")
    state = tmp_path_factory.mktemp("slurm")
    before = running(*DAEMONS)
    configuration = sorted(Path("/etc/slurm").glob("*.conf"))
    try:
        started = subprocess.run([CLUSTER, "start", state], stderr=subprocess.PIPE, text=True, timeout=900, check=False)
        if started.returncode == 3:
            pytest.skip(f"this machine does not let SLURM run: {started.stderr.strip()[-1500:]}")
        assert started.returncode == 0, started.stderr
        yield state
    finally:
        subprocess.run([CLUSTER, "stop", state], check=True, timeout=120)
    assert running(*DAEMONS) == before, "everything that was started is stopped, and nothing else"
    assert sorted(Path("/etc/slurm").glob("*.conf")) == configuration


def results(*folders: Path) -> list[Path]:
    """Every file below results/ and data/ of any of the folders, but for logs and time sheets."""
    names = {
        path.relative_to(folder)
        for folder in folders
        for part in ("results", "data")
        for path in (folder / part).rglob("*")
        if path.is_file() and not any(name in path.relative_to(folder).parts for name in NOT_RESULTS)
    }
    return sorted(names)


def submitted(run: str) -> list[dict[str, str]]:
    """Every job of one run as SLURM tells it: JobId, Comment (rule, wildcards), JobState, TresPerJob (GPUs)."""
    listed = subprocess.run(["scontrol", "show", "job", "-o"], capture_output=True, text=True, check=True)
    jobs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in listed.stdout.splitlines()]
    return [job for job in jobs if job.get("JobName") == run]


def run_name(log: str) -> str:
    """The name that all jobs of a run share, from Snakemake's own words."""
    return log.split("SLURM run ID: ")[1].split()[0]


def test_a_cluster_run_gives_the_files_of_a_local_one(cluster, built, make_workspace, tmp_path):
    scenes = built.config()["datasets"]["demo"]["scenes"]
    workspace = make_workspace(tmp_path, scenes, build="main")
    planned = sum(workspace.jobs().values())
    done = workspace.snakemake(*PROFILE, *QUICK, timeout=3000)
    names = results(built.folder, workspace.folder)
    assert len(names) > 100, "a whole build has more files"
    differing = workspace.differing(built, names)
    assert [name for name in differing if not name.startswith(tuple(f"results/demo/{one}" for one in TELL_TIMES))] == []
    assert all((workspace.folder / name).is_file() for name in names)

    run = run_name(done.stdout + done.stderr)
    assert run.startswith("fujinsplat_")
    jobs = submitted(run)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert len(jobs) < 0.8 * planned, "short jobs share submissions"
    assert not [job for job in jobs if "gpu" in job.get("TresPerJob", "")], "device: cpu asks for no GPU"
    training = next(job for job in jobs if "rule_splat_train" in job["Comment"] and "Hayate" in job["Comment"])
    logs = list((workspace.folder / "logs/slurm/rule_splat_train").rglob(f"{training['JobId']}.log"))
    assert len(logs) == 1 and "Hayate" in logs[0].parent.name, "rule and wildcards lead to a job's log"


def test_a_cancelled_training_continues_from_its_checkpoint(cluster, built, tmp_path):
    target = "results/demo/gaussians/Kogarashi/raw_base.ply"
    copies = {}
    for name in ("local", "slurm"):
        shutil.copytree(built.folder, tmp_path / name, symlinks=True)
        copies[name] = type(built)(tmp_path / name)
        config = built.config()
        config["datasets"]["demo"]["settings"]["splat"].update(iterations=1500, checkpoint_seconds=1)
        copies[name].write_config(config)
    copies["local"].snakemake(target)

    workspace = copies["slurm"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), target]
    command += [*PROFILE, *QUICK, "--retries", "0"]
    log = tmp_path / "first.log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=workspace.folder, stdout=stream, stderr=subprocess.STDOUT)
    try:
        checkpoints = workspace.folder / "results/demo/checkpoints/Kogarashi/raw_base"
        deadline = time.monotonic() + 240
        while not (checkpoints.is_dir() and any(checkpoints.iterdir())):
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.2)
        jobs = submitted(run_name(log.read_text()))
        subprocess.run(["scancel", *(job["JobId"] for job in jobs if job["JobState"] == "RUNNING")], check=True)
        assert process.wait(timeout=120) != 0, "the cancelled job fails the run"
    finally:
        process.kill()
        process.wait()
    assert [job["JobState"] for job in submitted(run_name(log.read_text()))] == ["CANCELLED"]
    assert not (workspace.folder / target).exists(), "nothing half-written is taken as done"

    workspace.snakemake(target, *PROFILE, *QUICK)
    said = (workspace.folder / "results/demo/logs/splat/train/Kogarashi.raw_base.log").read_text()
    assert "continuing at iteration" in said
    model = "results/demo/gaussians/Kogarashi/raw_base.linear.safetensors"
    assert filecmp.cmp(copies["local"].folder / model, workspace.folder / model, shallow=False)


def test_rules_that_profit_from_a_gpu_are_given_one_unless_the_config_says_cpu(cluster, copy_of_build):
    """Two renders of the real workflow share a bundle, and in turns the pretend GPU (torch sees none: uses the CPU)."""
    config = copy_of_build.config()
    config["device"] = "auto"
    copy_of_build.write_config(config)
    targets = [f"results/demo/renders/Kogarashi/{variant}" for variant in ("raw_base", "fujinsplat")]
    folders = [copy_of_build.folder / target for target in targets]
    before = {path: path.read_bytes() for folder in folders for path in folder.iterdir()}
    for folder in folders:
        shutil.rmtree(folder)
    done = copy_of_build.snakemake(*targets, "--rerun-triggers", "mtime", *PROFILE, *QUICK)
    (job,) = submitted(run_name(done.stdout + done.stderr))
    assert job["TresPerJob"] == "gres:gpu:1"
    assert {path: path.read_bytes() for folder in folders for path in folder.iterdir()} == before


# three jobs as the rules make them, each over one limit or in need of a device
SNAKEFILE = """
from fujinsplat.workflow import Plan

rule all:
    input: "memory.txt", "time.txt", "gpu.txt"

rule memory:
    output: "memory.txt"
    resources: mem_mb=Plan.grows(500), runtime=5
    shell: "python3 -c 'x = bytearray(550 << 20); import time; time.sleep(8)' && touch {output}"

rule time:
    output: "time.txt"
    resources: mem_mb=400, runtime=Plan.grows(1)
    shell: "while [ $(wc -l < seconds.log) -lt 100 ]; do echo x >> seconds.log; sleep 1; done; touch {output}"

rule gpu:
    output: "gpu.txt"
    resources: mem_mb=400, runtime=5, gpu=1
    shell: "echo device=$CUDA_VISIBLE_DEVICES > {output}"
"""


def test_jobs_over_their_memory_or_time_are_retried_with_more_and_a_gpu_is_given(cluster, tmp_path):
    """The minute of the time limit is SLURM's smallest; the job keeps what it did, as a training does."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "seconds.log").touch()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *PROFILE, *QUICK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-4000:]
    assert (tmp_path / "gpu.txt").read_text().strip() == "device=0"
    jobs = submitted(run_name(text))
    ends = {rule: [j["JobState"] for j in jobs if j["Comment"] == f"rule_{rule}"] for rule in ("memory", "time", "gpu")}
    assert ends["gpu"] == ["COMPLETED"]
    assert sorted(ends["time"]) == ["COMPLETED", "TIMEOUT"]
    assert ends["memory"].count("COMPLETED") == 1 and len(ends["memory"]) == 2, ends
    assert "mem_mb=1000" in text and "runtime=2" in text, "the second attempts ask for twice as much"


# jobs as ours are on a GPU: each says which device it was given, and when it had it
GPU_JOBS = """
from fujinsplat.compat.snakemake_rules import fill_in

rule all:
    input: expand("gpu/{job}", job=range(3)), "cpu/0"

rule stage_gpu:
    output: "gpu/{job}"
    resources: mem_mb=200, runtime=5, gpu=1
    shell: "date +%s.%N > {output}; sleep 4; echo $CUDA_VISIBLE_DEVICES >> {output}; date +%s.%N >> {output}"

rule stage_cpu:
    output: "cpu/{job}"
    resources: mem_mb=200, runtime=5
    shell: "touch {output}"

fill_in(workflow, log="logs/{job}", benchmark="benchmarks/{job}", conda="none.yaml", params=lambda rule: {})
"""


def test_two_jobs_never_share_a_gpu_and_its_kind_comes_from_the_profile(cluster, tmp_path):
    """One pretend GPU, three jobs; those without a GPU are asked for no model and no feature."""
    (tmp_path / "Snakefile").write_text(GPU_JOBS)
    kind = ("--default-resources", "mem_mb=200", "runtime=5", "gpu_model=pretend", "gpu_constraint=gpu16gb")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *PROFILE, *QUICK, *kind],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-4000:]
    turns = [(tmp_path / "gpu" / str(job)).read_text().split() for job in range(3)]
    assert {device for _, device, _ in turns} == {"0"}
    times = sorted((float(begin), float(end)) for begin, _, end in turns)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(times)), "one after the other"
    jobs = submitted(run_name(text))
    with_gpu = [job for job in jobs if "stage_gpu" in job["Comment"]]
    without = [job for job in jobs if "stage_cpu" in job["Comment"]]
    assert len(with_gpu) == 3 and {job["TresPerJob"] for job in with_gpu} == {"gres:gpu:pretend:1"}
    assert {job["Features"] for job in with_gpu} == {"gpu16gb"}
    assert {(job.get("TresPerJob"), job["Features"]) for job in without} == {(None, "(null)")}


def long_training(built, folder, name: str):
    """A copy of the build in which one training takes more than a minute."""
    shutil.copytree(built.folder, folder / name, symlinks=True)
    copy = type(built)(folder / name)
    config = built.config()
    config["datasets"]["demo"]["settings"]["splat"].update(iterations=20000, max_gaussians=3000, checkpoint_seconds=2)
    copy.write_config(config)
    return copy


MODEL = "results/demo/gaussians/Kogarashi/raw_base.linear.safetensors"
LOG = "results/demo/logs/splat/train/Kogarashi.raw_base.log"


def test_a_training_killed_for_time_goes_on_when_it_is_tried_again(cluster, built, tmp_path):
    """SLURM ends it after a minute, its shortest limit; each attempt starts where the last one was killed."""
    workspace = long_training(built, tmp_path, "time")
    limits = ("--set-resources", "splat_train:runtime=1", "--retries", "20")
    done = workspace.snakemake(MODEL, *PROFILE, *QUICK, *limits, timeout=1500)
    states = [job["JobState"] for job in submitted(run_name(done.stdout + done.stderr))]
    assert states.count("TIMEOUT") >= 1 and states.count("COMPLETED") == 1, states
    assert "continuing at iteration" in (workspace.folder / LOG).read_text()
    assert not (workspace.folder / "results/demo/checkpoints/Kogarashi/raw_base").exists()


def test_a_requeued_training_goes_on_from_its_checkpoint(cluster, built, tmp_path):
    """As after the failure of a node: SLURM starts the same job again, on whatever node is free."""
    workspace = long_training(built, tmp_path, "requeue")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), MODEL, *PROFILE, *QUICK]
    log = tmp_path / "snakemake.log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=workspace.folder, stdout=stream, stderr=subprocess.STDOUT)
    try:
        state = workspace.folder / "results/demo/checkpoints/Kogarashi/raw_base/state.pt"
        deadline = time.monotonic() + 240
        while not state.exists():
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.2)
        (job,) = (job for job in submitted(run_name(log.read_text())) if job["JobState"] == "RUNNING")
        subprocess.run(["scontrol", "requeue", job["JobId"]], check=True)
        assert process.wait(timeout=900) == 0, log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait()
    (again,) = (job for job in submitted(run_name(log.read_text())) if job["JobState"] == "COMPLETED")
    assert again["Restarts"] == "1"
    assert "continuing at iteration" in (workspace.folder / LOG).read_text()
