"""The last sentence of a job reaches a person; errors of the operating system are told apart."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fujinsplat.core import jobs
from fujinsplat.core.claims import born
from fujinsplat.core.files import explained
from fujinsplat.core.jobs import JOB, sweep_temporary

ROOT = Path(__file__).parents[2]


def run(shell: str, cwd: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUJINSPLAT_TERMINAL": "3"}
    return subprocess.run(["bash", "-c", shell], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


COMMAND = f"{sys.executable} -m fujinsplat capture source nowhere Hikari --out x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_on_a_full_disk_the_sentence_goes_past_the_log(tmp_path):
    done = run(f"{COMMAND} 3>&2 > /dev/full 2>&1", tmp_path)
    assert done.returncode == 2
    assert "fujinsplat: the dataset folder nowhere does not exist" in done.stderr


def test_when_another_run_has_deleted_the_log_the_sentence_goes_past_it(tmp_path):
    done = run(f"exec 4> log; rm log; {COMMAND} 3>&2 >&4 2>&4", tmp_path)
    assert done.returncode == 2
    assert "fujinsplat: the dataset folder nowhere does not exist" in done.stderr


def test_otherwise_it_stands_in_the_log_alone(tmp_path):
    done = run(f"{COMMAND} 3>&2 > log 2>&1", tmp_path)
    assert done.returncode == 2 and done.stderr == ""
    assert "fujinsplat: the dataset folder nowhere does not exist" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "choose a folder that you may read and write"),
        (errno.ENOENT, "does not exist"),
        (errno.EISDIR, "correct the path"),
    ],
)
def test_errors_of_the_operating_system_are_one_sentence_each(tmp_path, number, words):
    sentence = explained(OSError(number, os.strerror(number), str(tmp_path / "x")))
    assert words in sentence and str(tmp_path / "x") in sentence


def test_a_programming_error_is_not_dressed_up():
    assert explained(OSError(errno.EINVAL, "Invalid argument", "x")) is None


def test_a_limit_on_the_size_of_files_is_recognised(tmp_path):
    script = (
        "from fujinsplat.core.files import write_json\n"
        "from fujinsplat.core.errors import UserError\n"
        "try:\n    write_json('x.json', list(range(10**6)))\n"
        "except UserError as error:\n    print(error)"
    )
    done = run(f'ulimit -f 64; {sys.executable} -c "{script}"', tmp_path)
    assert "cannot write x.json: file too large; raise the limit on the size of files (ulimit -f)" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_temporary_folders_of_the_dead_go_and_no_others(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    mine, host = os.getpid(), jobs._machine()
    left = {
        f"fujinsplat-{host}-{mine}-{born(mine)}-abcd_123": True,
        f"fujinsplat-{host}-{mine}-1-abcd_123": False,  # another process of the same number
        f"fujinsplat-{host}-{gone.pid}-1-abcd_123": False,
        f"fujinsplat-{'0' * 6}-{gone.pid}-1-abcd_123": True,  # of another machine
        f"fujinsplat-{host}-other-{gone.pid}-1-abcd_123": True,
        "fujinsplat-abcd_123": True,
    }
    for name in left:
        (tmp_path / name / "inside").mkdir(parents=True)
    assert sweep_temporary(tmp_path) == 2
    assert {name: (tmp_path / name).is_dir() for name in left} == left


def test_a_killed_jobs_temporary_folder_goes_at_the_next_start(tmp_path):
    described = {"name": "x", "outputs": [f"{tmp_path}/out"], "results": f"{tmp_path}/r", "roots": [], "opens": []}
    job = (
        "import tempfile, time; from fujinsplat.core.jobs import as_a_job\n"
        "with as_a_job():\n  print(tempfile.mkdtemp(), flush=True)\n  time.sleep({})\n"
    )
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "XDG_CACHE_HOME": f"{tmp_path}/cache",
        JOB: json.dumps(described),
    }

    def start(seconds: int) -> subprocess.Popen:
        command = [sys.executable, "-c", job.replace("{}", str(seconds))]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    with start(60) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().strip())
        killed.kill()
    assert folder.is_dir() and folder.parent.parent == tmp_path
    with start(0) as next_one:
        next_one.communicate()
    assert next_one.returncode == 0 and not folder.parent.exists()
    assert not list(tmp_path.glob("fujinsplat-*"))
