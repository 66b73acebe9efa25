"""What a scene is trained on: source cameras, and targets developed from the pictures of the row's front.

A target is `T_p(Y^B)` clamped, decoded, area-resized in linear light to the training size, encoded. Pictures and
targets are read and developed when first needed, and kept within a memory budget.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fujinsplat import flow
from fujinsplat.capture import Camera, read_cameras, read_points
from fujinsplat.core import gpu
from fujinsplat.core.color import decode, encode
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import SplatSettings
from fujinsplat.develop.store import Developed
from fujinsplat.views.store import Views

CAMERA_MARGIN = 1.1  # 3DGS: the scene's extent is the cameras' spread, a tenth larger


@cache
def area_weights(old: int, new: int, device: str | torch.device) -> Tensor:
    """Dense `[new, old]`: the share of each old pixel in each new one along one axis. Kept: do not write into it."""
    edges = torch.arange(new + 1, dtype=torch.float64) * (old / new)
    pixels = torch.arange(old, dtype=torch.float64)
    overlap = torch.minimum(edges[1:, None], pixels + 1) - torch.maximum(edges[:-1, None], pixels)
    return (overlap.clamp_min(0) * (new / old)).to(torch.float32).to(device)


class Budget:
    """Tensors (or what else has `nbytes`) by key, the least recently used forgotten when bytes exceed the limit."""

    def __init__(self, megabytes: float):
        self.limit, self.held = megabytes * 1e6, 0
        self._kept: OrderedDict[tuple, Any] = OrderedDict()

    def get(self, key: tuple, make: Callable[[], Any]) -> Any:
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
class Palette:
    """An 8-bit picture as its distinct colours, uint8 `[C, 3]`, and the place of each pixel's among them `[H W]`.

    The flow takes each colour to one other: on a GPU every colour is developed once and pixels look theirs up, the same
    picture for a fraction of the work. Gradients are summed by colour on the way back.
    """

    colours: Tensor
    places: Tensor
    shape: tuple[int, ...]

    @classmethod
    def of(cls, picture: Tensor) -> "Palette":
        """`picture` uint8 `[H, W, 3]`."""
        red, green, blue = picture.to(torch.int32).unbind(-1)
        codes, places = torch.unique(red * 65536 + green * 256 + blue, return_inverse=True)
        colours = torch.stack([codes // 65536, codes // 256 % 256, codes % 256], -1).to(torch.uint8)
        return cls(colours, places.view(-1).to(torch.int32), tuple(picture.shape))

    @property
    def nbytes(self) -> int:
        return self.colours.nbytes + self.places.nbytes

    def colours_encoded(self) -> Tensor:
        return self.colours.to(torch.float32) / 255

    def spread(self, values: Tensor) -> Tensor:
        """A picture of `values [C, 3]`, one per colour."""
        return values.index_select(0, self.places).view(self.shape)


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

    def __init__(self, views: Path, developed: Path, cameras: Path, points: Path, settings: SplatSettings, device: str):
        self.developed, self.pictures = Developed(developed), Views(views)
        known = {camera.stem: camera for camera in read_cameras(cameras, "source")}
        for stem in self.developed.stems:
            if stem not in known:
                raise UserError(f"{cameras} has no camera for view {stem!r} of {developed}; build both again")
            if stem not in self.pictures.stems:
                raise UserError(f"{views} has no picture of view {stem!r} of {developed}; build both again")
        if len(self.developed.stems) < 2:
            raise UserError(
                f"{developed} holds {len(self.developed.stems)} source view(s), and a scene needs at least two; "
                "add photographs from other positions"
            )
        self.xyz, self.rgb_encoded = read_points(points)
        if not len(self.xyz):
            raise UserError(f"{points} holds no points; run structure from motion again")
        self.device = device
        self.cameras = [self._camera(known[stem], settings.max_width) for stem in self.developed.stems]
        self.views = [self._view(camera) for camera in self.cameras]
        self.actions = torch.from_numpy(self.developed.actions).to(device)
        self._budget = Budget(settings.memory_mb)

    def __len__(self) -> int:
        return len(self.views)

    @staticmethod
    def _camera(camera: Camera, max_width: int) -> Camera:
        return camera.scaled(*training_size(camera.width, camera.height, max_width))

    def _view(self, camera: Camera) -> View:
        return View(
            camera.stem,
            torch.tensor(camera.viewmat, dtype=torch.float32, device=self.device),
            torch.tensor(camera.K, dtype=torch.float32, device=self.device),
            camera.width,
            camera.height,
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
        """The picture a view starts from (`Y^B`): float32 `[H, W, 3]`, encoded, at its stored size."""
        stem = self.views[index].stem

        def read() -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(self.pictures.encoded(stem))).to(self.device)

        return self._budget.get(("base", index), read).to(torch.float32) / 255

    def develop(self, index: int, action: Tensor) -> Tensor:
        """The target of a view under `action [P]`: encoded `[height, width, 3]`, differentiable in the action."""
        view, K, M = self.views[index], self.developed.K, self.developed.M
        if gpu.holds(action):
            palette = self._palette(index)
            base, spread, shape = palette.colours_encoded(), palette.spread, palette.shape
        else:
            base, spread = self.base(index), None
            shape = base.shape
        z = flow.apply(base[None], action[None], K, M)[0].clamp(0, 1)
        same = shape[:2] == (view.height, view.width)
        z = z if same else decode(z)
        z = z if spread is None else spread(z)
        if same:
            return z
        rows = area_weights(shape[0], view.height, self.device)
        columns = area_weights(shape[1], view.width, self.device)
        linear = torch.einsum("ah,hwc,bw->abc", rows, z, columns)
        return encode(linear.clamp(0, 1))

    def _palette(self, index: int) -> "Palette":
        def make() -> Palette:
            picture = torch.from_numpy(np.ascontiguousarray(self.pictures.encoded(self.views[index].stem)))
            return Palette.of(picture.to(self.device))

        return self._budget.get(("palette", index), make)

    def target(self, index: int, actions: Tensor | Callable[[], Tensor]) -> Tensor:
        """The constant target of a view, developed once with its row of `actions [V, P]` and kept."""

        def make() -> Tensor:
            with torch.no_grad():
                return self.develop(index, (actions() if callable(actions) else actions)[index])

        return self._budget.get(("target", index), make)

    def forget_targets(self) -> None:
        """The actions have moved: develop again on the next use."""
        self._budget.forget("target")
