"""How the cost of the stages grows with pixels, views and Gaussians, as docs/scale.md quotes it.

    python -m benchmarks growth            (from the project's folder; about two minutes)

Each stage runs as the workflow runs it, as a command on one thread, on a demo scene of the given size. Seconds are CPU
seconds, which a busy machine disturbs least; they contain about two seconds of start-up.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = ((120, 80, 6), (240, 160, 6), (480, 320, 6))
VIEWS = ((120, 80, 12), (120, 80, 24))
SCENE = "Kogarashi"
GAUSSIANS = ((480, 320, 5_000), (480, 320, 20_000), (480, 320, 80_000), (960, 640, 20_000))


def spent(*words: str | Path, **options: str | Path) -> tuple[float, float]:
    """(CPU seconds, peak megabytes) of one `fujinsplat` command."""
    named = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "fujinsplat", *map(str, words), *named, "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def size(path: Path) -> float:
    """Megabytes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def stages(width: int, height: int, views: int) -> None:
    """One row per stage that works on whole pictures."""

    def row(stage: str, made: Path, cost: tuple[float, float]) -> None:
        seconds, memory = cost
        case = f"{width}x{height}, {views} views"
        print(f"{case:>22s} {stage:>9s} {seconds:9.2f} {memory:9.0f} {size(made):9.2f}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "data"), Path(folder, "out")
        source, base, developed = out / "source", out / "base.safetensors", out / "developed.safetensors"
        settings = {"width": width, "height": height, "source_views": views, "held_views": 1}
        spent("demo", "scene", data, SCENE, settings=json.dumps(settings))
        row("capture", source, spent("capture", "source", data, SCENE, out=out))
        row("isp", base, spent("isp", "calibrate", source=source, out=base, device="cpu"))
        row("develop", developed, spent("develop", "scene", kind="base", source=source, base=base, out=developed))


def gaussians() -> None:
    from benchmarks.bench_splat import forward_backward, frustum, in_turns

    print(f"\n{'picture':>12s} {'Gaussians':>10s} {'ms per forward and backward pass':>34s}")
    for width, height, count in GAUSSIANS:
        (taken,) = in_turns(forward_backward(*frustum(width, height, count)), repeats=5)
        print(f"{f'{width}x{height}':>12s} {count:10d} {taken * 1e3:34.1f}", flush=True)


def main() -> None:
    print(f"{'scene':>22s} {'stage':>9s} {'CPU s':>9s} {'peak MB':>9s} {'MB made':>9s}", flush=True)
    for case in (*SIZES, *VIEWS):
        stages(*case)
    gaussians()
