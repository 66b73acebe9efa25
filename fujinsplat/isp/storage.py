"""A Base ISP on disk: a safetensors file of seven parameters, three buffers and a few words; and the authors' files."""

import pickle
import warnings
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import reader
from fujinsplat.isp.model import ENCODINGS, BaseISP

KIND = "fujinsplat base isp"


def save(base: BaseISP, path: Path | str, **metadata: str) -> None:
    """Write `base`; `metadata` (scene, source, …) is kept as text beside the tensors."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in base.state_dict().items()}
    notes = {"kind": KIND, "encoding": base.encoding, **{key: str(value) for key, value in metadata.items()}}
    write_tensors(path, tensors, notes)


@reader("Base ISP", "calibrate or import it again")
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


# the authors' names of our tensors
AUTHORS = {
    "base_exposure": "base_exposure",
    "base_white_balance": "base_white_balance",
    "base_row_matrix": "base_matrix",
    "exposure_delta": "exposure",
    "white_balance_delta": "white_balance",
    "matrix_log_residual": "generator",
    "shaper.log_increment_delta": "shaper",
    "fine_action": "g9",
    "residual_action": "r33",
    "tone.log_increment_delta": "tone",
}


def import_checkpoint(path: Path | str, encoding: str = "none") -> BaseISP:
    """The authors' base checkpoint (a dict with `state_dict`) as ours; nothing but tensors is unpickled.

    Its tone curve ends encoded, so no transfer curve follows; `srgb` is for a checkpoint of another make.
    Lattices may be stored with their colours last or first; with or without a leading axis of one.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickle protocols; what cannot be read is refused below
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give the path of a base checkpoint") from None
    except pickle.UnpicklingError:  # torch's own words recommend running what it holds
        raise UserError(f"{path} is not a checkpoint of plain tensors; give the authors' base file") from None
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(
            f"{path} is not a checkpoint of plain tensors ({reason}); give the authors' base file"
        ) from None
    state = content.get("state_dict", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not set(AUTHORS) <= set(state):
        missing = sorted(set(AUTHORS) - set(state if isinstance(state, dict) else ()))
        raise UserError(f"{path} lacks {', '.join(missing)}; it is no base checkpoint of the authors'")
    base = BaseISP(encoding=encoding)
    shapes = {name: tensor.shape for name, tensor in base.state_dict().items()}
    tensors = {ours: _shaped(state[theirs], shapes[ours]) for theirs, ours in AUTHORS.items()}
    fill(base, tensors, path)
    base.notes = {"origin": f"imported from {Path(path).name}"}
    return base


def _shaped(tensor: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """`tensor` in our layout where only axes of one or the place of the colours differ; otherwise as it is."""
    tensor = tensor.detach().to(torch.float32)
    if tensor.numel() == shape.numel() and tensor.ndim != len(shape):
        squeezed = tensor.squeeze()
        tensor = squeezed if squeezed.ndim == len(shape) else tensor.reshape(shape) if tensor.numel() == 1 else tensor
    if len(shape) == 4 and tensor.ndim == 4 and tensor.shape[0] == 3 and tensor.shape[-1] != 3:
        tensor = tensor.permute(1, 2, 3, 0)
    return tensor.contiguous()
