"""Killed builds, full disks, two builds in one folder: real Snakemake runs on a cheap part of a finished build."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENE = "Kogarashi"
PATIENCE = 300  # seconds; on a quiet machine nothing here takes more than a few
TARGET = f"results/demo/metrics/{SCENE}/fujinsplat.csv"
# what one scene and variant need beyond what scenes and variants share: four stages, six jobs
OWN = ("developed", "gaussians", "renders", "renders_source", "metrics")


@pytest.fixture
def unfinished(copy_of_build):
    """A finished build without one scene's last stages; training saves its state at every chance."""
    config = copy_of_build.config()
    config["datasets"]["demo"]["settings"]["splat"]["checkpoint_seconds"] = 0.2
    copy_of_build.write_config(config)
    for stage in OWN:
        shutil.rmtree(copy_of_build.folder / "results/demo" / stage / SCENE)
    shutil.rmtree(copy_of_build.folder / "results/demo/logs", ignore_errors=True)
    return copy_of_build


def files(folder: Path) -> Iterator[Path]:
    """What lies under its final name below the scene's own outputs."""
    for stage in OWN:
        for path in (folder / "results/demo" / stage / SCENE).rglob("*"):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                yield path.relative_to(folder)


# a change of the checkpoints' rhythm is no reason to make anything again
ONLY_MISSING = ("--rerun-triggers", "mtime", "--")


def command(target: str) -> list[str]:
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    return [*snakemake, *ONLY_MISSING, target]


