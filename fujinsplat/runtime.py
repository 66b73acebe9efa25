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
        raise UserError("device is set to cuda but torch sees no CUDA device; set device: cpu, or install the CUDA build")
    return device
