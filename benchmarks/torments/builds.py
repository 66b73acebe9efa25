"""A tiny finished build to torture, with a job of every rule that pictures so small allow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCENE = "Kogarashi"
NETWORK = "network"  # stands for the depth network: two files that are only copied
# what the report does not ask for
MORE = [
    f"results/demo/{path}"
    for path in (
        f"export/{SCENE}/fujinsplat/report.html",
        f"renders_medium/{SCENE}/seasplat",
        "synthetic/network",
    )
]


def command(*words: str) -> list[str]:
    cores = str(len(os.sched_getaffinity(0)))
    return [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", cores, *words]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    return {**kept, "PYTHONPATH": str(ROOT)}


def finished(folder: Path, given: Path | None) -> Path:
    """A folder with a finished build; `given` is copied, and what other code has made of it is made again."""
    build = folder / "build"
    if given is not None:
        shutil.copytree(given, build, symlinks=True)
        return made(build, "all")
    sys.path.insert(0, str(ROOT))
    from tests.conftest import workspace

    space = workspace(build, [SCENE], build="main")
    config = space.config()
    config["datasets"]["demo"]["settings"]["synthesis"]["depth_model"] = NETWORK
    space.write_config(config)
    (build / NETWORK).mkdir()
    for name in ("config.json", "model.safetensors"):
        (build / NETWORK / name).write_text("{}")
    print("building the demo in miniature (some minutes) ...", flush=True)
    return made(build, "all", *MORE)


def made(build: Path, *targets: str) -> Path:
    done = subprocess.run(command(*targets), cwd=build, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the undisturbed build failed:\n{done.stderr[-3000:]}")
    return build
