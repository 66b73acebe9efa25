"""Arithmetic, threads and devices, decided once per process before numpy, torch and numba are imported."""

import fcntl
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import say
from fujinsplat.core.versions import vector_flags

ARITHMETIC = "FUJINSPLAT_ARITHMETIC"
# AVX2 and fused multiply-adds for everybody, however wide the registers are; MKL's own name for that is COMPATIBLE
PORTABLE = {
    "NUMBA_CPU_NAME": "x86-64-v3",
    "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt",
    "NUMBA_DISABLE_INTEL_SVML": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
PLACES = 64  # processes of ours that one GPU is shared by, at most
_claims = []  # open lock files; the operating system releases them when the process ends, however it ends


def use_arithmetic() -> None:
    """With FUJINSPLAT_ARITHMETIC=portable (config.yaml: `arithmetic`), sums that do not depend on how wide this CPU's
    vectors are: equal code then gives equal numbers on any x86-64 CPU with AVX2. Call it before anything else."""
    chosen = os.environ.get(ARITHMETIC, "fast")
    if chosen not in ("fast", "portable"):
        raise UserError(f"there is no arithmetic {chosen!r}; set {ARITHMETIC} to fast or portable")
    if chosen == "portable":
        if not {"avx2", "fma"} <= vector_flags():
            raise UserError("arithmetic: portable needs an x86-64 CPU with AVX2; set arithmetic: fast on this machine")
        os.environ.update(PORTABLE)


def use_threads(threads: int | None) -> int:
    """Give torch (OpenMP, MKL) and numba `threads` threads, NumPy one; None means all cores this process may use.

    Call it before importing either: both read the environment once, and numba cannot grow afterwards. Waiting threads
    sleep instead of spinning, because workflow jobs share cores and spinning makes two jobs side by side several times
    slower.
    """
    threads = threads or len(os.sched_getaffinity(0))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if "numba" in sys.modules:
        numba = sys.modules["numba"]
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    else:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(threads)
        # NumPy's own BLAS sees small matrices only, for which its spinning threads cost far more than they save
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
    return threads


def pick_device(device: str = "auto") -> str:
    """`auto` is CUDA where there is a GPU, otherwise the CPU; a GPU that torch cannot use is an error, never the CPU,
    and a card without a driver is told.

    With several GPUs, each process takes one that no other process of ours uses, or that the fewest use, and stays on
    it.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise UserError(f"there is no device {device!r}; choose cpu, cuda or auto")
    import torch

    if device == "cpu":
        return "cpu"
    if device == "auto" and not gpu.present() and not torch.cuda.is_available():
        if gpu.undriven():
            # a container or a batch job without GPUs looks the same: nothing is wrong there, but it has to be said
            say(
                "this machine's NVIDIA card has no driver here, so the CPU is used; device: cpu (or an empty "
                "CUDA_VISIBLE_DEVICES) chooses that, and nvidia-smi has to list the card for the other"
            )
        return "cpu"
    if sentence := gpu.trouble(torch):
        raise UserError(f"device is {device}, but {sentence}")
    gpu.full_precision()
    count = torch.cuda.device_count()
    if device in ("auto", "cuda"):
        device = "cuda"
        if count > 1:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            names = visible.split(",") if visible else [str(i) for i in range(count)]
            device = f"cuda:{claim(names[:count])}"
    if ":" in device:
        torch.cuda.set_device(device)  # what names no device (a library's own tensors) goes there too
    return device


def claim(names: list[str], folder: Path | None = None) -> int:
    """The index of a name nobody else holds, held from now on until this process ends.

    When all are taken, processes share them evenly: each name has several places, and no second place is given away
    before every first one is.
    """
    # a job of the workflow has a folder for temporary files of its own; GPUs are everybody's
    folder = folder or Path(os.environ.get("FUJINSPLAT_SHARED") or tempfile.gettempdir())
    for place in range(PLACES):
        for index, name in enumerate(names):
            lock = _locked(folder / f"fujinsplat-gpu-{name.strip().replace('/', '_')}.{place}.lock")
            if lock is not None:
                _claims.append(lock)
                return index
    return os.getpid() % len(names)


def _locked(path: Path) -> IO | None:
    """The lock file, held; None when another process holds it, or another user keeps it to themselves.

    An existing file is opened for reading: that is all a lock needs, and all that a shared folder for temporary files
    allows with another user's file.
    """
    try:
        lock = path.open() if path.exists() else path.open("a")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file `path` inside this block, and waits for it first; `waiting` is called when that takes time.

    For a job that keeps state on disk: a Snakemake that was killed leaves its jobs running, and the next one starts the
    same job again. The lock ends with the process, however it ends. A file system without locks is worked on without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        lock = path.open("a")
        try:
            _wait_for(lock, waiting)
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                break
            lock.close()  # who held it has removed it: take the one that others see
        except BaseException:
            lock.close()
            raise
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.close()


def _wait_for(lock: IO, waiting: Callable[[], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        pass


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Torch's own operations on one thread inside this block; Numba's kernels keep all of theirs.

    For loops whose heavy work is in kernels: what torch does between them is too small to share, and waking its threads
    costs more than the work, many times more on a busy machine.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
