"""The workflow on a real SLURM, started on this machine for these tests and stopped by pid afterwards."""

import filecmp
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
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

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("FUJINSPLAT_TEST_SLURM"),
        reason="set FUJINSPLAT_TEST_SLURM=1 to start a SLURM on this machine (as root; several minutes)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="starting a SLURM needs root"),
]

NOT_RESULTS = ("logs", "benchmarks", "checkpoints")
# these say how long the build took: they are there, and differ
TELL_TIMES = tuple(f"results/demo/tables/{table}." for table in ("baselines", "seven_scenes"))


def running(*names: str) -> set[str]:
    """Pids of the processes with these names."""
    listed = subprocess.run(["pgrep", "-x", "|".join(names)], capture_output=True, text=True, check=False)
    return set(listed.stdout.split())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
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


def results(folder: Path) -> list[Path]:
    """Every file below results/ and data/, but for logs and time sheets."""
    files = [path for part in ("results", "data") for path in (folder / part).rglob("*") if path.is_file()]
    names = [path.relative_to(folder) for path in files]
    return [name for name in names if not any(part in NOT_RESULTS for part in name.parts)]


def submitted(run: str) -> list[dict[str, str]]:
    """Every job of one run as SLURM tells it: JobId, Comment (rule, wildcards), JobState, TresPerJob (GPUs)."""
    listed = subprocess.run(["scontrol", "show", "job", "-o"], capture_output=True, text=True, check=True)
    jobs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in listed.stdout.splitlines()]
    return [job for job in jobs if job.get("JobName") == run]


def run_name(log: str) -> str:
    """The name that all jobs of a run share, from Snakemake's own words."""
    return log.split("SLURM run ID: ")[1].split()[0]


@dataclass
class Run:
    """A Snakemake of its own beside the tests; `log` holds what it says."""

    process: subprocess.Popen
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    def jobs(self) -> list[dict[str, str]]:
        return submitted(run_name(self.said))

    def trainings(self) -> list[dict[str, str]]:
        """In the order of their submission; code that has changed since the build may have had other jobs first."""
        jobs = [job for job in self.jobs() if "splat_train" in job["Comment"]]
        return sorted(jobs, key=lambda job: int(job["JobId"]))

    def wait_for(self, happened, seconds: int = 240) -> None:
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said[-3000:]
            time.sleep(0.2)

    def ends(self, seconds: int = 300) -> int:
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said[-3000:]) from None


@pytest.fixture(scope="module")
def start(cluster, tmp_path_factory) -> Iterator:
    """`start(folder, *arguments)` gives a Run; those that still run at the end are ended."""
    runs = []

    def begin(folder: Path, *arguments: str) -> Run:
        log = tmp_path_factory.mktemp("run") / "snakemake.log"
        command = [sys.executable, "-m", "snakemake", *PROFILE, *QUICK, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with log.open("w") as stream:
            runs.append(Run(subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=stream), log))
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()
        run.process.wait()


SNAKEFILE = ("--snakefile", str(ROOT / "Snakefile"))
MODEL = "results/demo/gaussians/Kogarashi/raw_base.linear.safetensors"
LOG = "results/demo/logs/splat/train/Kogarashi.raw_base.log"
STATE = "results/demo/checkpoints/Kogarashi/raw_base/state.pt"


@pytest.fixture(scope="module")
def longer_training(built, tmp_path_factory):
    """`longer_training()`: a copy of the build in which one training is to be made again, and takes a while."""

    def copy():
        folder = tmp_path_factory.mktemp("training") / "copy"
        shutil.copytree(built.folder, folder, symlinks=True)
        made = type(built)(folder)
        config = built.config()
        config["datasets"]["demo"]["settings"]["splat"].update(iterations=1500, checkpoint_seconds=1)
        made.write_config(config)
        (folder / LOG).unlink()
        return made

    return copy


@pytest.fixture(scope="module")
def undisturbed(longer_training) -> Path:
    """That training's model, made here and in one go."""
    workspace = longer_training()
    workspace.snakemake(MODEL)
    return workspace.folder / MODEL


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def pids_in(folder: Path) -> list[int]:
    """Processes that work in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:  # it has ended
            pass
    return found


@pytest.fixture(scope="module", autouse=True)
def killed_for_time(start, longer_training):
    """(workspace, Run) of a training that takes longer than SLURM's shortest limit; it begins before other tests."""
    workspace = longer_training()
    nodes = "splat_train:constraint='first' if attempt == 1 else 'other'"
    run = start(workspace.folder, *SNAKEFILE, MODEL, "--set-resources", "splat_train:runtime=1", nodes)
    run.wait_for((workspace.folder / STATE).exists)
    training = next(pid for pid in pids_in(workspace.folder) if "train" in words_of(pid))
    os.kill(training, signal.SIGSTOP)  # from here on it is too slow, until SLURM ends it
    return workspace, run


