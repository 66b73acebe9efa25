"""How far a capture reaches: d-bar = ln(p90 / p10) of its depth, from a file beside it or Depth-Anything [supp. F]."""

from pathlib import Path
from typing import Any

import numpy as np

from fujinsplat.core.color import encode, luminance
from fujinsplat.core.errors import UserError
from fujinsplat.core.reading import load_array
from fujinsplat.synthesis.sheet import Capture

SIDE = 518  # the network's input
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet
NEAREST_INVERSE = 1e-6
FILES = ("config.json", "model.safetensors")
# SHA-256 of the weights that a revision has on the hub
WEIGHTS = {
    "5426e4f0f36572d16453bbda7a8389317b1bef99": "3152477ce0d8d6978d76b995120de97cb5b928701fd0f817769f59e249a16b70",
}


def usable(depth: np.ndarray, source: Path | str) -> np.ndarray:
    """`depth` as float64 if it can be used; otherwise a sentence that names `source`."""
    depth = np.asarray(depth, np.float64)
    if depth.ndim != 2 or depth.size == 0 or not np.isfinite(depth).all() or depth.min() <= 0:
        raise UserError(
            f"{source}: a depth map must be positive and finite everywhere; make it again or drop the capture"
        )
    if not depth_range(depth) > 1e-9:
        raise UserError(f"{source}: the depth map is constant, so it says nothing about smoke; drop the capture")
    return depth


def depth_range(depth: np.ndarray) -> float:
    """d-bar: ln(p90 / p10) of a depth map."""
    near, far = np.percentile(depth, [10, 90])
    return float(np.log(far / near))


def relative(depth: np.ndarray) -> np.ndarray:
    """Depth over its median, float32, without the extreme ends: a network's farthest values mean only "far"."""
    low, middle, high = np.percentile(depth, [1, 50, 98])
    return (np.clip(depth, low, high) / middle).astype(np.float32)


class DepthFiles:
    """`STEM.depth.npy` beside each capture: depth along the view, any unit, any size."""

    def maps(self, captures: list[Capture], raws: list) -> list[np.ndarray]:
        """A usable depth map per capture."""
        return [usable(self.read(capture), self.path(capture)) for capture in captures]

    @staticmethod
    def path(capture: Capture) -> Path:
        return capture.path.with_suffix(".depth.npy")

    def read(self, capture: Capture) -> np.ndarray:
        path = self.path(capture)
        if not path.exists():
            raise UserError(f"{path} does not exist; put the depth map there, or set synthesis.depth: network")
        return load_array(path, "depth map", "make it again")


class DepthNetwork:
    """Depth-Anything-V2 from a local folder; its output is inverse depth."""

    def __init__(self, folder: Path | None, device: str = "cpu"):
        if folder is None:
            raise UserError("synthesis.depth is network, but no --network folder was given")
        absent = [name for name in FILES if not (Path(folder) / name).is_file()]
        if absent:
            raise UserError(f"{folder} holds no {absent[0]}; put {' and '.join(FILES)} of the depth network there")
        import torch

        self.torch, self.device = torch, device
        self.model = _load(Path(folder)).to(device).eval()

    def maps(self, captures: list[Capture], raws: list) -> list[np.ndarray]:
        """A usable depth map per capture, `[518, 518]`."""
        torch = self.torch
        pictures = torch.stack([self._prepared(raw) for raw in raws]).to(self.device)
        with torch.inference_mode():
            inverse = self.model(pixel_values=pictures).predicted_depth.float().cpu().numpy()
        return [
            usable(1 / np.maximum(i.astype(np.float64), NEAREST_INVERSE), f"{c.path} (depth network)")
            for i, c in zip(inverse, captures, strict=True)
        ]

    def _prepared(self, raw):
        """The capture as a photograph: white balance, camera matrix, median to 0.18, encoded; `[3, 518, 518]`."""
        torch = self.torch
        stride = max(1, min(raw.linear.shape[:2]) // (2 * SIDE))
        linear = raw.linear[::stride, ::stride].astype(np.float32) / 65535 * np.asarray(raw.white_balance, np.float32)
        if raw.camera_matrix is not None:
            linear = linear @ np.asarray(raw.camera_matrix, np.float32).T
        linear = linear * (0.18 / max(float(np.median(luminance(linear))), 1e-6))
        planes = torch.from_numpy(encode(np.clip(linear, 0, 1))).permute(2, 0, 1)[None].float()
        small = torch.nn.functional.interpolate(planes, size=(SIDE, SIDE), mode="area")[0]
        return (small - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


def _load(folder: Path) -> Any:
    from safetensors import SafetensorError

    _complete_torchvision()
    from transformers import DepthAnythingForDepthEstimation

    try:
        return DepthAnythingForDepthEstimation.from_pretrained(str(folder), local_files_only=True, use_safetensors=True)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{folder} is not a Depth-Anything network ({reason}); download it again") from None


def _complete_torchvision() -> None:
    """Beside a CPU torch, torchvision's C library may not load, and transformers then trips over two of its operators.

    Declaring them is enough: nothing here calls them.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except ImportError:
        return  # not installed: transformers does without
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)


_KEPT: list = []  # a library's operators live as long as it does


def fetch_network(model: str, revision: str, out: Path) -> None:
    """Put the network's files into `out`: from a local folder, the hub's cache, or the hub."""
    import shutil

    from fujinsplat.core.files import atomic_folder

    local = Path(model)
    if local.is_dir():
        sources = {name: local / name for name in FILES}
        for name, path in sources.items():
            if not path.is_file():
                raise UserError(f"{local} holds no {name}; put {' and '.join(FILES)} of the depth network there")
    else:
        sources = {name: _from_hub(model, revision, name) for name in FILES}
        _check_weights(sources["model.safetensors"], revision)
    with atomic_folder(out) as temporary:
        for name, path in sources.items():
            shutil.copyfile(path, temporary / name)


def _check_weights(path: Path, revision: str) -> None:
    from fujinsplat.core.files import sha256

    if sha256(path) != WEIGHTS.get(revision, sha256(path)):
        raise UserError(
            f"{path} is not what revision {revision[:7]} of the depth network has (another SHA-256); "
            "remove it from the cache so that it is fetched again"
        )


def _from_hub(model: str, revision: str, name: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, name, revision=revision, local_files_only=True))
    except Exception:
        pass  # not in the cache: ask the hub
    try:
        return Path(hf_hub_download(model, name, revision=revision))
    except Exception as error:
        raise UserError(
            f"the depth network {model} (revision {revision}) is not cached nor reachable ({type(error).__name__}); "
            f"download {' and '.join(FILES)} from https://huggingface.co/{model}/tree/{revision} into a folder "
            "and set synthesis.depth_model to that folder, or use depth maps with synthesis.depth: files"
        ) from None
