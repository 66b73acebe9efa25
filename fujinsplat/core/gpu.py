"""NVIDIA GPUs: what this machine has, whether torch can use it, and how numbers are computed there.

Everything that can be known without torch is found without it: `fujinsplat doctor` and the set-up ask on machines where
torch cannot see the card.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from fujinsplat.core.errors import UserError

PATIENCE = 10  # seconds nvidia-smi may take: it wakes the driver where nothing keeps it loaded
NODES = "/dev/nvidia[0-9]*"  # one per GPU that this process may open; a batch system or container shows its own alone
UVM = (
    "/dev/nvidia-uvm"  # the driver's memory manager, without which CUDA finds no device; loaded by a module of its own
)
UVM_REMEDY = "load it (`nvidia-modprobe -u -c=0`, or `modprobe nvidia-uvm` as root), or hand it to the container"
WSL = "/dev/dxg"
PCI = "/sys/bus/pci/devices/*"
NVIDIA, DISPLAY = "0x10de", "0x03"
# oldest Linux driver by the CUDA release (major) that torch was built for: within a major release later ones run too
OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
# newest gcc that nvcc of a CUDA release accepts
NEWEST_GCC = {(11, 8): 11, (12, 0): 12, (12, 4): 13, (12, 8): 14, (13, 0): 15}
TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit")


@dataclass(frozen=True)
class Card:
    """A GPU as the driver tells it: memory in MB, `capability` such as (7, 0)."""

    name: str
    capability: tuple[int, int]
    total_mb: int
    free_mb: int


def present() -> bool:
    """Whether this process may open a GPU: the driver's device files, unless CUDA_VISIBLE_DEVICES hides them all."""
    return not hidden() and bool(glob(NODES) or Path(WSL).exists())


def without_memory_manager() -> bool:
    """Whether a GPU can be opened, but not the driver's memory manager."""
    return not hidden() and bool(glob(NODES)) and not Path(UVM).exists()


def hidden() -> bool:
    """Whether CUDA_VISIBLE_DEVICES hides every GPU."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles")


def undriven() -> bool:
    """Whether an NVIDIA display controller is built in that this process has no driver for."""
    if hidden() or present():
        return False
    for device in glob(PCI):
        try:
            vendor, kind = ((Path(device) / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == NVIDIA and kind.startswith(DISPLAY):
            return True
    return False


def count() -> int:
    """GPUs that jobs of this process may use."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not present():
        return 0
    return len(visible.split(",")) if visible else max(1, len(glob(NODES)))


def driver() -> str | None:
    """The loaded driver's version, such as 550.54.15; None where none is loaded."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        text = _smi("--query-gpu=driver_version")
    found = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", text)
    return found.group(0) if found else None


def cards() -> list[Card]:
    """Every GPU that nvidia-smi lists and CUDA_VISIBLE_DEVICES does not hide; none where it is absent or fails."""
    found = []
    for line in _smi("--query-gpu=index,uuid,name,compute_cap,memory.total,memory.free").splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 6 and re.fullmatch(r"\d+\.\d+", fields[3]) and _visible(fields[0], fields[1]):
            major, minor = fields[3].split(".")
            total, free = (int(field) if field.isdigit() else 0 for field in fields[4:])
            found.append(Card(fields[2], (int(major), int(minor)), total, free))
    return found


def _visible(index: str, uuid: str) -> bool:
    """Whether CUDA_VISIBLE_DEVICES names a GPU, by nvidia-smi's number or the beginning of its UUID.

    A slice of a GPU (MIG) has a UUID of its own, which does not tell whose it is: then every GPU counts.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return True
    names = [name.strip() for name in chosen.split(",")]
    return any(
        name == index or name.startswith("MIG-") or (name.startswith("GPU-") and uuid.startswith(name))
        for name in names
    )


