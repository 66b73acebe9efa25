"""gsplat's CUDA kernels: compiled once at set-up, then only loaded. Tested with gsplat 1.5.3.

gsplat compiles them when a process first draws, for whatever architectures torch finds there, and again when that list
or the machine differs: the first jobs of a workflow would compile side by side, and nodes of a cluster without nvcc
would fail. Here set-up compiles them, under a lock, for an explicit list of architectures. Jobs hand the finished
module to gsplat as its own `gsplat.csrc`, which it looks for before it would compile.
"""

import os
import shlex
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json, write_json
from fujinsplat.core.progress import say
from fujinsplat.core.runtime import exclusive

VERSIONS = "gsplat >=1.5,<1.7"
MODULE = "gsplat_cuda"  # the name gsplat gives the module it compiles
# where no card is in sight, as on a cluster's login node: code for every card that torch's build has code for
USUAL = {12: "7.0;7.5;8.0;8.6;8.9;9.0+PTX", 13: "7.5;8.0;8.6;8.9;9.0;10.0;12.0+PTX"}
COMPILE = "from gsplat.cuda._backend import _C; assert _C is not None"


def checked_version() -> str:
    """The installed gsplat's version; one that this code was not tried with is refused."""
    from packaging.specifiers import SpecifierSet

    installed = version("gsplat")
    tested = VERSIONS.partition(" ")[2]
    if installed.split("+")[0] not in SpecifierSet(tested, prereleases=True):
        raise UserError(
            f"gsplat {installed} was not tried with this code, which knows {tested}; "
            "install one of these: `pip install --no-deps gsplat==1.5.3`"
        )
    return installed


def remedy(wanted: str = "") -> str:
    """What compiles them again, for `wanted` or for the cards in sight: make holds a finished environment for done."""
    chosen = f"TORCH_CUDA_ARCH_LIST={shlex.quote(wanted)} " if wanted else ""
    return f"run `{chosen}{shlex.quote(sys.executable)} -m fujinsplat.warmup` where nvcc is"


def folder() -> Path:
    """Where the compiled kernels of this environment lie: in it, or in the user's cache where it cannot be written."""
    import torch

    name = f"gsplat-{version('gsplat')}-torch-{torch.__version__}-py{sys.version_info[0]}{sys.version_info[1]}"
    place = Path(sys.prefix) / "lib" / "fujinsplat"
    if os.access(Path(sys.prefix) / "lib", os.W_OK) or (place / name).is_dir():
        return place / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fujinsplat" / name


def architectures() -> str:
    """TORCH_CUDA_ARCH_LIST, or the cards in sight, or everything torch's build is for."""
    import torch

    if given := os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return ";".join(given.replace(",", ";").replace(" ", ";").split(";"))
    seen = sorted({card.capability for card in gpu.cards()})
    if seen:
        return ";".join(map(gpu.dotted, seen))
    major = int((torch.version.cuda or "12").split(".")[0])
    return USUAL[min(max(major, min(USUAL)), max(USUAL))]


def compile_kernels() -> None:
    """For set-up: compile them unless they are there for these architectures; one process at a time."""
    checked_version()
    if find_spec("gsplat.csrc") is not None:
        return  # a gsplat wheel that brings its kernels
    where, wanted = folder(), architectures()
    if _compiled(where) == wanted:
        return
    where.mkdir(parents=True, exist_ok=True)
    with exclusive(where / "compiling.lock", lambda: say(f"another process compiles gsplat's kernels in {where}")):
        if _compiled(where) == wanted:
            return
        (where / "ready.json").unlink(missing_ok=True)
        environment = build_environment(where, wanted)
        say(f"compiling gsplat's CUDA kernels for {wanted} (once; some minutes)")
        with (where / "build.log").open("w") as log:
            command = [sys.executable, "-c", COMPILE]
            done = subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode or _library(where) is None:
            raise UserError(
                f"gsplat's kernels do not compile; {where / 'build.log'} says why, and `fujinsplat doctor` whether "
                "nvcc, gcc and torch fit together"
            )
        write_json(where / "ready.json", {"architectures": wanted})


