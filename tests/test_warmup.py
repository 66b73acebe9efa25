"""Kernels are compiled once, ahead of the jobs, and again when anything they are made of changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fujinsplat.kernels import jit
from fujinsplat.warmup import PARTS, compile_part

ROOT = Path(__file__).parents[1]


def python(*arguments: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def package(tmp_path) -> Path:
    """A package of the same name with one kernel, whose constant and helper live in files of their own."""
    folder = tmp_path / "fujinsplat"
    (folder / "toy").mkdir(parents=True)
    for name in ("__init__.py", "kernels/__init__.py", "kernels/jit.py", "compat/__init__.py", "compat/numba_cache.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "fujinsplat" / name, folder / name)
    texts = {
        "__init__.py": "",
        "constants.py": "OFFSET = 1\n",
        "helpers.py": (
            "from numba import njit\n\nfrom fujinsplat.toy.constants import (\n    OFFSET,\n)\n\n\n"
            "@njit\ndef moved(x):\n    return x + OFFSET\n"
        ),
        "kernels.py": (
            "from fujinsplat.kernels.jit import kernel\nfrom fujinsplat.toy import helpers\n\n"
            "moved = helpers.moved\n\n\n"
            "@kernel(nogil=True)\ndef run(x):\n    return moved(x)\n"
        ),
        "unrelated.py": "",
    }
    for name, text in texts.items():
        (folder / "toy" / name).write_text(text)
    return folder


def call(package: Path, **environment: str) -> tuple[int, bool]:
    """The kernel's result in a fresh process, and whether it had to be compiled there."""
    script = "from fujinsplat.toy.kernels import run; print(run(1), sum(run.stats.cache_misses.values()))"
    result, misses = python("-P", "-c", script, PYTHONPATH=str(package.parent), **environment).split()
    return int(result), misses != "0"


def test_a_kept_kernel_is_used_until_a_file_it_is_made_of_changes(package):
    assert call(package) == (2, True)
    assert call(package) == (2, False)
    (package / "toy" / "unrelated.py").write_text("X = 1\n")
    assert call(package) == (2, False)
    (package / "toy" / "constants.py").write_text("OFFSET = 5\n")  # two imports away
    assert call(package) == (6, True)
    helper = (package / "toy" / "helpers.py").read_text()
    (package / "toy" / "helpers.py").write_text(helper.replace("x + OFFSET", "x - OFFSET"))
    assert call(package) == (-4, True)
    assert call(package) == (-4, False)


def test_kernels_are_kept_elsewhere_when_the_package_cannot_be_written(package, tmp_path):
    """A plain file where the folder for compiled code would be, because permissions do not stop an administrator."""
    (package / "toy" / "__pycache__").write_text("")
    assert call(package, XDG_CACHE_HOME=str(tmp_path / "user")) == (2, True)
    assert call(package, XDG_CACHE_HOME=str(tmp_path / "user")) == (2, False)
    (tmp_path / "nowhere").write_text("")
    for _ in range(2):  # no place at all: every process compiles for itself
        assert call(package, XDG_CACHE_HOME=str(tmp_path / "nowhere")) == (2, True)


def test_the_rasteriser_belongs_to_the_vectors_it_borrows():
    raster = ROOT / "fujinsplat" / "splat" / "raster" / "blend.py"
    names = {str(path.relative_to(jit.ROOT)) for path in jit.sources(raster)}
    assert {
        "kernels/simd.py",
        "splat/vectors.py",
        "splat/kernels.py",
        "splat/raster/projection.py",
        "kernels/jit.py",
    } <= names


def test_every_kernel_follows_its_sources():
    """No kernel is kept on disk in Numba's plain way, which sees one file alone."""
    plain = [
        str(path)
        for path in (ROOT / "fujinsplat").rglob("*.py")
        if path.name != "numba_cache.py" and ("cache=True" in path.read_text() or '"cache": True' in path.read_text())
    ]
    assert plain == []


def test_after_compiling_a_stage_compiles_nothing(tmp_path):
    for name in PARTS:
        compile_part(name)
    settings = "{width: 32, height: 32, source_views: 3, held_views: 1}"
    command = ["-m", "fujinsplat", "demo", "scene", str(tmp_path), "Hayate", "--threads", "2", "--settings", settings]
    told = python(*command, NUMBA_DEBUG_CACHE="1")
    assert "data loaded from" in told
    assert "data saved to" not in told
