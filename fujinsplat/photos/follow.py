"""The workflow as its user sees it: which step runs, how far it is, what it found, and why it stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import progress, say
from fujinsplat.paths import at

CHECKOUT = Path(__file__).parents[2]
DATASET = "photos"
TICK = 2.0  # seconds between looks at a training
DOING = {
    "capture_poses": "where each photograph was taken",
    "capture_source": "decoding RAW and RGB",
    "isp_calibrate": "the camera's own rendering",
    "smoke_estimate": "the smoke",
    "views_make": "clearing the views",
    "develop_scene": "developing the views",
    "splat_train": "the 3D scene (the longest part)",
    "render_source": "rendering at the photographs' poses",
    "report_view": "the interactive view",
    "export_scene": "the scene, upright",
    "export_dataset": "the cleared views as a dataset",
    "export_turntable": "the turntable",
    "export_page": "the report",
}
# what of a job's own words is worth a line on the terminal, when it has ended
TOLD = {
    "capture_poses": r".* have a pose, .*|.* is left out: .*|.* points triangulated .*",
    "capture_source": r"the camera corrects .*|RAW and RGB lie .*",
    "smoke_estimate": r"warning: .*|.* views, transmission .*",
    "export_scene": r"scene.ply is turned .*",
    "report_view": r"no 3D view .*",
}


def show_plan(command: list[str], out: Path) -> None:
    """Name the steps that are left to do, or raise what stands in their way."""
    log, end = out / "snakemake.log", command.index("--")
    with log.open("w") as written:
        words = [*command[:end], "--dry-run", *command[end:]]
        done = subprocess.run(words, stdout=written, stderr=subprocess.STDOUT, env=_environment(), cwd=out, check=False)
    if done.returncode:
        raise UserError(in_own_names(_failure(log), out))
    planned = set(re.findall(r"^(?:local)?rule (\w+):", log.read_text(errors="replace"), re.MULTILINE))
    steps = [what for rule, what in DOING.items() if rule in planned]
    say(f"what would run: {'; '.join(steps)}" if steps else "nothing is left to do")


def _environment() -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    return environment


def snakemake(command: list[str], out: Path) -> None:
    """Run it with a bar on a terminal and a line per step elsewhere; its own words go to a log."""
    log, bar = out / "snakemake.log", None
    before = signal.signal(signal.SIGTERM, _interrupt)
    with (
        log.open("w") as written,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(),
            cwd=out,
            errors="replace",
        ) as process,
    ):
        try:
            with _Ticks(out) as ticks:
                for line in process.stdout or ():
                    written.write(line)
                    written.flush()
                    with ticks.quiet:
                        ticks.bar = bar = _follow(line, bar, out)
                        ticks.hear(line)
                code = process.wait()
        except KeyboardInterrupt:
            _stop(process)
            raise UserError("interrupted; the same command goes on where it stood") from None
        finally:
            signal.signal(signal.SIGTERM, before)
            if bar is not None:
                bar.clear()  # tqdm forgets to, where it has counted nothing yet
                bar.close()
    if code:
        raise UserError(in_own_names(_failure(log), out))


class _Ticks:
    """Keeps the bar alive between the lines of Snakemake: its clock, and the iteration of a training."""

    def __init__(self, out: Path):
        self.out, self.quiet = out, threading.Lock()
        self.bar: Any = None
        self.since: float | None = None  # when the training began that runs now
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "_Ticks":
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.ended.set()
        self.thread.join()

    def hear(self, line: str) -> None:
        if re.match(r"^\s*rule splat_train:", line):
            self.since = time.time()
        elif "(Rule: splat_train)" in line:
            self.since = None

    def _tick(self) -> None:
        while not self.ended.wait(TICK):
            with self.quiet:
                if self.bar is None:
                    continue
                far = ""
                if self.since is not None:  # the longest of the steps that run now
                    self.bar.set_description(DOING["splat_train"], refresh=False)
                    far = training(self.out, self.since)
                self.bar.set_postfix_str(far)  # draws it again


def training(out: Path, since: float) -> str:
    """How far a training is, from the log that it keeps beside its checkpoint; empty when none was kept since then."""
    for log in out.glob(f"{at('checkpoints', dataset=DATASET, scene='*', variant='*')}/log.jsonl"):
        try:
            if log.stat().st_mtime < since:
                continue  # of a training that was broken off
            last = json.loads(log.read_text(errors="replace").splitlines()[-1])
            return f"iteration {last['iteration']}, {last['iterations_per_second']:g} per second"
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue  # a line that is being written
    return ""


def _interrupt(*_) -> None:
    raise KeyboardInterrupt


def _stop(process: subprocess.Popen) -> None:
    """End Snakemake and its jobs. Ctrl-C reaches it by itself; a signal that was meant for us alone does not."""
    try:
        process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()


def _follow(line: str, bar, out: Path):
    """One line of Snakemake's: how many steps there are, which begins, what one that has ended found, how many are
    done."""
    line = line.strip()
    if bar is None and (planned := re.match(r"^total\s+(\d+)$", line)):
        bar = progress(what="steps", total=int(planned[1]), unit="step")
    begun = re.match(r"^(?:local)?rule (\w+):", line)
    if begun and begun[1] in DOING:
        if bar is not None:
            bar.set_description(DOING[begun[1]])
        if not sys.stderr.isatty():
            say(f"  {DOING[begun[1]]} …")
    ended = re.match(r"^Finished jobid: \d+ \(Rule: (\w+)\)", line)
    if ended and ended[1] in TOLD:
        for words in _words(ended[1], out):
            if bar is not None:
                bar.clear()
            say(f"    {words}")
    done = re.match(r"^(\d+) of (\d+) steps", line)
    if done and bar is not None:
        bar.update(int(done[1]) - bar.n)
    return bar


def _words(rule: str, out: Path) -> list[str]:
    """The lines of a job's log that a person wants to see."""
    logs = sorted((out / "results" / DATASET / "logs" / rule.replace("_", "/", 1)).rglob("*.log"))
    lines = [line for log in logs for line in log.read_text(errors="replace").splitlines()]
    return [in_own_names(line, out) for line in lines if re.fullmatch(TOLD[rule], line)]


def _failure(log: Path) -> str:
    """The sentence of the job that failed, out of Snakemake's words."""
    text = log.read_text(errors="replace")
    told = re.findall(r"^\s*fujinsplat:\s+(.*(?:\n\s+- .*)*)", text, re.MULTILINE)
    if told:
        return told[-1]
    lines = [line for line in text.splitlines() if line.strip()]
    return "the workflow stopped:\n  " + "\n  ".join(lines[-6:]) + f"\nall of it is in {log}"


def in_own_names(text: str, out: Path) -> str:
    """Our links replaced by the photographs they stand for: those are what the user knows."""
    for link in sorted((out / "data").glob("*/train/*"), reverse=True):
        if link.is_symlink():
            text = text.replace(str(link), os.readlink(link)).replace(str(link.relative_to(out)), os.readlink(link))
    return text
