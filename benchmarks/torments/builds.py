"""A tiny finished build to torture: made once, or taken from a folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2", *words]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    return {**kept, "PYTHONPATH": str(ROOT)}


def finished(folder: Path, given: Path | None) -> Path:
    """A folder with a finished build; `given` is copied, so that nothing happens to it."""
    build = folder / "build"
    if given is not None:
        shutil.copytree(given, build, symlinks=True)
        return build
    sys.path.insert(0, str(ROOT))
    from tests.conftest import workspace

    workspace(build, ["Kogarashi"], build="main")
    print("building the demo in miniature (some minutes) ...", flush=True)
    done = subprocess.run(command(), cwd=build, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the undisturbed build failed:\n{done.stderr[-3000:]}")
    return build