def build_environment(where: Path, wanted: str) -> dict[str, str]:
    """Environment variables of the compilation: its compiler, its architectures, its folder."""
    import torch

    cuda = torch.version.cuda or ""
    major = cuda.split(".")[0]
    compiler = gpu.nvcc(int(major) if major else None)
    if compiler is None:
        raise UserError(
            "gsplat's CUDA kernels cannot be compiled: there is no nvcc in CUDA_HOME, PATH, /usr/local/cuda or beside "
            "Python; load or install the CUDA toolkit (`module load cuda`, or conda's cuda-toolkit) and start again"
        )
    release = gpu.release(compiler)
    if major and release and str(release[0]) != major:
        raise UserError(
            f"gsplat's CUDA kernels cannot be compiled: {compiler} is of CUDA {gpu.dotted(release)} and torch is built "
            f"for CUDA {cuda}; load or install a toolkit of CUDA {major}, name it in CUDA_HOME and start again"
        )
    host = gpu.host_compiler()
    if host is None:
        raise UserError("gsplat's CUDA kernels cannot be compiled: there is no g++; install gcc, or name one in CXX")
    home = gpu.toolkit(compiler)
    cores = len(os.sched_getaffinity(0))
    found = {
        "CUDA_HOME": str(home),
        # torch compiles C++ with CXX but hands nvcc CC, and nvcc without either takes the g++ in PATH
        **dict.fromkeys(("CC", "CXX", "NVCC_CCBIN"), host[0]),
        "TORCH_CUDA_ARCH_LIST": wanted,
        "TORCH_EXTENSIONS_DIR": str(where),
        "MAX_JOBS": os.environ.get("MAX_JOBS", str(max(1, min(cores, _jobs())))),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(home / "bin"), os.environ.get("PATH", "")]),
    }
    headers = gpu.headers(home)
    if headers not in (None, home / "include"):
        found["CUDA_INC_PATH"] = str(headers)  # conda's: torch looks into the toolkit's own folder alone
    links = _links(home, where)
    if links:
        found["LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(links), os.environ.get("LIBRARY_PATH")]))
    return {**os.environ, **found}


def _jobs() -> int:
    """Files compiled at once: each takes about 2 GB."""
    return max(1, int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2e9))


def _links(home: Path, where: Path) -> Path | None:
    """The toolkit that pip installs names its libraries by version only; the linker wants the plain name."""
    if any((home / lib / "libcudart.so").exists() for lib in ("lib64", "lib", "targets/x86_64-linux/lib")):
        return None
    versioned = sorted((home / "lib").glob("libcudart.so.*"))
    if not versioned:
        return None
    links = where / "lib"
    links.mkdir(parents=True, exist_ok=True)
    link = links / "libcudart.so"
    link.unlink(missing_ok=True)
    link.symlink_to(versioned[-1])
    return links


def _library(where: Path) -> Path | None:
    path = where / MODULE / f"{MODULE}.so"
    return path if path.is_file() else None


def _compiled(where: Path) -> str | None:
    """The architectures that finished kernels were compiled for."""
    if _library(where) is None:
        return None
    try:
        return read_json(where / "ready.json")["architectures"]
    except (UserError, KeyError, TypeError):
        return None


def compiled_for() -> str | None:
    """The architectures of the kernels that jobs would load; "" where gsplat's wheel brings its own, None: none."""
    return "" if find_spec("gsplat.csrc") is not None else _compiled(folder())


def load_kernels() -> None:
    """For jobs, before gsplat draws: hand it the kernels that set-up has compiled. Nothing is compiled here."""
    if "gsplat.csrc" in sys.modules:
        return
    checked_version()
    import gsplat

    if find_spec("gsplat.csrc") is not None:
        return
    where = folder()
    compiled = _compiled(where)
    if compiled is None:
        raise UserError(f"gsplat's CUDA kernels are not compiled in this environment; {remedy()}")
    import torch

    major, minor = torch.cuda.get_device_capability()
    capability = major, minor
    if not gpu.fits(capability, compiled.split(";")):
        raise UserError(
            f"gsplat's CUDA kernels are compiled for {compiled}, but {torch.cuda.get_device_name()} has compute "
            f"capability {gpu.dotted(capability)}; {remedy(f'{compiled};{gpu.dotted(capability)}')}"
        )
    path = _library(where)
    loader = ExtensionFileLoader(MODULE, str(path))
    spec = spec_from_file_location(MODULE, path, loader=loader)
    assert spec is not None  # a loader was given
    module = module_from_spec(spec)
    loader.exec_module(module)
    sys.modules["gsplat.csrc"] = module
    gsplat.__dict__["csrc"] = module
