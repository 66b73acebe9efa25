"""Nothing old replaces something new: claims on outputs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fujinsplat.core.claims import ClaimLost, Claims, Holder, born, claim_file, holding, sweep
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, atomic_folder

HOLDS = """
import os, sys, time
from pathlib import Path
from fujinsplat.core.claims import holding
from fujinsplat.core.files import atomic_file

out, parent, word = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with holding([out], parent, "rule splat_train") as claims:
    claims.watch(every=0.05)
    with atomic_file(out) as temporary:
        temporary.write_text(word)
        print("writing", flush=True)
        sys.stdin.readline()
print("published", flush=True)
"""
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


@pytest.fixture
def start():
    started = []

    def run(*command) -> subprocess.Popen:
        started.append(subprocess.Popen([sys.executable, *map(str, command)], **PIPES))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def snakemake(start):
    """A process that stands for a Snakemake."""
    return start("-c", "import sys; sys.stdin.read()")


def test_a_job_whose_snakemake_was_killed_stops_and_publishes_nothing(tmp_path, start, snakemake):
    out = tmp_path / "controller.safetensors"
    job = start("-c", HOLDS, out, snakemake.pid, "old")
    assert job.stdout.readline() == "writing\n"
    snakemake.kill()
    snakemake.wait()
    assert job.wait(timeout=30) != 0
    assert f"the Snakemake that started this job (process {snakemake.pid}) is gone" in job.stderr.read()
    assert not out.exists()


def test_the_next_job_waits_for_an_orphan_and_its_own_result_stays(tmp_path, start, snakemake):
    out = tmp_path / "controller.safetensors"
    orphan = start("-c", HOLDS.replace("    claims.watch(every=0.05)\n", ""), out, snakemake.pid, "old")  # it hangs
    assert orphan.stdout.readline() == "writing\n"
    snakemake.kill()
    snakemake.wait()
    newer = start("-c", HOLDS, out, os.getpid(), "new")
    assert "whose Snakemake is gone; waiting" in newer.stderr.readline()
    orphan.stdin.write("\n")  # it comes to its end after all
    orphan.stdin.flush()
    assert orphan.wait(timeout=30) != 0 and "is gone; nothing is written" in orphan.stderr.read()
    assert newer.stdout.readline() == "writing\n"
    newer.communicate("\n", timeout=30)
    assert newer.returncode == 0 and out.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == [out.name], "no claim and no unfinished file stays"


def test_a_job_that_finds_its_snakemake_gone_does_not_begin(tmp_path, start, snakemake):
    snakemake.kill()
    snakemake.wait()
    late = start("-c", HOLDS, tmp_path / "actions.safetensors", snakemake.pid, "old")
    said = late.communicate(timeout=30)[1]
    assert late.returncode != 0 and f"(process {snakemake.pid}) is gone; nothing is written" in said
    assert list(tmp_path.iterdir()) == []


def test_an_orphan_that_does_not_stop_is_killed(tmp_path, start, snakemake, monkeypatch):
    out = tmp_path / "actions.safetensors"
    deaf = HOLDS.replace("    claims.watch(every=0.05)\n", "")  # as in native code that lets no thread look
    orphan = start("-c", deaf, out, snakemake.pid, "old")
    assert orphan.stdout.readline() == "writing\n"
    snakemake.kill()
    snakemake.wait()
    monkeypatch.setattr("fujinsplat.core.claims.GRACE", 0.3)
    with holding([out], os.getpid(), "rule"):
        assert orphan.wait(timeout=30) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_two_runs_that_share_results_are_told_who_holds_what(tmp_path, start, snakemake):
    out = tmp_path / "model.safetensors"
    first = start("-c", HOLDS, out, snakemake.pid, "first")
    assert first.stdout.readline() == "writing\n"
    with pytest.raises(UserError) as told, holding([out], os.getpid(), "rule splat_train"):
        pass
    for words in (str(out), f"process {first.pid}", f"process {snakemake.pid}", "rule splat_train", "wait until"):
        assert words in str(told.value)
    with pytest.raises(UserError, match="is being made by process"), atomic_file(out) as temporary:
        temporary.write_text("typed by hand")
    first.communicate("\n", timeout=30)
    assert first.returncode == 0 and out.read_text() == "first"


def test_a_claim_that_was_taken_away_stops_publishing(tmp_path):
    out = tmp_path / "views"
    with holding([out], os.getpid(), "rule") as claims:
        with pytest.raises(ClaimLost, match="was removed"), atomic_folder(out) as temporary:
            (temporary / "x").write_text("x")
            claim_file(out).unlink()
        other = Holder(1, 0, None, "/elsewhere", "another rule", host="node7")
        claim_file(out).write_text(json.dumps(asdict(other)))
        with pytest.raises(ClaimLost, match="process 1 on node7"):
            claims.check()
    assert claim_file(out).exists() and not out.exists(), "the other's claim is left alone"


def test_a_claim_that_another_machine_keeps_fresh_is_respected(tmp_path):
    out = tmp_path / "x.npy"
    claim_file(out).write_text(json.dumps(asdict(Holder(7, 3, "11", "/run", "rule", host="node7"))))
    beat = threading.Timer(0.5, os.utime, [claim_file(out)])
    beat.start()
    with pytest.raises(UserError, match="process 7 on node7"), holding([out], os.getpid(), "rule"):
        pass
    beat.join()


@pytest.mark.parametrize("age", [0.0, 3600.0])
def test_a_job_killed_on_another_machine_is_tried_again_here(tmp_path, monkeypatch, age):
    """As after a kill for time or memory on a cluster: its claim is fresh, but nobody keeps it so."""
    monkeypatch.setattr("fujinsplat.core.claims.FRESH", 0.8)
    out = tmp_path / "x.npy"
    claim_file(out).write_text(json.dumps(asdict(Holder(7, 3, "11", "/run", "rule", host="node7"))))
    os.utime(claim_file(out), (time.time() - age,) * 2)
    with holding([out], os.getpid(), "rule"):
        pass
    assert not claim_file(out).exists()


def test_a_killed_jobs_claim_and_litter_are_nobodys(tmp_path, start):
    out = tmp_path / "model.safetensors"
    killed = start("-c", HOLDS, out, os.getpid(), "half")
    assert killed.stdout.readline() == "writing\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(list(tmp_path.iterdir())) == 2, "its claim and its unfinished file"
    with holding([out], os.getpid(), "rule"), atomic_file(out) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_the_next_start_sweeps_what_a_job_killed_just_now_has_left(tmp_path, start):
    killed = start("-c", HOLDS, tmp_path / "model.safetensors", os.getpid(), "half")
    assert killed.stdout.readline() == "writing\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert sweep(tmp_path) == 1 and list(tmp_path.iterdir()) == []


def test_sweeping_takes_abandoned_files_and_leaves_those_at_work(tmp_path, start):
    at_work, dead = tmp_path / "a" / "model.safetensors", tmp_path / "b" / "renders"
    job = start("-c", HOLDS, at_work, os.getpid(), "x")
    assert job.stdout.readline() == "writing\n"
    (dead.parent / f".{dead.name}.0123abcd.part").mkdir(parents=True)
    (dead.parent / f".{dead.name}.0123abcd.part" / "0001.png").write_text("")
    (dead.parent / "my.part").write_text("a person's own")
    assert sweep(tmp_path, abandoned=0) == 1
    assert len(list(at_work.parent.iterdir())) == 2
    assert [path.name for path in dead.parent.iterdir()] == ["my.part"]
    assert sweep(tmp_path) == 0, "what somebody without a claim writes just now is left"


def test_a_process_of_the_same_number_is_not_the_same_process():
    me = born(os.getpid())
    assert me is not None and born(2**22 + 1) is None
    holder = Holder(os.getpid(), os.getpid(), me, "/run", "rule")
    assert not holder.orphaned and replace(holder, parent_born="0").orphaned


def test_a_job_that_ends_well_is_not_stopped_by_its_own_watch(tmp_path, monkeypatch):
    """Claims are given back at the very moment when the watch looks."""
    ended = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    monkeypatch.setattr("fujinsplat.core.claims.os.kill", lambda *words: ended.append(words))
    for number in range(200):
        with holding([tmp_path / f"{number}.{part}" for part in range(4)], os.getpid(), "rule") as claims:
            claims.watch(every=0.0005)
            time.sleep(0.003)
    assert ended == []


def test_claims_of_a_job_that_fails_are_released(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(RuntimeError), holding([one, two], os.getpid(), "rule"):
        raise RuntimeError
    claims = Claims([one, two], os.getpid(), "rule")
    claims.take()
    claims.release()
    assert list(Path(tmp_path).iterdir()) == []