def _smi(query: str) -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def fits(capability: tuple[int, int], architectures: list[str]) -> bool:
    """Whether code for `architectures` (`sm_80`, `compute_90`, `8.0+PTX`) runs on a card.

    Machine code (`sm`) runs on the same major capability and a minor one at least as high; intermediate code
    (`compute`, `+PTX`) is compiled by the driver for any later card.
    """
    for name in architectures:
        found = re.fullmatch(r"(?:(sm|compute)_)?(\d+?)\.?(\d)[af]?(\+PTX)?", name)
        if not found:
            continue
        own = int(found.group(2)), int(found.group(3))
        exact = found.group(1) != "compute" and own[0] == capability[0] and own[1] <= capability[1]
        if exact or ((found.group(1) == "compute" or found.group(4)) and own <= capability):
            return True
    return False


def dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def wheel(capabilities: list[tuple[int, int]]) -> str:
    """The CUDA release whose torch build has code for every card: 12.6 from 7.0 (V100) to 9.0, a later one beyond."""
    old = [c for c in capabilities if c < (5, 0)]
    if old:
        raise UserError(f"a GPU of compute capability {dotted(old[0])} is older than any torch build; use device: cpu")
    if max(capabilities, default=(0, 0)) < (10, 0):
        return "cu126"
    volta = [c for c in capabilities if c < (7, 5)]
    if volta:
        raise UserError(
            f"no torch build has code for both {dotted(min(volta))} and {dotted(max(capabilities))}; "
            "set up an environment for each kind, with the UUIDs of its cards (`nvidia-smi -L`) in CUDA_VISIBLE_DEVICES"
        )
    return "cu130"


def trouble(torch) -> str | None:
    """Why torch cannot use this machine's GPU, as a sentence with its remedy; None when it can."""
    if torch.version.cuda is None:
        return (
            "torch is a CPU build; `make setup DEVICE=cuda` installs a CUDA build"
            if present()
            else "there is no NVIDIA driver, and torch is a CPU build; run on a machine with a GPU, or set device: cpu"
        )
    version, major = driver(), int(torch.version.cuda.split(".")[0])
    if not torch.cuda.is_available() or not torch.cuda.device_count():
        if version is None:
            return "no NVIDIA driver is loaded; install or load it (nvidia-smi must list the card), or set device: cpu"
        if int(version.split(".")[0]) < OLDEST_DRIVER.get(major, 0):
            return (
                f"driver {version} is too old for torch's CUDA {torch.version.cuda}, which needs "
                f"{OLDEST_DRIVER[major]} or later; update the driver, or install a torch build for an older CUDA"
            )
        if without_memory_manager():
            return f"{UVM} is missing; {UVM_REMEDY}"
        return (
            f"driver {version} gives torch (CUDA {torch.version.cuda}) no device; ask the batch system for a GPU, "
            "look at CUDA_VISIBLE_DEVICES and nvidia-smi, or set device: cpu"
        )
    for index in range(torch.cuda.device_count()):
        if sentence := unfit(torch, index):
            return sentence
    return None


def unfit(torch, index: int) -> str | None:
    """Why torch's build has no code for one card; None when it has."""
    capability, architectures = tuple(torch.cuda.get_device_capability(index)), torch.cuda.get_arch_list()
    if not architectures or fits(capability, architectures):
        return None
    try:
        build = wheel([capability])
    except UserError as error:
        return str(error)
    return (
        f"{torch.cuda.get_device_name(index)} has compute capability {dotted(capability)}, for which torch "
        f"{torch.__version__} has no code ({', '.join(architectures)}); install its {build} build: "
        f"`make setup DEVICE=cuda CUDA={build}`"
    )


def holds(tensor) -> bool:
    """Whether work on `tensor` takes the GPU's way: gsplat and torch's operations instead of our CPU kernels."""
    return tensor.is_cuda