@contextmanager
def started(folder: Path, log: Path, target: str = TARGET) -> Iterator[subprocess.Popen]:
    """Snakemake and its jobs in a process group of their own; whatever is left of it is killed at the end."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    with log.open("w") as stream:
        process = subprocess.Popen(
            command(target),
            cwd=folder,
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill_group(process, signal.SIGKILL)
        process.wait()


def kill_group(process: subprocess.Popen, number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def wait_until(happened: Callable[[], bool], process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.02)


def test_killed_at_any_moment_and_started_again_it_ends_as_if_undisturbed(unfinished, built, tmp_path):
    folder, log = unfinished.folder, tmp_path / "snakemake.log"
    results = folder / "results/demo"
    checkpoint = results / f"checkpoints/{SCENE}/fujinsplat/state.pt"

    # the power fails while views are developed
    with started(folder, log) as process:
        wait_until((results / f"logs/develop/scene/{SCENE}.fujinsplat.log").exists, process, log)
        kill_group(process, signal.SIGKILL)
    assert unfinished.differing(built, files(folder)) == []
    assert "--unlock" in unfinished.snakemake(TARGET, check=False).stderr, "Snakemake says what to do"
    unfinished.snakemake("--unlock")

    # Ctrl-C in mid-training, which is in nobody's way: no lock stays, and the state is saved
    with started(folder, log) as process:
        wait_until(checkpoint.exists, process, log)
        kill_group(process, signal.SIGINT)
        assert process.wait(timeout=PATIENCE) != 0
    assert not (results / f"gaussians/{SCENE}/fujinsplat.ply").exists()
    assert unfinished.differing(built, files(folder)) == []
    assert "stopped by signal" in (results / f"logs/splat/train/{SCENE}.fujinsplat.log").read_text()

    # Snakemake alone dies; its job works on, while the next Snakemake starts the same job again
    with started(folder, log) as orphaned:
        wait_until((results / f"logs/splat/train/{SCENE}.fujinsplat.log").exists, orphaned, log)
        saved = checkpoint.stat().st_mtime_ns
        wait_until(lambda: not checkpoint.exists() or checkpoint.stat().st_mtime_ns > saved, orphaned, log)
        orphaned.kill()
        orphaned.wait()
        unfinished.snakemake("--unlock")

        # and that one is killed when pictures begin to appear
        with started(folder, log) as process:
            wait_until((results / f"logs/render/held/{SCENE}.fujinsplat.log").exists, process, log)
            kill_group(process, signal.SIGKILL)
    assert unfinished.differing(built, files(folder)) == []
    unfinished.snakemake("--unlock")

    done = unfinished.snakemake(*ONLY_MISSING, TARGET)
    assert "splat_train" not in done.stderr, "what was finished is not made again"
    own = [name for name in files(built.folder) if name.parts[4].startswith("fujinsplat")]
    assert len(own) > 15 and unfinished.differing(built, own) == []
    assert not list(results.rglob("*.part*")) and not list((results / "checkpoints").rglob("*.*")), "no litter"


def test_a_second_build_in_the_same_folder_stops_with_a_clear_message(copy_of_build, built, tmp_path):
    folder, log = copy_of_build.folder, tmp_path / "snakemake.log"
    target = f"results/demo/renders/{SCENE}/raw_base"
    shutil.rmtree(folder / target)
    with started(folder, log, target) as first:
        locks = folder / ".snakemake/locks"
        wait_until(lambda: locks.is_dir() and any(locks.iterdir()), first, log)
        kill_group(first, signal.SIGSTOP)  # it holds the folder for as long as the second one takes to start
        second = subprocess.run(command(target), cwd=folder, capture_output=True, text=True, check=False)
        kill_group(first, signal.SIGCONT)
        assert second.returncode != 0
        assert "cannot be locked" in second.stderr, second.stderr
        assert first.wait(timeout=PATIENCE) == 0, log.read_text()[-3000:]
    assert copy_of_build.differing(built, files(built.folder)) == []


def test_two_processes_that_train_the_same_splat_take_turns(built, tmp_path):
    """A Snakemake that was killed may have left a job running when the next one starts it again."""
    scene, made = built.folder / "results/demo", tmp_path / "results/demo/gaussians" / SCENE
    settings = {"splat": {**built.config()["datasets"]["demo"]["settings"]["splat"], "checkpoint_seconds": 0.2}}
    files = {name: f"capture/{SCENE}/{name}" for name in ("cameras.json", "points.ply")}
    files |= {"views": f"views/{SCENE}/base.safetensors", "developed": f"developed/{SCENE}/raw_base.safetensors"}
    train = [sys.executable, "-m", "fujinsplat", "splat", "train", "--threads", "1", "--device", "cpu"]
    train += ["--settings", json.dumps(settings)]
    train += [x for name, path in files.items() for x in ("--input", f"{Path(name).stem}={scene / path}")]
    train += ["--checkpoints", tmp_path / "checkpoints", "--out", made / "raw_base.ply"]
    train += ["--model", made / "raw_base.linear.safetensors", "--log", made / "raw_base.log.jsonl"]
    train += ["--reconciled", made / "raw_base.delta.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [subprocess.Popen(train, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    names = [path.relative_to(tmp_path) for path in made.iterdir()]
    assert len(names) == 4 and type(built)(tmp_path).differing(built, names) == []


@contextmanager
def mounted(folder: Path, kilobytes: int) -> Iterator[None]:
    """The folder on a small disk of its own, with what it held."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not let a test mount a small disk: {done.stderr.strip()}")
    try:
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_too_full_for_snakemake_itself_is_one_sentence(make_workspace, tmp_path):
    workspace = make_workspace(tmp_path / "work", [SCENE])
    with mounted(workspace.folder, 256):
        (workspace.folder / "filler").write_bytes(bytes(shutil.disk_usage(workspace.folder).free - 8192))
        done = workspace.snakemake(check=False)
        assert done.returncode != 0 and "Traceback" not in done.stderr
        assert f"no space left on the disk of {workspace.folder}; free space" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_one_sentence_and_more_space_finishes_the_build(unfinished, built):
    results = unfinished.folder / "results/demo"
    pages = [-(-path.stat().st_size // 4096) + 1 for path in results.rglob("*")]
    developed = (built.folder / f"results/demo/developed/{SCENE}/fujinsplat.safetensors").stat().st_size
    whole = sum(path.stat().st_size for path in (built.folder / f"results/demo/developed/{SCENE}").glob("fujinsplat.*"))
    kilobytes = 4 * sum(pages) + 2 * whole // 1024 + 64
    with mounted(results, kilobytes):
        free = shutil.disk_usage(results).free
        filler = results / "filler"
        filler.write_bytes(bytes(free - developed // 2))  # half of what the next file takes is left
        done = unfinished.snakemake(*ONLY_MISSING, TARGET, check=False)
        assert done.returncode != 0
        text = done.stdout + done.stderr
        output = f"results/demo/developed/{SCENE}/fujinsplat.safetensors"
        assert f"cannot write {output}: no space left on device; free space" in text, text[-3000:]
        assert list(files(unfinished.folder)) == [], "nothing half-written"

        filler.unlink()
        unfinished.snakemake(*ONLY_MISSING, output)
        assert unfinished.differing(built, [Path(output)]) == []
