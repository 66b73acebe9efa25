"""What the doctor says of machines with GPUs, described to it: each trouble with its remedy."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fujinsplat import doctor_gpu
from fujinsplat.compat import gsplat_cuda
from fujinsplat.core import gpu
from fujinsplat.doctor import BROKEN, NOTE, OK

V100 = gpu.Card("Tesla V100", (7, 0), 16384, 16000)
BLACKWELL = gpu.Card("RTX 5090", (12, 0), 32000, 1000)


def a_torch(cuda: str | None, *built_for: str):
    return SimpleNamespace(version=SimpleNamespace(cuda=cuda), cuda=SimpleNamespace(get_arch_list=lambda: [*built_for]))


@pytest.fixture
def machine(monkeypatch):
    """Describes the machine; everything fits unless said otherwise."""

    def describe(driver="560.35.3", cards=(V100,), nvcc=Path("/x/nvcc"), release=(12, 6), gcc=12, compiled="7.0"):
        monkeypatch.setattr(gpu, "driver", lambda: driver)
        monkeypatch.setattr(gpu, "cards", lambda: list(cards))
        monkeypatch.setattr(gpu, "nvcc", lambda major=None: nvcc)
        monkeypatch.setattr(gpu, "release", lambda compiler: release)
        monkeypatch.setattr(gpu, "host_compiler", lambda: gcc and ("/usr/bin/g++", gcc))
        monkeypatch.setattr(gsplat_cuda, "compiled_for", lambda: compiled)

    describe()
    return describe


def told(torch) -> dict:
    found = list(doctor_gpu.findings(torch))
    assert all(bool(finding.remedy) == (finding.state != OK) for finding in found)
    return {finding.name: finding for finding in found}


def test_a_sound_v100(machine):
    found = told(a_torch("12.6", "sm_70", "sm_90"))
    assert set(found) == {"driver", "card", "GPU memory", "rasteriser", "nvcc", "gcc"}
    assert {finding.state for finding in found.values()} == {OK}
    assert "7.0" in found["card"].text and "16000 of 16384 MB" in found["GPU memory"].text


def test_driver(machine):
    machine(driver="470.82.01")
    found = told(a_torch("12.6", "sm_70"))["driver"]
    assert found.state == BROKEN and "525" in found.remedy
    machine(driver=None, cards=())
    assert "install NVIDIA's driver" in told(a_torch("12.6", "sm_70"))["driver"].remedy


def test_the_memory_manager_of_the_driver(machine, monkeypatch, tmp_path):
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(gpu, "NODES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(gpu, "UVM", str(tmp_path / "nvidia-uvm"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = told(a_torch("12.6", "sm_70"))["driver"]
    assert found.state == BROKEN and "nvidia-uvm is missing" in found.text and "nvidia-modprobe" in found.remedy
    (tmp_path / "nvidia-uvm").touch()
    assert told(a_torch("12.6", "sm_70"))["driver"].state == OK


def test_card_and_build(machine):
    found = told(a_torch("13.0", "sm_75", "sm_90"))["card"]
    assert found.state == BROKEN and "CUDA=cu126" in found.remedy and "sm_75" in found.text
    machine(cards=(BLACKWELL,), compiled="12.0")
    found = told(a_torch("12.6", "sm_70", "sm_90"))
    assert "CUDA=cu130" in found["card"].remedy
    assert found["GPU memory"].state == NOTE and "splat.max_gaussians" in found["GPU memory"].remedy
    assert "CPU build" in told(a_torch(None))["card"].text


def test_a_card_older_than_every_build_does_not_end_the_report(machine):
    machine(cards=(gpu.Card("K40", (3, 5), 12000, 11000), V100))
    found = list(doctor_gpu.findings(a_torch("12.6", "sm_70")))
    old, new = (finding for finding in found if finding.name == "card")
    assert old.state == BROKEN and "3.5 is older than any torch build" in old.remedy and "device: cpu" in old.remedy
    assert new.state == OK and {"rasteriser", "nvcc", "gcc"} <= {finding.name for finding in found}


def test_compilers(machine):
    machine(nvcc=None)
    assert "CUDA_HOME" in told(a_torch("12.6", "sm_70"))["nvcc"].remedy
    machine(release=(11, 8))
    assert "built for CUDA 12.6" in told(a_torch("12.6", "sm_70"))["nvcc"].remedy
    machine(gcc=15)
    assert "CXX=g++-13" in told(a_torch("12.6", "sm_70"))["gcc"].remedy
    machine(gcc=None)
    assert told(a_torch("12.6", "sm_70"))["gcc"].state == NOTE


def test_kernels(machine, monkeypatch):
    machine(compiled=None)
    found = told(a_torch("12.6", "sm_70"))["rasteriser"]
    assert found.state == BROKEN and "-m fujinsplat.warmup" in found.remedy
    machine(compiled="8.0;9.0")
    found = told(a_torch("12.6", "sm_70"))["rasteriser"]
    assert "not 7.0" in found.text and "TORCH_CUDA_ARCH_LIST='8.0;9.0;7.0'" in found.remedy
    machine(compiled="")
    assert told(a_torch("12.6", "sm_70"))["rasteriser"].state == OK, "a wheel with its own"
    monkeypatch.setattr(gsplat_cuda, "version", lambda package: "2.0.0")
    assert "was not tried" in told(a_torch("12.6", "sm_70"))["rasteriser"].text