def full_precision() -> None:
    """Every product in float32: TF32 keeps ten bits, which SSIM's differences of squares and the metrics show."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def peak_mb(device: str) -> dict[str, int]:
    """For training logs: the most memory of a GPU that this process has held; nothing on the CPU."""
    if not device.startswith("cuda"):
        return {}
    import torch

    return {"gpu_memory_mb": round(torch.cuda.max_memory_allocated(device) / 1e6)}


@contextmanager
def memory_bound(remedy: str) -> Iterator[None]:
    """A GPU's memory that runs out inside this block ends with one sentence; `remedy` names what lowers the need."""
    try:
        yield
    except RuntimeError as error:
        if not is_full(error):
            raise
        words = str(error).splitlines()[0].split(". ")[0].strip()
        raise UserError(f"the GPU's memory is full ({words}); {remedy}") from None


def is_full(error: RuntimeError) -> bool:
    """Whether an error says that a GPU's memory ran out: torch's allocator, CUDA itself or a library of it."""
    words = str(error)
    cuda = "out of memory" in words and "CUDA" in words
    return type(error).__name__ == "OutOfMemoryError" or cuda or bool(re.search(r"CU\w+_STATUS_ALLOC_FAILED", words))


# compiling for it


def nvcc(major: int | None = None) -> Path | None:
    """The CUDA compiler: CUDA_HOME, then PATH, the usual folders, and the one pip or conda has put beside Python.

    Unless CUDA_HOME names one, the first of the CUDA release `major` is taken, where there is one.
    """
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    named = _programs([Path(home) / "bin" / "nvcc" for home in homes if home])
    if named:
        return named[0]
    on_path = shutil.which("nvcc")
    candidates = [Path(on_path)] if on_path else []
    for pattern in TOOLKITS:
        candidates += [Path(folder) / "bin" / "nvcc" for folder in sorted(glob(pattern), reverse=True)]
    candidates.append(Path(sys.prefix) / "bin" / "nvcc")
    for folder in sys.path:
        candidates += sorted(Path(folder or ".").glob("nvidia/*/bin/nvcc"), reverse=True)
    found = _programs(candidates)
    fitting = (path for path in found if major is not None and (release(path) or (0,))[0] == major)
    return next(fitting, found[0] if found else None)


def _programs(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


def toolkit(compiler: Path) -> Path:
    """The folder of a compiler's toolkit: above its `bin`, or where a script that stands for it says it is at home."""
    above = compiler.resolve().parents[1]
    if headers(above) is None:
        said = re.search(r"^#\$ TOP=(.+)$", _said(str(compiler), "--dryrun", "-E", "-x", "cu", os.devnull), re.M)
        home = Path(said.group(1).strip()).resolve() if said else above
        return home if headers(home) else above
    return above


def headers(home: Path) -> Path | None:
    """The folder of a toolkit's headers; conda keeps them apart by target."""
    folders = [home / "include", *sorted(home.glob("targets/*/include"))]
    return next((folder for folder in folders if (folder / "cuda_runtime.h").is_file()), None)


def release(compiler: Path) -> tuple[int, int] | None:
    """(major, minor) of an nvcc."""
    found = re.search(r"release (\d+)\.(\d+)", _said(str(compiler), "--version"))
    return (int(found.group(1)), int(found.group(2))) if found else None


def host_compiler() -> tuple[str, int] | None:
    """(path, major version) of the C++ compiler that builds gsplat's kernels, also for nvcc: CXX, or g++."""
    program = shutil.which(os.environ.get("CXX") or "g++")
    if program is None:
        return None
    found = re.search(r"\b(\d+)\.\d+\.\d+\b", _said(program, "--version"))
    return program, int(found.group(1)) if found else 0


def newest_gcc(cuda: tuple[int, int]) -> int:
    """The newest gcc that nvcc of a CUDA release accepts; 0: not known."""
    return max((gcc for known, gcc in NEWEST_GCC.items() if known <= cuda), default=0)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


if __name__ == "__main__":  # for the Makefile, before there is an environment: the torch build for this machine's cards
    try:
        print(wheel([card.capability for card in cards()]))
    except UserError as error:
        sys.exit(f"fujinsplat: {error}")
