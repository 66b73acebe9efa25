"""A controller on disk: one safetensors file whose metadata says which actions it predicts and what it looks at."""

import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from fujinsplat.controller.network import Controller
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import check_form, reader

KIND = "fujinsplat controller"
INPUTS = ("raw", "rgb")


def save(controller: Controller, path: Path | str, input: str = "raw", **notes: str) -> None:
    """Write `controller`; `input` is what its summaries are made of, `notes` are kept as text."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in controller.state_dict().items()}
    metadata = {"kind": KIND, "input": input, "K": str(controller.K), "M": str(controller.M)}
    write_tensors(path, tensors, {**metadata, **{key: str(value) for key, value in notes.items()}})


@reader("controller", "train or import it again")
def load(path: Path | str, K: int | None = None, M: int | None = None, input: str | None = None) -> Controller:
    """Read a controller; K, M and input, where given, must be the file's own. Its metadata is in `.notes`."""
    tensors, notes = read_tensors(path)
    if notes.get("kind") != KIND or notes.get("input") not in INPUTS:
        raise UserError(f"{path} is not a controller; give a file of `fujinsplat controller train` or `import`")
    K_own, M_own = (int(notes.get(name, "")) for name in "KM")
    check_form(path, K_own, M_own)
    controller = Controller(K_own, M_own)
    for name, wanted, own in (("K", K, controller.K), ("M", M, controller.M), ("input", input, notes["input"])):
        if wanted is not None and wanted != own:
            raise UserError(
                f"{path} is a controller for {name} = {own}, but {name} = {wanted} is asked for; train one for that"
            )
    fill(controller, tensors, path)
    controller.notes = notes
    return controller.eval()


@reader("safetensors file", "train or import it again")
def read_tensors(path: Path | str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """All tensors and metadata of a safetensors file."""
    try:
        with safe_open(str(path), "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; train a controller first or correct the path") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is not a readable safetensors file ({error}); train or import it again") from None


def fill(controller: Controller, tensors: dict[str, torch.Tensor], path: Path | str) -> None:
    """Put `tensors` into `controller`: exactly its own, of the right shapes and finite, or a UserError names one."""
    wanted = controller.state_dict()
    for name in sorted(tensors.keys() - wanted.keys()):
        raise UserError(f"{path} holds a tensor {name} that this controller lacks; check K, M and where it comes from")
    for name, tensor in wanted.items():
        if name not in tensors:
            raise UserError(f"{path} lacks the tensor {name}; it is no complete controller, make it again")
        if tensors[name].shape != tensor.shape:
            shapes = f"{list(tensors[name].shape)}, not {list(tensor.shape)}"
            raise UserError(
                f"{path}: {name} has shape {shapes} (K = {controller.K}, M = {controller.M}); check K and M"
            )
        if not tensors[name].is_floating_point() or not torch.isfinite(tensors[name]).all():
            raise UserError(f"{path}: {name} holds values that are not finite numbers; make the file again")
    controller.load_state_dict({name: tensors[name].float() for name in wanted})


def import_weights(path: Path | str, K: int, M: int) -> Controller:
    """The authors' weights: a plain dict of tensors named as ours (torch or safetensors). Only tensors are read."""
    path = Path(path)
    if path.suffix == ".safetensors":
        tensors, _ = read_tensors(path)
    else:
        tensors = _from_torch(path)
    controller = Controller(K, M)
    fill(controller, tensors, path)
    return controller.eval()


def _from_torch(path: Path) -> dict[str, torch.Tensor]:
    if not path.is_file():
        raise UserError(f"{path} does not exist; correct the path")
    try:
        # weights_only unpickles tensors and plain containers; anything that would run code is refused
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:  # torch's own words recommend running what it holds
        raise UserError(f"{path} holds more than tensors or is damaged; ask for a file of tensors only") from None
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(
            f"{path} holds more than tensors or is damaged ({reason}); ask for a file of tensors only"
        ) from None
    for key in ("state_dict", "controller", "model"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise UserError(f"{path} is not a dict of tensors; give the authors' controller weights")
    return {str(name): tensor for name, tensor in loaded.items()}
