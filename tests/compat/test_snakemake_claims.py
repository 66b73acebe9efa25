"""A second Snakemake deletes nothing that a living run holds."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fujinsplat.core.claims import holding

ROOT = Path(__file__).parents[2]
SNAKEFILE = """
from fujinsplat.compat.snakemake_claims import respect_claims
from fujinsplat.compat.snakemake_errors import say_user_errors_plainly
say_user_errors_plainly()
respect_claims()
rule make:
    output: "out.txt", directory("folder")
    log: "make.log"
    shell: "echo new > out.txt; mkdir folder; touch folder/new"
rule fails:
    output: "late.txt"
    shell: "touch started; while [ ! -e held ]; do sleep 0.05; done; exit 1"
"""


@pytest.fixture
def snakemake(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    started = []

    def start(*words: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nolock", "--force", "--", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("held", ["out.txt", "folder"])
def test_what_a_living_run_holds_is_not_deleted_before_a_job_starts(tmp_path, snakemake, held):
    (tmp_path / "folder").mkdir()
    for name in ("out.txt", "folder/old", "make.log"):
        (tmp_path / name).write_text("old")
    with holding([tmp_path / held], 0, "splat_train"):
        second = snakemake("make")
        said = second.communicate(timeout=120)[0]
        assert second.returncode != 0
        assert f"{held} is being made by process {os.getpid()} on " in said and "(splat_train, in" in said, said
        assert "Traceback" not in said
    assert all((tmp_path / name).read_text() == "old" for name in ("out.txt", "folder/old", "make.log"))
    third = snakemake("make")
    assert "is being made by" not in third.communicate(timeout=120)[0]
    assert third.returncode == 0 and (tmp_path / "out.txt").read_text() == "new\n"


def test_what_a_living_run_holds_is_not_deleted_after_a_job_failed(tmp_path, snakemake):
    second, deadline = snakemake("fails"), time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert second.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    with holding([tmp_path / "late.txt"], 0, "splat_train"):
        (tmp_path / "late.txt").write_text("theirs")
        (tmp_path / "held").touch()
        second.communicate(timeout=120)
    assert second.returncode != 0 and (tmp_path / "late.txt").read_text() == "theirs"


def test_snakemake_still_deletes_outputs_without_asking():
    import inspect

    from snakemake.jobs import Job

    assert "f.remove(" in inspect.getsource(Job.remove_existing_output), "compat/snakemake_claims.py may go"
