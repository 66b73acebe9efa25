"""A pretend GPU, for tests alone: tensors on a device called `card` whose numbers lie in the CPU's memory.

What a GPU refuses is refused here too: operations on tensors of two devices, arrays made of a GPU's tensors, and
kernels of gsplat (its twin's, here) that are given a tensor of the CPU or one that is not contiguous. Speed, memory and
gsplat's own kernels are beyond it.

A process has to itself what `install` changes: torch lets a device be named once, and there is no way back.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

sys.path.append(str(Path(__file__).parent / "splat"))

NAME = "card"
OPERATIONS = Counter()  # by name: what ran on the card
MOVES = {"_to_copy", "copy_"}  # between devices
# a GPU takes indices from the CPU, and single numbers in what works element by element
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
NUMBERS = {"_local_scalar_dense", "equal"}  # these give no tensor


class Card(Tensor):
    """`numbers`: the same tensor on the CPU."""

    numbers: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "Card":
        made = Tensor._make_wrapper_subclass(
            cls, numbers.shape, strides=numbers.stride(), storage_offset=numbers.storage_offset(), dtype=numbers.dtype,
            device=torch.device(NAME, 0),
        )  # fmt: skip
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})

    def tolist(self) -> Any:
        return self.numbers.tolist()

    def __repr__(self) -> str:
        return f"on the card: {self.numbers}"

    def __reduce_ex__(self, protocol):
        return self.numbers.detach().__reduce_ex__(protocol)  # read again, it lies where `map_location` says


def _run(function, args: tuple, kwargs: dict) -> Any:
    name = function.overloadpacket.__name__
    if torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd"):
        with _Everywhere():  # in inference mode torch leaves it to us to take it apart
            return function.decompose(*args, **kwargs)
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    ours = [t for t in tensors if isinstance(t, Card)]
    others = [t for t in tensors if not isinstance(t, Card)]
    if ours and others and name not in MOVES:
        numbers = torch.Tag.pointwise in function.tags and not any(t.ndim for t in others)
        if not numbers and not (name in INDEXING and tensors[0] is ours[0]):
            found = ", ".join(f"{tuple(t.shape)} on {t.device}" for t in tensors)
            raise RuntimeError(f"Expected all tensors to be on the same device: {name} of {found}")
    there = bool(ours)
    if kwargs.get("device") is not None:
        there = torch.device(kwargs["device"]).type == NAME
        kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"} | {"device": torch.device("cpu")}
    OPERATIONS[name] += there
    known = {id(t.numbers): t for t in ours}
    plain_args, plain_kwargs = tree_map(_plain, (args, kwargs))
    result = function(*plain_args, **plain_kwargs)
    if name == "copy_":
        return args[0]
    if not there or name in NUMBERS:
        return result
    return tree_map(lambda t: known.get(id(t), Card(t)) if isinstance(t, Tensor) else t, result)


def _plain(value: Any) -> Any:
    return value.numbers if isinstance(value, Card) else value


def _moved(value: Any, device: Any) -> Any:
    """What was read, on a device."""
    if not str(device).startswith(NAME):
        return value
    return tree_map(lambda t: Card(t) if isinstance(t, Tensor) else t, value)


class _Everywhere(TorchDispatchMode):
    """Tensors that are made on the card, or moved there, take no part in dispatch by themselves."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


def _kernel(name: str, function):
    """A kernel of gsplat's twin, as particular about its arguments as the real one."""

    def call(*arguments):
        for place, tensor in enumerate(arguments):
            if isinstance(tensor, Tensor):
                assert isinstance(tensor, Card), f"gsplat's {name}: argument {place} lies on the CPU"
                assert tensor.is_contiguous(), f"gsplat's {name}: argument {place} is not contiguous"
        OPERATIONS[name] += 1
        with _disable_current_modes():
            made = function(*map(_plain, arguments))
        return tree_map(lambda t: Card(t.detach()) if isinstance(t, Tensor) else t, made)

    return call


def install(monkeypatch) -> None:
    """From now on `card` is a device of this process, and the one that jobs pick."""
    import safetensors
    import twin

    from fujinsplat.core import gpu, runtime
    from fujinsplat.flow import operator

    backend_registration._setup_privateuseone_for_python_backend(NAME)
    implementation = operator.implementation
    kernels = twin.install(monkeypatch)
    for name, function in twin.FUNCTIONS.items():
        setattr(kernels, name, _kernel(name, function))
    monkeypatch.setattr(operator, "implementation", implementation)
    monkeypatch.setattr(gpu, "holds", lambda tensor: tensor.device.type == NAME)
    monkeypatch.setattr(runtime, "pick_device", lambda device="auto": NAME)
    optimizer = sys.modules["torch.optim.optimizer"]
    monkeypatch.setattr(optimizer, "_foreach_supported_types", [*optimizer._foreach_supported_types, Card])
    load, safe_open = torch.load, safetensors.safe_open
    monkeypatch.setattr(
        torch,
        "load",
        lambda file, map_location=None, **how: _moved(load(file, map_location="cpu", **how), map_location),
    )

    class Opened:
        """A file of tensors, which know no device of this name."""

        def __init__(self, path, framework, device="cpu", **how):
            self.device, self.file = device, safe_open(path, framework, device="cpu", **how)

        def __enter__(self):
            self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def __getattr__(self, name):
            return getattr(self.file, name)

        def get_tensor(self, name):
            return _moved(self.file.get_tensor(name), self.device)

    monkeypatch.setattr(safetensors, "safe_open", Opened)
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device=card) is made on the CPU and moved
    _Everywhere().__enter__()
