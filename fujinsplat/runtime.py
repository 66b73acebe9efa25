"""Threads and devices, decided once per process before torch and numba are imported."""

import os


def use_threads(threads: int | None) -> int:
    """Give torch (OpenMP, MKL) and numba `threads` threads; None means all the cores this process may use.

    Call it before importing either: both read the environment once. Waiting threads sleep instead of spinning, because
    workflow jobs share cores and spinning makes two jobs side by side several times slower.
    """
    threads = threads or len(os.sched_getaffinity(0))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return threads


def pick_device(device: str = "auto") -> str:
    """`auto` is CUDA when torch sees a device, otherwise the CPU; a named device that is absent is an error."""
    import torch

    from fujinsplat.errors import UserError

    available = torch.cuda.is_available()
    if device == "auto":
        return "cuda" if available else "cpu"
    if device.startswith("cuda") and not available:
        raise UserError(
            "device is set to cuda but torch sees no CUDA device; set device: cpu, or install the CUDA build"
        )
    return device


def prepare_torchvision() -> None:
    """Make `import torchvision` possible beside a CPU build of torch; call it before anything that imports it.

    Some torchvision builds cannot load their C library there, and their Python part then fails on two operators that
    nothing here ever calls. Declaring those two is enough. Where the C library loads, nothing is declared.
    """
    from importlib.machinery import EXTENSION_SUFFIXES
    from importlib.util import find_spec
    from pathlib import Path

    import torch

    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or _operator_exists("torchvision::nms"):
        return
    for suffix in (*EXTENSION_SUFFIXES, ".so"):
        library = Path(spec.origin).with_name(f"_C{suffix}")
        if library.exists():
            try:
                torch.ops.load_library(str(library))
                return
            except OSError:
                break
    _DECLARED.append(torch.library.Library("torchvision", "FRAGMENT"))
    _DECLARED[-1].define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _DECLARED[-1].define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_DECLARED: list = []  # a declaration lives as long as its Library object


def _operator_exists(name: str) -> bool:
    import torch

    try:
        torch._C._dispatch_find_schema_or_throw(name, "")
    except RuntimeError:
        return False
    return True
