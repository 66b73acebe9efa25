"""The doctor's look at a GPU: driver, card, torch's build, the compilers of gsplat's kernels, the kernels, memory."""

from collections.abc import Iterator

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.doctor import BROKEN, NOTE, OK, Finding

FREE_MB = 6000  # half a million Gaussians with their moments, gradients and a view's working memory


def findings(torch) -> Iterator[Finding]:
    """Of a machine with a GPU or with a CUDA build of torch."""
    version, cards = gpu.driver(), gpu.cards()
    if version is None:
        yield Finding(
            "driver",
            "none is loaded",
            NOTE,
            "install NVIDIA's driver, or set up on a node with a GPU; until then set device: cpu",
        )
    else:
        yield driver(torch, version)
    if gpu.without_memory_manager():
        yield Finding("driver", f"{gpu.UVM} is missing", BROKEN, gpu.UVM_REMEDY)
    for card in cards:
        yield capability(torch, card)
        yield memory(card)
    yield rasteriser(torch)
    if torch.version.cuda is not None:
        yield from compilers(torch)


def driver(torch, version: str) -> Finding:
    cuda = torch.version.cuda
    least = gpu.OLDEST_DRIVER.get(int(cuda.split(".")[0]), 0) if cuda else 0
    if int(version.split(".")[0]) < least:
        remedy = f"update it to {least} or later, or install a torch build for an older CUDA"
        return Finding("driver", f"{version} is too old for torch's CUDA {cuda}", BROKEN, remedy)
    return Finding("driver", version)


def capability(torch, card: gpu.Card) -> Finding:
    """Whether torch's build has code for a card."""
    text = f"{card.name}, compute capability {gpu.dotted(card.capability)}"
    try:
        again = f"`make setup DEVICE=cuda CUDA={gpu.wheel([card.capability])}` installs the build for it"
    except UserError as error:
        return Finding("card", text, BROKEN, str(error))
    if torch.version.cuda is None:
        return Finding("card", f"{text}; torch is a CPU build", NOTE, again)
    built_for = torch.cuda.get_arch_list()
    if built_for and not gpu.fits(card.capability, built_for):
        return Finding("card", f"{text}; torch has code for {', '.join(built_for)}", BROKEN, again)
    return Finding("card", text)


def memory(card: gpu.Card) -> Finding:
    little = card.free_mb < FREE_MB
    return Finding(
        "GPU memory",
        f"{card.free_mb} of {card.total_mb} MB free",
        NOTE if little else OK,
        "end what else uses it, or lower splat.max_gaussians, splat.max_width and splat.memory_mb" if little else "",
    )


def rasteriser(torch) -> Finding:
    """gsplat's kernels: there, and for these cards."""
    if torch.version.cuda is None:
        return Finding("rasteriser", "our CPU kernels (Numba); gsplat needs CUDA and stays unused")
    from fujinsplat.compat import gsplat_cuda

    try:
        gsplat_cuda.checked_version()
        compiled = gsplat_cuda.compiled_for()
    except UserError as error:
        return Finding("rasteriser", str(error).split(";")[0], BROKEN, "pip install --no-deps gsplat==1.5.3")
    if compiled is None:
        return Finding("rasteriser", "gsplat's kernels are not compiled", BROKEN, gsplat_cuda.remedy())
    missing = [c for c in gpu.cards() if compiled and not gpu.fits(c.capability, compiled.split(";"))]
    if missing:
        text = f"gsplat's kernels are for {compiled}, not {gpu.dotted(missing[0].capability)}"
        lacking = sorted({gpu.dotted(card.capability) for card in missing})
        return Finding("rasteriser", text, BROKEN, gsplat_cuda.remedy(";".join([str(compiled), *lacking])))
    return Finding("rasteriser", f"gsplat on CUDA, kernels for {compiled or 'what its wheel brings'}")


def compilers(torch) -> Iterator[Finding]:
    """What compiles gsplat's kernels; needed at set-up alone."""
    wanted = torch.version.cuda.split(".")[0]
    compiler, host = gpu.nvcc(int(wanted)), gpu.host_compiler()
    if compiler is None:
        remedy = "load or install the CUDA toolkit: `module load cuda`, or conda's cuda-toolkit; or set CUDA_HOME"
        yield Finding("nvcc", "not in CUDA_HOME, PATH, /usr/local/cuda or beside Python", NOTE, remedy)
        release = None
    else:
        release = gpu.release(compiler)
        other = release is not None and str(release[0]) != wanted
        text = f"{'.'.join(map(str, release)) if release else 'version unknown'} ({compiler})"
        remedy = f"torch is built for CUDA {torch.version.cuda}: name such a toolkit in CUDA_HOME" if other else ""
        yield Finding("nvcc", text, NOTE if other else OK, remedy)
    if host is None:
        yield Finding("gcc", "no g++", NOTE, "install gcc, or name a C++ compiler in CXX")
        return
    newest = gpu.newest_gcc(release) if release else 0
    new = 0 < newest < host[1]
    yield Finding(
        "gcc",
        f"{host[1] or 'version unknown'} ({host[0]})",
        NOTE if new else OK,
        f"this nvcc takes gcc {newest} at most: install it and set CXX=g++-{newest}" if new else "",
    )
