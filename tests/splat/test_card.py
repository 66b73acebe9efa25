"""The GPU's way with tensors that really lie on another device, pretended by `tests/card.py`."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch


@pytest.mark.skipif(torch.version.cuda is not None, reason="a CUDA build of torch")
def test_trainings_on_a_pretend_card(tmp_path):
    cases = Path(__file__).with_name("card_cases.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", str(cases)]
    # torch's threads of a device that is none do not end by themselves: what counts is what pytest says
    done = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "cases")], capture_output=True, text=True, check=False
    )
    assert "5 passed" in done.stdout and "failed" not in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
