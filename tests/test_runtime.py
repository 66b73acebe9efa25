"""Threads and devices."""

import subprocess
import sys

import pytest
import torch

from fujinsplat.errors import UserError
from fujinsplat.runtime import pick_device

CLAIM = """
import sys
from pathlib import Path
from fujinsplat.runtime import claim
print(claim(["0", "1", "2"], Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def test_processes_side_by_side_take_different_devices_and_give_them_back(tmp_path):
    def start():
        command = [sys.executable, "-c", CLAIM, str(tmp_path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline())

    held = [start() for _ in range(3)]
    try:
        assert [device for _, device in held] == [0, 1, 2]
        held[1][0].kill()
        held[1][0].wait()
        held.append(start())
        assert held[-1][1] == 1, "the device of a killed process is free again"
    finally:
        for process, _ in held:
            process.kill()
            process.communicate()


def test_a_missing_cuda_device_is_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    assert pick_device("auto") == pick_device("cpu") == "cpu"
    with pytest.raises(UserError, match="device: cpu"):
        pick_device("cuda")
