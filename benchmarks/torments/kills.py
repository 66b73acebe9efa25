"""Kills: a job of a random rule is killed at a random moment; the resumed build ends as if undisturbed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.torments.builds import ROOT, command, environment

sys.path.insert(0, str(ROOT))
MISSING = ("--rerun-triggers", "mtime")
PATIENCE = 1800.0  # seconds; torture may have to make do with what a busy machine leaves over
MOST = 4  # kills of one job before it is left alone
WHO = ("the job", "Snakemake", "both")
LITTER = re.compile(r"\..*\.(part(\.\w+)?|old|claim)")


@dataclass
class Job:
    rule: str
    outputs: tuple[str, ...]
    record: str  # what it opened
    sheet: str  # what it took: time and memory, which tables read
    seconds: float  # that it took last


def jobs_by_rule(build: Path) -> dict[str, list[Job]]:
    """Every job that has run, by rule, from the jobs' own records."""
    found: dict[str, list[Job]] = {}
    for record in sorted(build.glob("results/*/logs/**/*.reads.json")):
        values = json.loads(record.read_text())
        name = str(record.relative_to(build))
        sheet = name.replace("/logs/", "/benchmarks/").replace(".reads.json", ".tsv")
        measured = build / sheet
        seconds = float(measured.read_text().splitlines()[1].split()[0]) if measured.is_file() else 3.0
        job = Job(values["job"], tuple(values["outputs"]), name, sheet, seconds)
        found.setdefault(job.rule, []).append(job)
    return found


def kill(build: Path, work: Path, until: float, rng: Random, counts: Counter, losses: list[str]) -> None:
    """Counted by rule. Rules take turns, in an order of chance."""
    rules = jobs_by_rule(build)
    counts.update(dict.fromkeys(rules, 0))
    folder = work / "build"
    shutil.copytree(build, folder, symlinks=True)
    while time.monotonic() < until:
        names = list(rules)
        rng.shuffle(names)
        for name in names:
            if time.monotonic() >= until:
                return
            counts[name] += one(build, folder, rng.choice(rules[name]), rng.choice(WHO), rng, losses)


def one(build: Path, folder: Path, job: Job, who: str, rng: Random, losses: list[str]) -> int:
    """Remove a job's outputs, make them again, kill, resume, compare; returns how many kills happened."""
    for output in job.outputs:
        remove(folder / output)
    log, said, kills, code = folder / "torture.log", "", 0, 1
    for attempt in range(MOST + 1):
        with log.open("w") as stream:
            # the job's own rule alone: what it is made from is there, though not older than everything else
            run = subprocess.Popen(
                command(*MISSING, "--allowed-rules", job.rule, "--", job.outputs[0]),
                cwd=folder,
                env=environment(),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            code = attempted(run, job, who if attempt < MOST else None, rng)
        except subprocess.TimeoutExpired:
            losses.append(f"{job.rule}: no end after {PATIENCE:g} s")
        said += log.read_text()
        if code is not None:
            break
        kills += 1
        if who != "the job":
            unlock(folder, rng)
    end(run)
    for loss in lost(build, folder, job, code, said):
        losses.append(f"{job.rule}, {who} killed: {loss}")
    # every kill begins with the undisturbed build, its measured times included
    restore(build, folder, (*job.outputs, *([job.sheet] if (build / job.sheet).is_file() else [])))
    return kills


def unlock(folder: Path, rng: Random) -> None:
    """As a person does it, or, which takes no time, by removing the same files."""
    if rng.random() < 0.2:
        subprocess.run(command("--unlock"), cwd=folder, env=environment(), capture_output=True, check=False)
    else:
        for lock in (folder / ".snakemake/locks").glob("*"):
            lock.unlink()


def attempted(run: subprocess.Popen, job: Job, who: str | None, rng: Random) -> int | None:
    """How a run ended that was left alone; None when it was killed."""
    process, start = started(run), time.monotonic()
    if process is not None and who:
        try:
            run.wait(timeout=rng.random() * 1.05 * job.seconds)
        except subprocess.TimeoutExpired:
            if strike(run, process, who):
                run.wait(timeout=PATIENCE)
                return None
    code = run.wait(timeout=PATIENCE)
    job.seconds = time.monotonic() - start
    return code


def lost(build: Path, folder: Path, job: Job, code: int | None, said: str) -> list[str]:
    """What is not as if the job had never been killed."""
    found = []
    if code:
        sentences = [line for line in said.splitlines() if line.startswith("fujinsplat:")]
        found.append(f"the resumed build failed: {(sentences or [said[-300:]])[-1]!r}")
    elif differing := outputs_differ(build, folder, job.outputs):
        found.append(f"{differing[0]} differs")
    if "Traceback" in said or "Traceback" in (folder / job.record.replace(".reads.json", ".log")).read_text():
        found.append("a traceback")
    if not code:
        around = {path for output in job.outputs for path in (folder / output).parent.iterdir()}
        found += [f"litter: {path.name}" for path in around if LITTER.fullmatch(path.name)]
        now = json.loads((folder / job.record).read_text())
        if now["refused"] or now["opened"] != json.loads((build / job.record).read_text())["opened"]:
            found.append(f"an undeclared open: {now}")
    return found


def started(run: subprocess.Popen) -> int | None:
    """The process of the job that Snakemake has started, once there is one."""
    deadline = time.monotonic() + PATIENCE
    while run.poll() is None and time.monotonic() < deadline:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if b"-m\0fujinsplat" not in (entry / "cmdline").read_bytes():
                    continue
                if f"\0FUJINSPLAT_PARENT={run.pid}\0".encode() in (entry / "environ").read_bytes():
                    return int(entry.name)
            except OSError:
                continue
        time.sleep(0.05)
    return None


def strike(run: subprocess.Popen, job: int, who: str | None) -> bool:
    """Whether somebody was there to be killed."""
    if run.poll() is not None:
        return False
    try:
        if who == "the job":
            os.kill(job, signal.SIGKILL)
        elif who == "Snakemake":
            run.kill()
        else:
            os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end(run: subprocess.Popen) -> None:
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    run.wait()


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def restore(build: Path, folder: Path, outputs: tuple[str, ...]) -> None:
    for output in outputs:
        remove(folder / output)
        source = build / output
        shutil.copytree(source, folder / output) if source.is_dir() else shutil.copy2(source, folder / output)


def outputs_differ(build: Path, folder: Path, outputs: tuple[str, ...]) -> list[str]:
    from tests.conftest import same_content

    found = []
    for output in outputs:
        source = build / output
        names = [p.relative_to(build) for p in source.rglob("*") if p.is_file()] if source.is_dir() else [Path(output)]
        for name in names:
            if not (folder / name).is_file() or not same_content(build / name, folder / name):
                found.append(str(name))
    return found
