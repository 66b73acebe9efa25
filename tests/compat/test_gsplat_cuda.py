"""gsplat's kernels are compiled at set-up, once, for named architectures, and only loaded afterwards."""

import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from fujinsplat import warmup
from fujinsplat.compat import gsplat_cuda
from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError

pytestmark = pytest.mark.skipif(torch.version.cuda is not None, reason="a CUDA build of torch")


def executable(path: Path, script: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder for the kernels, a toolkit, no cards."""
    monkeypatch.setattr(gsplat_cuda, "folder", lambda: tmp_path / "kernels")
    monkeypatch.setattr(gpu, "cards", list)
    monkeypatch.setattr(gpu, "nvcc", lambda major=None: executable(tmp_path / "cuda" / "bin" / "nvcc"))
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    return tmp_path / "kernels"


# stands for gsplat's own build: writes down its environment, and a library
BUILD = """
import os, pathlib
where = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"])
with (where / "builds").open("a") as diary:
    diary.write(os.environ["TORCH_CUDA_ARCH_LIST"] + " " + os.environ["CUDA_HOME"] + "\\n")
(where / "gsplat_cuda").mkdir(exist_ok=True)
(where / "gsplat_cuda" / "gsplat_cuda.so").write_bytes(b"code")
"""


def test_compiled_once_for_an_explicit_list(place, monkeypatch):
    monkeypatch.setattr(gsplat_cuda, "COMPILE", BUILD)
    for _ in range(2):
        gsplat_cuda.compile_kernels()
    home = place.parent / "cuda"
    assert (place / "builds").read_text() == f"7.0;7.5;8.0;8.6;8.9;9.0+PTX {home}\n"
    assert gsplat_cuda.compiled_for() == "7.0;7.5;8.0;8.6;8.9;9.0+PTX"
    monkeypatch.setattr(gpu, "cards", lambda: [gpu.Card("x", (8, 0), 1, 1), gpu.Card("y", (7, 0), 1, 1)])
    gsplat_cuda.compile_kernels()
    assert gsplat_cuda.compiled_for() == "7.0;8.0", "the cards in sight"
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.9 9.0")
    gsplat_cuda.compile_kernels()
    assert gsplat_cuda.compiled_for() == "8.9;9.0", "what the user names"
    assert len((place / "builds").read_text().splitlines()) == 3


def test_processes_side_by_side_compile_once(place, monkeypatch):
    slow = BUILD.replace("import os, pathlib", "import os, pathlib, time; time.sleep(0.5)")
    script = (
        "from pathlib import Path\nfrom fujinsplat.compat import gsplat_cuda as g\nfrom fujinsplat.core import gpu\n"
        f"g.folder = lambda: Path({str(place)!r})\ng.COMPILE = {slow!r}\ngpu.cards = list\n"
        f"gpu.nvcc = lambda major=None: Path({str(gpu.nvcc())!r})\ng.compile_kernels()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert len((place / "builds").read_text().splitlines()) == 1


def test_no_compiler_is_one_sentence(place, monkeypatch):
    monkeypatch.setattr(gpu, "nvcc", lambda major=None: None)
    with pytest.raises(UserError, match=r"there is no nvcc .* install the CUDA toolkit"):
        gsplat_cuda.compile_kernels()
    monkeypatch.setattr(gpu, "nvcc", lambda major=None: place.parent / "cuda" / "bin" / "nvcc")
    monkeypatch.setattr(gpu, "host_compiler", lambda: None)
    with pytest.raises(UserError, match=r"there is no g\+\+"):
        gsplat_cuda.compile_kernels()


def test_a_compiler_of_another_release_than_torchs_is_one_sentence(place, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    release = executable(
        place.parent / "cuda" / "bin" / "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'"
    )
    monkeypatch.setattr(gpu, "nvcc", lambda major=None: release)
    with pytest.raises(UserError, match=r"nvcc is of CUDA 13\.0 and torch is built for CUDA 12\.6; .* CUDA_HOME"):
        gsplat_cuda.compile_kernels()
    assert not (place / "build.log").exists()


@pytest.mark.parametrize(
    "include, given", [("include", None), ("targets/x86_64-linux/include", "targets/x86_64-linux/include")]
)
def test_torch_is_told_where_conda_keeps_the_headers(place, monkeypatch, include, given):
    monkeypatch.delenv("CUDA_INC_PATH", raising=False)
    home = place.parent / "cuda"
    (home / include).mkdir(parents=True)
    (home / include / "cuda_runtime.h").touch()
    environment = gsplat_cuda.build_environment(place, "8.0")
    assert environment["CUDA_HOME"] == str(home)
    assert environment.get("CUDA_INC_PATH") == (given and str(home / given))


def test_nvcc_calls_the_compiler_that_the_doctor_names(place, monkeypatch):
    chosen = executable(place.parent / "bin" / "g++-13", "echo 'g++-13 13.2.0'")
    monkeypatch.setenv("CXX", str(chosen))
    monkeypatch.setenv("CC", "gcc-15")
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    environment = gsplat_cuda.build_environment(place, "8.0")
    assert {environment[name] for name in ("CC", "CXX", "NVCC_CCBIN")} == {str(chosen)}
    assert gpu.host_compiler() == (str(chosen), 13)


def test_a_failed_compilation_names_its_log_and_is_tried_again(place, monkeypatch):
    monkeypatch.setattr(gsplat_cuda, "COMPILE", "print('unsupported GNU version'); raise SystemExit(1)")
    with pytest.raises(UserError, match=r"build\.log says why"):
        gsplat_cuda.compile_kernels()
    assert "unsupported GNU version" in (place / "build.log").read_text()
    assert gsplat_cuda.compiled_for() is None
    monkeypatch.setattr(gsplat_cuda, "COMPILE", BUILD)
    gsplat_cuda.compile_kernels()
    assert gsplat_cuda.compiled_for() is not None


def test_a_job_never_compiles(place, monkeypatch):
    """It names what set-up has to do: kernels missing, or for other cards."""
    monkeypatch.delitem(sys.modules, "gsplat.csrc", raising=False)
    with pytest.raises(UserError, match=r"not compiled in this environment; run `.* -m fujinsplat\.warmup`"):
        gsplat_cuda.load_kernels()
    monkeypatch.setattr(gsplat_cuda, "COMPILE", BUILD)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    gsplat_cuda.compile_kernels()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "V100")
    with pytest.raises(UserError, match=r"compiled for 8\.0, but V100 .* 7\.0; .*TORCH_CUDA_ARCH_LIST='8\.0;7\.0'"):
        gsplat_cuda.load_kernels()
    assert len((place / "builds").read_text().splitlines()) == 1


def test_the_remedy_works_in_a_finished_environment(place, monkeypatch):
    """The command exists, and what it does leaves kernels for the card that had none."""
    monkeypatch.setattr(gsplat_cuda, "COMPILE", BUILD)
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    gsplat_cuda.compile_kernels()
    command = shlex.split(re.findall("`(.*)`", gsplat_cuda.remedy("8.0;7.0"))[0])
    variable, chosen = command[0].split("=")
    assert Path(command[1]).is_file() and command[2:] == ["-m", warmup.__name__]
    monkeypatch.setenv(variable, chosen)
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    monkeypatch.setattr(warmup, "PARTS", {})
    monkeypatch.setattr(warmup, "ProcessPoolExecutor", lambda *_, **__: nullcontext())
    warmup.main()
    assert gpu.fits((7, 0), str(gsplat_cuda.compiled_for()).split(";"))


def test_kernels_are_handed_to_gsplat_as_its_own(place, monkeypatch):
    """Any compiled module will do here: gsplat takes what stands under the name of its own."""
    import gsplat

    monkeypatch.delitem(sys.modules, "gsplat.csrc", raising=False)
    monkeypatch.setattr(gsplat, "csrc", None, raising=False)
    import _heapq as some  # a small extension module of the standard library

    if not getattr(some, "__file__", None):
        pytest.skip("this Python has its extension modules built in")
    monkeypatch.setattr(gsplat_cuda, "MODULE", "_heapq")
    (place / "_heapq").mkdir(parents=True)
    (place / "_heapq" / "_heapq.so").symlink_to(some.__file__)
    (place / "ready.json").write_text('{"architectures": "7.0"}')
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 0))
    gsplat_cuda.load_kernels()
    from gsplat import csrc

    assert sys.modules["gsplat.csrc"] is csrc and csrc.heappush
    sys.modules.pop("gsplat.csrc")


def test_an_untried_gsplat_is_one_sentence(monkeypatch):
    monkeypatch.setattr(gsplat_cuda, "version", lambda package: "1.9.0")
    with pytest.raises(UserError, match=r"gsplat 1\.9\.0 was not tried .* gsplat==1\.5\.3"):
        gsplat_cuda.checked_version()


def test_what_is_installed_is_what_is_accepted():
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = next(line for line in declared if line.startswith("gsplat"))
    assert bounds.split(",")[1] == gsplat_cuda.VERSIONS.split(",")[1]


def test_the_toolkit_of_pip_gets_the_names_that_linkers_ask_for(tmp_path, monkeypatch):
    home = tmp_path / "nvidia" / "cu13"
    monkeypatch.setattr(gpu, "nvcc", lambda major=None: executable(home / "bin" / "nvcc"))
    (home / "lib").mkdir(parents=True)
    (home / "lib" / "libcudart.so.13").write_bytes(b"library")
    environment = gsplat_cuda.build_environment(tmp_path / "kernels", "12.0")
    first = Path(environment["LIBRARY_PATH"].split(os.pathsep)[0])
    assert (first / "libcudart.so").read_bytes() == b"library"
    assert environment["CUDA_HOME"] == str(home)


def test_gsplat_still_compiles_when_it_first_draws():
    import inspect

    from gsplat.cuda import _wrapper

    backend = Path(inspect.getfile(_wrapper)).with_name("_backend.py").read_text()
    assert "from gsplat import csrc" in backend and "_jit_compile" in backend, "compat/gsplat_cuda.py can go"
