"""A Base ISP on disk: one safetensors file, its seven parameters, three buffers, and a few words of metadata."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fujinsplat.errors import UserError
from fujinsplat.files import atomic_file
from fujinsplat.isp.model import ENCODINGS, BaseISP

KIND = "fujinsplat base isp"


def save(base: BaseISP, path: Path | str, **metadata: str) -> None:
    """Write `base`; `metadata` (scene, source, …) is kept as text beside the tensors."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in base.state_dict().items()}
    notes = {"kind": KIND, "encoding": base.encoding, **{key: str(value) for key, value in metadata.items()}}
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, notes)


def load(path: Path | str) -> BaseISP:
    """Read a base that `save` wrote; its metadata is in `base.notes`."""
    try:
        with safe_open(path, "pt") as file:
            notes = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; make it with `fujinsplat isp calibrate` or `isp import`") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is not a readable safetensors file ({error}); calibrate or import it again") from None
    if notes.get("kind") != KIND or notes.get("encoding") not in ENCODINGS:
        raise UserError(f"{path} is not a Base ISP; give the file `fujinsplat isp calibrate` or `isp import` wrote")
    base = BaseISP(encoding=notes["encoding"])
    fill(base, tensors, path)
    base.notes = notes
    return base


def fill(base: BaseISP, tensors: dict[str, torch.Tensor], path: Path | str) -> None:
    """Put `tensors` into `base`, all of them and of the right shapes, or a UserError that names the first wrong one."""
    wanted = base.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors:
            raise UserError(f"{path} lacks the tensor {name}; it is no complete Base ISP, make it again")
        if tensors[name].shape != tensor.shape:
            raise UserError(
                f"{path}: {name} has shape {list(tensors[name].shape)}, not {list(tensor.shape)}; make the file again"
            )
        if not torch.isfinite(tensors[name]).all():
            raise UserError(f"{path}: {name} holds values that are not finite; make the file again")
    base.load_state_dict({name: tensors[name] for name in wanted})
