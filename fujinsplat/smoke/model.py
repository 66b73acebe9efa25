"""The smoke of one scene: what was estimated, what follows for every pixel, and the file it is kept in.

Colours are white-balanced camera-linear: RAW times the file's white balance.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import reader

KIND = "fujinsplat smoke"
TENSORS = ("colour", "level", "grid", "slope", "depth", "trusted")


@dataclass(frozen=True)
class Smoke:
    """H = J T + A (1 - T) in every view, T = exp(-(a(x) + b(x) Z)), Z the distance along the ray in units of `scale`.

    `colour [3]` and `level [V, 3]` (middle, tilt to the right edge, to the bottom edge) make the airlight, `grid
    [V, gy, gx]` and `slope [V, sy, sx]` the optical depth over `depth [V, h, w]` (Z); `trusted [V, h, w]` is where
    that is believed.
    `keep` is the share of the estimate that is applied: 1, or less where the capture does not determine the smoke.
    `views [V, h, w, 3]` are the hazy pictures the estimate was made from; a file holds none.
    """

    colour: Tensor
    level: Tensor
    grid: Tensor
    slope: Tensor
    depth: Tensor
    trusted: Tensor
    stems: tuple[str, ...]
    keep: float = 1.0
    floor: float = 0.03
    statistics: dict = field(default_factory=dict)
    views: Tensor | None = None

    def __len__(self) -> int:
        return len(self.slope)

    def airlight_of(self, view: int) -> Tensor:
        """`[h, w, 3]`."""
        x, y = self._grid_of(self.depth.shape[1:])
        middle, right, down = self.level[view]
        return (middle + right * x + down * y)[..., None] * self.colour

    def transmission_of(self, view: int) -> Tensor:
        """`[h, w]`, already weakened by `keep`."""
        x, y = self._grid_of(self.depth.shape[1:])
        places = torch.stack([x, y], -1)[None]
        layer, slope = (
            F.grid_sample(nodes[view][None, None], places, align_corners=True)[0, 0]
            for nodes in (self.grid, self.slope)
        )
        return torch.exp(-self.keep * (layer + slope * self.depth[view]))

    def clear_of(self, view: int, hazy: Tensor | None = None) -> Tensor:
        """J of one view, `[h, w, 3]`; not clipped, since clipped noise is bias. `hazy` defaults to the view itself."""
        hazy = self._hazy(view) if hazy is None else hazy
        T = self.transmission_of(view)[..., None]
        return (hazy - self.airlight_of(view) * (1 - T)) / T.clamp_min(self.floor)

    @cached_property
    def airlight(self) -> Tensor:
        """`[V, h, w, 3]`."""
        return torch.stack([self.airlight_of(view) for view in range(len(self))])

    @cached_property
    def transmission(self) -> Tensor:
        """`[V, h, w]`."""
        return torch.stack([self.transmission_of(view) for view in range(len(self))])

    def clear(self) -> Tensor:
        """J `[V, h, w, 3]`, camera-linear, white-balanced, not clipped."""
        return torch.stack([self.clear_of(view) for view in range(len(self))])

    def trust_of(self, view: int, doubt: float) -> Tensor:
        """Weight of each pixel in training `[h, w]`, about 1: noise and airlight errors of J grow as 1 / T."""
        T = self.transmission_of(view)
        return (T / self.mean_transmission).clamp(0.05, 2) * torch.where(self.trusted[view], 1.0, doubt)

    @cached_property
    def mean_transmission(self) -> float:
        return sum(float(self.transmission_of(view).mean()) for view in range(len(self))) / len(self)

    def _hazy(self, view: int) -> Tensor:
        if self.views is None:
            raise UserError("this smoke was read from a file, which holds no pictures; give the hazy view to clear")
        return self.views[view]

    def _grid_of(self, size: Sequence[int]) -> tuple[Tensor, Tensor]:
        """x and y of pixel centres, -1 to 1 over the picture, `[h, w]` each."""
        height, width = size
        y = (torch.arange(height, device=self.depth.device) + 0.5) / height * 2 - 1
        x = (torch.arange(width, device=self.depth.device) + 0.5) / width * 2 - 1
        y, x = torch.meshgrid(y, x, indexing="ij")
        return x, y

    def to(self, device: str) -> "Smoke":
        moved = {name: getattr(self, name).to(device) for name in TENSORS}
        return replace(self, **moved, views=None if self.views is None else self.views.to(device))

    def save(self, path: Path | str) -> None:
        """All but the pictures; distances in half precision, which errs by less than the points do."""
        tensors = {name: getattr(self, name).detach().cpu().contiguous() for name in TENSORS}
        tensors["depth"], tensors["trusted"] = tensors["depth"].half(), tensors["trusted"].to(torch.uint8)
        notes = {"kind": KIND, "stems": json.dumps(self.stems), "keep": repr(self.keep), "floor": repr(self.floor)}
        write_tensors(path, tensors, notes | {"statistics": json.dumps(self.statistics, sort_keys=True)})

    @staticmethod
    @reader("smoke estimate", "estimate the smoke again")
    def load(path: Path | str) -> "Smoke":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                notes = dict(file.metadata() or {})
                tensors = {name: file.get_tensor(name) for name in file.keys()}
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; estimate the scene's smoke first") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is not a readable safetensors file ({error}); estimate the smoke again") from None
        if notes.get("kind") != KIND or set(tensors) != set(TENSORS):
            raise UserError(f"{path} is not a smoke estimate; make it with `fujinsplat smoke estimate`")
        if tensors["slope"].dim() != 3:
            raise UserError(f"{path} was made by an earlier version (one slope per view); estimate the smoke again")
        for name, tensor in tensors.items():
            # depths in half precision end at 65504: what lies beyond is far, not wrong
            if (tensor.isnan() if name == "depth" else ~tensor.isfinite()).any():
                raise UserError(f"{path}: {name} holds values that are not finite; estimate the smoke again")
        tensors["depth"], tensors["trusted"] = tensors["depth"].float(), tensors["trusted"].bool()
        words = {"stems": tuple(json.loads(notes["stems"])), "statistics": json.loads(notes["statistics"])}
        return Smoke(**tensors, **words, keep=float(notes["keep"]), floor=float(notes["floor"]))
