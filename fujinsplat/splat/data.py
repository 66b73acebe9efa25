"""What a scene is trained on: source cameras, and targets developed from the stored base pictures.

A target is `T_p(Y^B)` clamped, decoded, area-resized in linear light to the training size, encoded. Pictures and
targets are read and developed when first needed, and kept within a memory budget.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat import flow
from fujinsplat.capture import Camera, read_cameras, read_points
from fujinsplat.color import decode, encode
from fujinsplat.config import SplatSettings
from fujinsplat.develop.store import Developed
from fujinsplat.errors import UserError

CAMERA_MARGIN = 1.1  # 3DGS: the scene's extent is the cameras' spread, a tenth larger


def area_weights(old: int, new: int, device: str) -> Tensor:
    """Dense `[new, old]`: the share of each old pixel in each new one along one axis."""
    edges = torch.arange(new + 1, dtype=torch.float64) * (old / new)
    pixels = torch.arange(old, dtype=torch.float64)
    overlap = torch.minimum(edges[1:, None], pixels + 1) - torch.maximum(edges[:-1, None], pixels)
    return (overlap.clamp_min(0) * (new / old)).to(torch.float32).to(device)


class Budget:
    """Tensors by key, the least recently used forgotten when their bytes exceed the limit."""

    def __init__(self, megabytes: float):
        self.limit, self.held = megabytes * 1e6, 0
        self._kept: OrderedDict[tuple, Tensor] = OrderedDict()

    def get(self, key: tuple, make) -> Tensor:
        if key not in self._kept:
            made = make()
            self.held += made.nbytes
            self._kept[key] = made
            while self.held > self.limit and len(self._kept) > 1:
                self.held -= self._kept.popitem(last=False)[1].nbytes
        self._kept.move_to_end(key)
        return self._kept[key]

    def forget(self, kind: str) -> None:
        for key in [key for key in self._kept if key[0] == kind]:
            self.held -= self._kept.pop(key).nbytes


@dataclass(frozen=True)
class View:
    """A source camera at training size, as tensors."""

    stem: str
    viewmat: Tensor
    K: Tensor
    width: int
    height: int


def training_size(width: int, height: int, max_width: int) -> tuple[int, int]:
    return (width, height) if width <= max_width else (max_width, max(1, round(height * max_width / width)))


class TrainingScene:
    """Source views, their targets and the points of one scene; refuses what cannot be trained."""

    def __init__(self, developed: Path, cameras: Path, points: Path, settings: SplatSettings, device: str):
        self.developed = Developed(developed)
        known = {camera.stem: camera for camera in read_cameras(cameras, "source")}
        for stem in self.developed.stems:
            if stem not in known:
                raise UserError(f"{cameras} has no camera for view {stem!r} of {developed}; build both again")
        if len(self.developed.stems) < 2:
            raise UserError(
                f"{developed} holds {len(self.developed.stems)} source view(s), and a scene needs at least two; "
                "add photographs from other positions"
            )
        self.xyz, self.rgb_encoded = read_points(points)
        if not len(self.xyz):
            raise UserError(f"{points} holds no points; run structure from motion again")
        self.device = device
        self.views = [self._view(known[stem], settings.max_width) for stem in self.developed.stems]
        self.actions = torch.from_numpy(self.developed.actions).to(device)
        self._budget = Budget(settings.memory_mb)

    def __len__(self) -> int:
        return len(self.views)

    def _view(self, camera: Camera, max_width: int) -> View:
        width, height = training_size(camera.width, camera.height, max_width)
        scaled = camera.scaled(width, height)
        return View(
            camera.stem,
            torch.tensor(scaled.viewmat, dtype=torch.float32, device=self.device),
            torch.tensor(scaled.K, dtype=torch.float32, device=self.device),
            width,
            height,
        )

    @property
    def extent(self) -> float:
        """Radius of the cameras around their middle: the unit of position steps and of what counts as a small
        Gaussian."""
        poses = torch.stack([view.viewmat for view in self.views]).double().cpu()
        centres = -(poses[:, :3, :3].mT @ poses[:, :3, 3:])[..., 0]
        radius = float((centres - centres.mean(0)).norm(dim=-1).max()) * CAMERA_MARGIN
        return radius if radius > 0 else 1.0

    def base(self, index: int) -> Tensor:
        """`Y^B` of a view: float32 `[H, W, 3]`, encoded, at its stored size."""
        stem = self.views[index].stem

        def read() -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(self.developed.base(stem))).to(self.device)

        return self._budget.get(("base", index), read).to(torch.float32) / 255

    def develop(self, index: int, action: Tensor) -> Tensor:
        """The target of a view under `action [P]`: encoded `[height, width, 3]`, differentiable in the action."""
        view, base = self.views[index], self.base(index)
        z = flow.apply(base[None], action[None], self.developed.K, self.developed.M)[0].clamp(0, 1)
        if z.shape[:2] == (view.height, view.width):
            return z
        rows = area_weights(z.shape[0], view.height, self.device)
        columns = area_weights(z.shape[1], view.width, self.device)
        linear = torch.einsum("ah,hwc,bw->abc", rows, decode(z), columns)
        return encode(linear.clamp(0, 1))

    def target(self, index: int, actions: Tensor) -> Tensor:
        """The constant target of a view, developed once with its row of `actions [V, P]` and kept."""

        def make() -> Tensor:
            with torch.no_grad():
                return self.develop(index, actions[index])

        return self._budget.get(("target", index), make)

    def forget_targets(self) -> None:
        """The actions have moved: develop again on the next use."""
        self._budget.forget("target")
