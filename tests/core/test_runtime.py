"""Arithmetic, threads and devices."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from fujinsplat.core import gpu, runtime
from fujinsplat.core.errors import UserError
from fujinsplat.core.runtime import pick_device, use_arithmetic
from fujinsplat.core.versions import vector_flags

ROOT = Path(__file__).parents[2]

CLAIM = """
import sys
from pathlib import Path
from fujinsplat.core.runtime import claim
print(claim(["0", "1", "2"], Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def test_processes_side_by_side_take_different_devices_and_give_them_back(tmp_path):
    def start():
        command = [sys.executable, "-c", CLAIM, str(tmp_path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline())

    held = [start() for _ in range(5)]
    try:
        assert [device for _, device in held] == [0, 1, 2, 0, 1], "a free one each; then two on one, evenly"
        for killed in (held[1], held[4]):
            killed[0].kill()
            killed[0].wait()
        held.append(start())
        assert held[-1][1] == 1, "the device of killed processes is free again"
    finally:
        for process, _ in held:
            process.kill()
            process.communicate()


def test_a_device_is_claimed_by_its_real_name(tmp_path, monkeypatch):
    """Two jobs that see different parts of the machine's GPUs: the second is told `cuda:1`, which is GPU 3."""
    monkeypatch.setattr(gpu, "trouble", lambda torch: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(runtime, "_claims", held := [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    assert [pick_device("auto"), pick_device("cuda")] == ["cuda:0", "cuda:1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert pick_device("auto") == "cuda:1"
    assert pick_device("cuda:0") == "cuda:0" and pick_device("cpu") == "cpu", "a named device is what it says"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert pick_device("auto") == "cuda", "a batch system has chosen"
    assert len(held) == 3
    for lock in held:
        lock.close()


EXCLUSIVE = """
import sys, time
from pathlib import Path
from fujinsplat.core.runtime import exclusive

def note(word):
    with Path(sys.argv[2]).open("a") as diary:
        diary.write(word)

with exclusive(Path(sys.argv[1]), lambda: print("waiting", flush=True)):
    note("in ")
    print("in", flush=True)
    sys.stdin.readline()
    time.sleep(0.1)
    note("out ")
"""


def test_one_process_at_a_time_holds_a_lock_even_when_the_holder_is_killed(tmp_path):
    lock, diary = tmp_path / "folder" / "training.lock", tmp_path / "diary"
    command = [sys.executable, "-c", EXCLUSIVE, str(lock), str(diary)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes)]
    try:
        assert processes[0].stdout.readline() == "in\n"
        processes += [subprocess.Popen(command, **pipes) for _ in range(2)]
        assert [process.stdout.readline() for process in processes[1:]] == ["waiting\n"] * 2
        processes[0].kill()
        processes[0].wait()
        for process in processes[1:]:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes[1:]:
            process.wait(timeout=30)
        assert diary.read_text() == "in in out in out ", "the killed one, then both others, one after the other"
        assert not lock.exists(), "no litter"
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_missing_cuda_device_is_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert pick_device("auto") == pick_device("cpu") == "cpu"
    with pytest.raises(UserError, match="device: cpu"):
        pick_device("cuda")


PORTABLE = """
from fujinsplat.core.runtime import use_arithmetic
use_arithmetic()
import numpy as np
from numpy._core._multiarray_umath import __cpu_features__
assert not any(on for name, on in __cpu_features__.items() if name in ("X86_V4", "AVX512_ICL", "AVX512_SPR"))
import torch
assert torch.backends.cpu.get_cpu_capability() == "AVX2"
from numba import njit
from fujinsplat.kernels.simd import REGISTER_BYTES
assert REGISTER_BYTES == 32
@njit(fastmath=True)
def total(x):
    y = np.float32(0)
    for i in range(x.size):
        y += x[i] * x[i]
    return y
total(np.ones(99, np.float32))
(code,) = total.inspect_asm().values()
assert "%ymm" in code and "%zmm" not in code and "vfmadd" in code
from fujinsplat.core.versions import processor
assert processor().endswith("portable AVX2 kernels")
"""


@pytest.mark.skipif("avx2" not in vector_flags(), reason="needs an x86-64 CPU with AVX2")
def test_portable_arithmetic_holds_in_every_library():
    environment = {**os.environ, "FUJINSPLAT_ARITHMETIC": "portable", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PORTABLE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_arithmetic_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("FUJINSPLAT_ARITHMETIC", "exact")
    with pytest.raises(
        UserError, match="there is no arithmetic 'exact'; set FUJINSPLAT_ARITHMETIC to fast or portable"
    ):
        use_arithmetic()


@pytest.mark.parametrize("threads, code", [(1, 0), (1024, 0), (0, 2), (1025, 2), (10**9, 2)])
def test_more_threads_than_any_machine_has_are_refused(threads, code):
    import typer
    from typer.testing import CliRunner

    from fujinsplat.core.options import ThreadsOption

    app = typer.Typer()

    @app.command()
    def run(threads: ThreadsOption = None) -> None:
        pass

    done = CliRunner().invoke(app, ["--threads", str(threads)])
    assert done.exit_code == code and ("--threads" in done.output) == bool(code)