# three jobs as the rules make them, each over one limit or in need of a device
LIMITS = """
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


@pytest.fixture(scope="module", autouse=True)
def over_limits(start, tmp_path_factory):
    """(folder, Run) of LIMITS, which mostly waits: it begins before the other tests."""
    folder = tmp_path_factory.mktemp("limits")
    (folder / "Snakefile").write_text(LIMITS)
    (folder / "seconds.log").touch()
    return folder, start(folder)


def test_a_cluster_run_gives_the_files_of_a_local_one(cluster, built, make_workspace, tmp_path):
    """From RAW to scores and tables; figures, studies and the report are jobs like the others."""
    scenes = built.config()["datasets"]["demo"]["scenes"]
    workspace = make_workspace(tmp_path, scenes, build="main")
    targets = [str(path.relative_to(built.folder)) for path in (built.folder / "results/demo/tables").glob("*.md")]
    planned = sum(workspace.jobs(*targets).values())
    done = workspace.snakemake(*PROFILE, *QUICK, "--", *targets, timeout=1200)
    names = results(workspace.folder)
    assert len(names) > 100 and set(map(Path, targets)) <= set(names)
    assert [name for name in workspace.differing(built, names) if not name.startswith(TELL_TIMES)] == []

    run = run_name(done.stdout + done.stderr)
    assert run.startswith("fujinsplat_")
    jobs = submitted(run)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    assert len(jobs) < 0.8 * planned, "short jobs share submissions"
    assert not [job for job in jobs if "gpu" in job.get("TresPerJob", "")], "device: cpu asks for no GPU"
    training = next(job for job in jobs if "rule_splat_train" in job["Comment"] and "Hayate" in job["Comment"])
    logs = list((workspace.folder / "logs/slurm/rule_splat_train").rglob(f"{training['JobId']}.log"))
    assert len(logs) == 1 and "Hayate" in logs[0].parent.name, "rule and wildcards lead to a job's log"


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


def test_two_jobs_never_share_a_gpu_and_its_kind_comes_from_the_profile(start, tmp_path):
    """One pretend GPU, three jobs; those without a GPU are asked for no model and no feature."""
    (tmp_path / "Snakefile").write_text(GPU_JOBS)
    (tmp_path / "none.yaml").touch()
    kind = ("--default-resources", "mem_mb=200", "runtime=5", "gpu_model=pretend", "gpu_constraint=gpu16gb")
    run = start(tmp_path, *kind)
    assert run.ends() == 0, run.said[-4000:]
    turns = [(tmp_path / "gpu" / str(job)).read_text().split() for job in range(3)]
    assert {device for _, device, _ in turns} == {"0"}
    times = sorted((float(begin), float(end)) for begin, _, end in turns)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(times)), "one after the other"
    jobs = run.jobs()
    with_gpu = [job for job in jobs if "stage_gpu" in job["Comment"]]
    without = [job for job in jobs if "stage_cpu" in job["Comment"]]
    assert len(with_gpu) == 3 and {job["TresPerJob"] for job in with_gpu} == {"gres:gpu:pretend:1"}
    assert {job["Features"] for job in with_gpu} == {"gpu16gb"}
    assert {(job.get("TresPerJob"), job["Features"]) for job in without} == {(None, "(null)")}


def continued(workspace, undisturbed: Path) -> bool:
    """Whether the training went on from its checkpoint and ended as if nothing had happened."""
    return (
        "continuing at iteration" in (workspace.folder / LOG).read_text()
        and filecmp.cmp(workspace.folder / MODEL, undisturbed, shallow=False)
        and not (workspace.folder / STATE).exists()
    )


def test_a_cancelled_training_continues_from_its_checkpoint(start, longer_training, undisturbed):
    workspace = longer_training()
    run = start(workspace.folder, *SNAKEFILE, MODEL, "--retries", "0")
    run.wait_for((workspace.folder / STATE).exists)
    subprocess.run(["scancel", *(job["JobId"] for job in run.trainings())], check=True)
    assert run.ends() != 0, "the cancelled job fails the run"
    assert [job["JobState"] for job in run.trainings()] == ["CANCELLED"]
    assert not (workspace.folder / MODEL).exists(), "nothing half-written is taken as done"

    again = start(workspace.folder, *SNAKEFILE, MODEL)
    assert again.ends() == 0, again.said[-3000:]
    assert continued(workspace, undisturbed)


def test_a_requeued_training_goes_on_from_its_checkpoint(start, longer_training, undisturbed):
    """As after the failure of a node: SLURM starts the same job again, on a node that is left."""
    workspace = longer_training()
    run = start(workspace.folder, *SNAKEFILE, MODEL)
    run.wait_for((workspace.folder / STATE).exists)
    (job,) = run.trainings()
    node = f"NodeName={job['NodeList']}"
    subprocess.run(["scontrol", "update", node, "State=DRAIN", "Reason=failed"], check=True)
    try:
        subprocess.run(["scontrol", "requeue", job["JobId"]], check=True)
        assert run.ends() == 0, run.said[-3000:]
    finally:
        subprocess.run(["scontrol", "update", node, "State=RESUME"], check=True)
    (again,) = run.trainings()
    assert (again["JobState"], again["Restarts"]) == ("COMPLETED", "1")
    assert again["NodeList"] != job["NodeList"]
    assert continued(workspace, undisturbed)


def test_jobs_over_their_memory_or_time_are_retried_with_more_and_a_gpu_is_given(over_limits):
    """The minute of the time limit is SLURM's smallest; the job keeps what it did, as a training does."""
    folder, run = over_limits
    assert run.ends() == 0, run.said[-4000:]
    assert (folder / "gpu.txt").read_text().strip() == "device=0"
    jobs = run.jobs()
    ends = {rule: [j["JobState"] for j in jobs if j["Comment"] == f"rule_{rule}"] for rule in ("memory", "time", "gpu")}
    assert ends["gpu"] == ["COMPLETED"]
    assert sorted(ends["time"]) == ["COMPLETED", "TIMEOUT"]
    assert ends["memory"].count("COMPLETED") == 1 and len(ends["memory"]) == 2, ends
    assert "mem_mb=1000" in run.said and "runtime=2" in run.said, "the second attempts ask for twice as much"


def test_a_training_killed_for_time_goes_on_on_another_node(killed_for_time, undisturbed):
    workspace, run = killed_for_time
    assert run.ends() == 0, run.said[-3000:]
    first, last = run.trainings()
    assert (first["JobState"], last["JobState"]) == ("TIMEOUT", "COMPLETED")
    assert first["NodeList"] != last["NodeList"]
    assert continued(workspace, undisturbed)
