"""GPUs without a GPU: what decides between builds, drivers and cards, on machines that are described to it."""

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import typer

from fujinsplat import cli
from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.runtime import pick_device
from fujinsplat.rows.registries import AllSettings

CU126 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU130 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def a_torch(cuda: str | None, capabilities: list[tuple[int, int]], built_for: list[str]):
    """What `trouble` asks of torch."""
    return SimpleNamespace(
        __version__="2.13.0",
        version=SimpleNamespace(cuda=cuda),
        cuda=SimpleNamespace(
            is_available=lambda: bool(capabilities),
            device_count=lambda: len(capabilities),
            get_device_capability=lambda index: capabilities[index],
            get_arch_list=lambda: built_for,
            get_device_name=lambda index: "a card",
        ),
    )


@pytest.mark.parametrize(
    "capability, built_for, runs",
    [
        ((7, 0), CU126, True),
        ((7, 0), CU130, False),
        ((8, 9), CU126, True),  # 8.6's machine code
        ((9, 0), CU126, True),
        ((12, 0), CU126, False),
        ((12, 0), CU130, True),
        ((13, 0), CU130, True),  # compiled by the driver
        ((8, 0), ["8.6"], False),
        ((8, 9), ["8.6", "9.0+PTX"], True),
        ((10, 0), ["7.0", "9.0+PTX"], True),
        ((9, 0), ["sm_90a"], True),
        ((7, 0), [], False),
    ],
)
def test_which_code_runs_on_which_card(capability, built_for, runs):
    assert gpu.fits(capability, built_for) == runs


def test_the_wheel_fits_the_card():
    assert gpu.wheel([(7, 0)]) == gpu.wheel([(8, 0), (8, 9), (9, 0)]) == gpu.wheel([]) == "cu126"
    assert gpu.wheel([(12, 0)]) == gpu.wheel([(7, 5), (10, 0)]) == "cu130"
    with pytest.raises(UserError, match=r"7\.0 and 12\.0"):
        gpu.wheel([(7, 0), (12, 0)])


@pytest.mark.parametrize(
    "machine, driver, words",
    [
        (a_torch(None, [], []), "550.54.15", "CPU build"),
        (a_torch("12.6", [], []), None, "no NVIDIA driver is loaded"),
        (a_torch("13.0", [], []), "550.54.15", "too old for torch's CUDA 13.0, which needs 580"),
        (a_torch("12.6", [], []), "550.54.15", "gives torch .* no device"),
        (a_torch("13.0", [(7, 0)], CU130), "580.10.1", r"capability 7\.0, .* CUDA=cu126"),
        (a_torch("12.6", [(8, 0), (12, 0)], CU126), "580.10.1", r"capability 12\.0, .* CUDA=cu130"),
        (a_torch("12.6", [(3, 5)], CU126), "470.82.1", r"capability 3\.5 is older .* device: cpu"),
    ],
    ids=["CPU build", "no driver", "old driver", "no device", "old card", "new card", "ancient card"],
)
def test_a_gpu_that_torch_cannot_use_is_one_sentence(monkeypatch, machine, driver, words):
    monkeypatch.setattr(gpu, "present", lambda: True)
    monkeypatch.setattr(gpu, "driver", lambda: driver)
    sentence = gpu.trouble(machine)
    assert "\n" not in sentence and ";" in sentence
    with pytest.raises(UserError, match=words):
        raise UserError(sentence)


def test_a_usable_gpu_is_no_trouble(monkeypatch):
    monkeypatch.setattr(gpu, "driver", lambda: "550.54.15")
    assert gpu.trouble(a_torch("12.6", [(7, 0)], CU126)) is None


