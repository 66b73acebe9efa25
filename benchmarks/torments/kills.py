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
from pathlib import Path
from random import Random

from benchmarks.torments.builds import ROOT, command, environment

sys.path.insert(0, str(ROOT))
MISSING = ("--rerun-triggers", "mtime", "--quiet", "all")
PATIENCE = 900.0
WHO = ("the job", "Snakemake", "both")


def outputs_by_rule(build: Path) -> dict[str, list[list[str]]]:
    """Of every rule that has run, its jobs' outputs, from the jobs' own records."""
    found: dict[str, list[list[str]]] = {}
    for record in sorted(build.glob("results/*/logs/**/*.reads.json")):
        values = json.loads(record.read_text())
        found.setdefault(values["job"], []).append(values["outputs"])
    return found


def kill(build: Path, work: Path, until: float, rng: Random, counts: Counter, losses: list[str]) -> None:
    rules = outputs_by_rule(build)
    folder = work / "build"
    shutil.copytree(build, folder, symlinks=True)
    while time.monotonic() < until:
        names = list(rules)
        rng.shuffle(names)
        for rule in names:
            if time.monotonic() >= until:
                return
            outputs = rng.choice(rules[rule])
            who = rng.choice(WHO)
            counts[who] += one(build, folder, rule, outputs, who, rng, losses)


def one(build: Path, folder: Path, rule: str, outputs: list[str], who: str, rng: Random, losses: list[str]) -> int:
    """Remove a job's outputs, make them again, kill, resume, compare; returns how many kills happened."""
    for output in outputs:
        remove(folder / output)
    kills, log = 0, folder / "torture.log"
    for attempt in range(4):
        with log.open("w") as stream:
            run = subprocess.Popen(
                command(*MISSING, "--", outputs[0]),
                cwd=folder,
                env=environment(),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            if attempt == 3 or not (job := started(run, rule)):
                code = run.wait(timeout=PATIENCE)
                break
            time.sleep(rng.random() ** 2 * 6)
            kills += strike(run, job, who)
            if who == "the job":
                run.wait(timeout=PATIENCE)
            subprocess.run(command("--unlock"), cwd=folder, env=environment(), capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            end(run)
            losses.append(f"{rule}: no end after {PATIENCE:g} s")
            return kills
        if not outputs_differ(build, folder, outputs) and rng.random() < 0.5:
            code = 0
            break
    if code:
        losses.append(f"{rule}, {who} killed: the resumed build failed: {log.read_text()[-300:]!r}")
        restore(build, folder, outputs)
    elif differing := outputs_differ(build, folder, outputs):
        losses.append(f"{rule}, {who} killed: {differing[0]} differs")
        restore(build, folder, outputs)
    time.sleep(2)  # an orphan stops by itself
    end(run)
    if "Traceback" in log.read_text():
        losses.append(f"{rule}: a traceback")
    return kills


def started(run: subprocess.Popen, rule: str) -> int | None:
    """The process of the job that Snakemake has started, once there is one."""
    deadline = time.monotonic() + PATIENCE
    while run.poll() is None and time.monotonic() < deadline:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                about = (entry / "environ").read_bytes()
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"FUJINSPLAT_PARENT={run.pid}\0".encode() in about + b"\0" and b"fujinsplat" in words:
                if re.search(rb"-m\0fujinsplat", words):
                    return int(entry.name)
        time.sleep(0.02)
    return None


def strike(run: subprocess.Popen, job: int, who: str) -> int:
    try:
        if who == "the job":
            os.kill(job, signal.SIGKILL)
        elif who == "Snakemake":
            run.kill()
            run.wait()
        else:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    except ProcessLookupError:
        return 0
    return 1


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


def restore(build: Path, folder: Path, outputs: list[str]) -> None:
    for output in outputs:
        remove(folder / output)
        source = build / output
        shutil.copytree(source, folder / output) if source.is_dir() else shutil.copy2(source, folder / output)


def outputs_differ(build: Path, folder: Path, outputs: list[str]) -> list[str]:
    from tests.conftest import same_content

    found = []
    for output in outputs:
        source = build / output
        names = [p.relative_to(build) for p in source.rglob("*") if p.is_file()] if source.is_dir() else [Path(output)]
        for name in names:
            if not (folder / name).is_file() or not same_content(build / name, folder / name):
                found.append(str(name))
    return found
