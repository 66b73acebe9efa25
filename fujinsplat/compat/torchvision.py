"""Importing torchvision beside a CPU build of torch; lpips and transformers both need it.

Tested with torchvision 0.21 to 0.28.
"""

VERSIONS = "torchvision >=0.21,<0.29"


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