def test_auto_never_falls_back_to_the_cpu_beside_a_gpu(monkeypatch):
    if torch.version.cuda is not None:
        pytest.skip("a CUDA build of torch")
    monkeypatch.setattr(gpu, "present", lambda: True)
    with pytest.raises(UserError, match="device is auto, but torch is a CPU build; `make setup DEVICE=cuda`"):
        pick_device("auto")
    assert pick_device("cpu") == "cpu"
    monkeypatch.setattr(gpu, "present", lambda: False)
    monkeypatch.setattr(gpu, "undriven", lambda: False)
    assert pick_device("auto") == "cpu"


def test_a_card_without_a_driver_is_not_passed_over_in_silence(tmp_path, monkeypatch, capsys):
    if torch.cuda.is_available():
        pytest.skip("a GPU")
    monkeypatch.setattr(gpu, "PCI", str(tmp_path / "*"))
    monkeypatch.setattr(gpu, "NODES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(gpu, "WSL", str(tmp_path / "dxg"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    card = tmp_path / "0000:01:00.0"
    card.mkdir()
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x040300\n")
    assert pick_device("auto") == "cpu", "its sound device"
    (card / "class").write_text("0x030000\n")
    assert "NVIDIA" not in capsys.readouterr().err
    assert pick_device("auto") == "cpu" and "card has no driver here" in capsys.readouterr().err
    assert pick_device("cpu") == "cpu"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert pick_device("auto") == "cpu" and not capsys.readouterr().err, "the user has hidden it"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    (tmp_path / "nvidia0").touch()
    assert not gpu.undriven()


def test_cards_and_driver_as_nvidia_smi_tells_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    lines = ("0, GPU-a1, Tesla V100-SXM2-16GB, 7.0, 16384, 16000", "1, GPU-a2, No device, [N/A], x, y")
    program(tmp_path, "nvidia-smi", "".join(f"echo '{line}';" for line in lines))
    assert gpu.cards() == [gpu.Card("Tesla V100-SXM2-16GB", (7, 0), 16384, 16000)]
    program(tmp_path, "nvidia-smi", "echo 'has failed'; exit 9")
    assert gpu.cards() == []


@pytest.mark.parametrize(
    "visible, names",
    [
        (None, "abc"), ("0", "a"), ("2, 0", "ac"), ("GPU-b1", "b"), ("GPU-b2f0", "c"), ("GPU-b", "bc"), ("7", ""),
        ("", ""), ("-1", ""), ("NoDevFiles", ""), ("MIG-0815", "abc"),
    ],
)  # fmt: skip
def test_cards_are_the_visible_ones(tmp_path, monkeypatch, visible, names):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    lines = ("0, GPU-a0, a, 7.0, 1, 1", "1, GPU-b1, b, 8.0, 1, 1", "2, GPU-b2f0, c, 12.0, 1, 1")
    program(tmp_path, "nvidia-smi", "".join(f"echo '{line}';" for line in lines))
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert "".join(card.name for card in gpu.cards()) == names


def test_hidden_gpus_are_not_there(tmp_path, monkeypatch):
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(gpu, "NODES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu.present() and gpu.count() == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert gpu.count() == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not gpu.present() and gpu.count() == 0


def test_nvcc_is_found_outside_the_path(tmp_path, monkeypatch):
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(gpu, "TOOLKITS", (str(tmp_path / "cuda-*"),))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    assert gpu.nvcc() is None
    pip = program(tmp_path / "site/nvidia/cu13/bin", "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    assert gpu.nvcc() == pip and gpu.release(pip) == (13, 0)
    usual = [program(tmp_path / f"cuda-12.{minor}/bin", "nvcc", "") for minor in (4, 6)]
    assert gpu.nvcc() == usual[1], "the newest of the usual folders"
    on_path = program(tmp_path / "nothing", "nvcc", "")
    assert gpu.nvcc() == on_path
    assert gpu.nvcc(13) == pip, "the release that torch is built for"
    assert gpu.nvcc(12) == on_path, "none says that it is one"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda-12.4"))
    assert gpu.nvcc() == gpu.nvcc(13) == usual[0], "what the user names comes first"


def test_a_toolkit_is_found_behind_a_script_that_stands_for_its_compiler(tmp_path):
    """As clusters put one into PATH: nvcc itself says where it is at home."""
    home = tmp_path / "cuda-13.0"
    real = program(home / "bin", "nvcc", f"echo '#$ _HERE_={home}/bin' >&2; echo '#$ TOP={home}/bin/..' >&2")
    script = program(tmp_path / "usr" / "bin", "nvcc", f'exec {real} "$@"')
    assert gpu.toolkit(script) == tmp_path / "usr", "there is nothing there either"
    (home / "include").mkdir()
    (home / "include" / "cuda_runtime.h").touch()
    assert gpu.toolkit(script) == gpu.toolkit(real) == home
    link = tmp_path / "link"
    link.symlink_to(real)
    assert gpu.toolkit(link) == home


def test_gcc_that_nvcc_takes():
    assert [gpu.newest_gcc(cuda) for cuda in ((12, 6), (12, 9), (13, 2), (10, 0))] == [13, 14, 15, 0]


def test_full_memory_is_a_sentence_that_names_a_setting():
    with pytest.raises(UserError, match=r"CUDA out of memory\); lower splat.max_gaussians"):
        with gpu.memory_bound("lower splat.max_gaussians"):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has …")
    with pytest.raises(RuntimeError, match="other"), gpu.memory_bound("lower splat.max_gaussians"):
        raise RuntimeError("other")


@pytest.mark.parametrize(
    "words, full",
    [
        ("CUDA error: out of memory\nCUDA kernel errors might be reported asynchronously", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("CUDA error: an illegal memory access was encountered", False),
        ("DefaultCPUAllocator: can't allocate memory", False),
    ],
)
def test_every_command_says_in_a_sentence_that_the_gpu_is_full(monkeypatch, capsys, words, full):
    def run():
        raise RuntimeError(words)

    monkeypatch.setattr(cli, "_run", run)
    monkeypatch.setattr(cli, "as_a_job", nullcontext)
    if not full:
        with pytest.raises(RuntimeError):
            cli.main()
        return
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err.strip()
    assert end.value.code == 2 and "the GPU's memory is full" in said and "device: cpu" in said and "\n" not in said


def test_numbers_keep_their_precision():
    torch.backends.cudnn.allow_tf32 = True
    gpu.full_precision()
    assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("command", [*cli.SMALLER, "actions fit"])
def test_a_full_gpu_names_what_lowers_this_command_s_need(monkeypatch, capsys, command):
    """Each remedy belongs to a command that uses a GPU, and names a setting or an option that there is."""

    def run():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(cli, "_run", run)
    monkeypatch.setattr(cli, "as_a_job", nullcontext)
    monkeypatch.setattr(sys, "argv", ["fujinsplat", *command.split(), "--out", "x"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().err.strip()
    remedy = cli.SMALLER.get(command, "")
    assert f"; {remedy}" in said and "set device: cpu" in said and "None" not in said and "\n" not in said
    stage, name = command.split()
    options = {
        p
        for c in typer.main.get_command(cli.build()).commands[stage].commands.items()
        if c[0] == name
        for o in c[1].params
        for p in o.opts
    }
    assert not remedy or "--device" in options
    for option in re.findall(r"--\w+", remedy):
        assert option in options
    for block, setting in re.findall(r"settings\.(\w+)\.(\w+)", remedy):
        assert setting in type(getattr(AllSettings(), block)).model_fields


def test_a_driver_without_its_memory_manager_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "NODES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(gpu, "UVM", str(tmp_path / "nvidia-uvm"))
    monkeypatch.setattr(gpu, "driver", lambda: "550.54.15")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert not gpu.without_memory_manager(), "there is no GPU"
    (tmp_path / "nvidia0").touch()
    assert "nvidia-uvm is missing; load it" in gpu.trouble(a_torch("12.6", [], []))
    (tmp_path / "nvidia-uvm").touch()
    assert "nvidia-uvm" not in gpu.trouble(a_torch("12.6", [], []))
