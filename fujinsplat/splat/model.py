"""The Gaussians: raw parameters, their activation, their start from points, and the model on disk.

Colours are linear light unless their display says otherwise. Raw parameters carry gsplat's names and conventions, so
its strategies can work on them: `means [N, 3]`, `quats [N, 4]`, `scales [N, 3]` (log), `opacities [N]` (logit), `sh0
[N, 1, 3]`, `shN [N, K-1, 3]`.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fujinsplat.core.color import decode
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import reader
from fujinsplat.splat.displays import Display, LinearDisplay, stored
from fujinsplat.splat.raster.engine import rasterize
from fujinsplat.splat.raster.harmonics import C0

MEDIUM = "medium/"  # how names of the medium's tensors begin in the file
NAMES = ("means", "quats", "scales", "opacities", "sh0", "shN")
START_OPACITY = 0.1  # 3DGS
NEIGHBOURS = 3  # 3DGS: the start size is the root mean square distance to so many points


class Gaussians:
    """`parameters` is a plain dict of tensors, replaced entry by entry when densification changes their number.

    `medium`: the parameters of what lies between them and the camera, by name, of the kind `medium_kind`
    (`fujinsplat.splat.media`); none where nothing does.
    """

    def __init__(
        self,
        parameters: dict[str, Tensor],
        display: Display | None = None,
        medium: dict[str, Tensor] | None = None,
        medium_kind: str = "",
    ):
        self.parameters = {name: torch.nn.Parameter(parameters[name]) for name in NAMES}
        self.display = display or LinearDisplay()
        self.medium, self.medium_kind = medium or {}, medium_kind

    def __len__(self) -> int:
        return len(self.parameters["means"])

    @property
    def sh_degree(self) -> int:
        return round((self.parameters["shN"].shape[1] + 1) ** 0.5) - 1

    def activated(self, sh_degree: int | None = None) -> dict[str, Tensor]:
        """Arguments of `rasterize`: scales and opacities in their natural units, SH up to `sh_degree`."""
        p = self.parameters
        degree = self.sh_degree if sh_degree is None else min(sh_degree, self.sh_degree)
        rest = (degree + 1) ** 2 - 1
        return {
            "means": p["means"],
            "quats": p["quats"],
            "scales": p["scales"].exp(),
            "opacities": p["opacities"].sigmoid(),
            "sh": torch.cat([p["sh0"], p["shN"][:, :rest]], 1) if rest else p["sh0"],
        }

    def render(self, viewmat: Tensor, K: Tensor, width: int, height: int, sh_degree=None, with_depth: bool = False):
        """(linear picture `[H, W, 3]`, alpha `[H, W]`, info) on black; see `fujinsplat.splat.rasterize`."""
        given: dict[str, Any] = {**self.activated(sh_degree)}
        return rasterize(**given, viewmat=viewmat, K=K, width=width, height=height, with_depth=with_depth)

    def plain(self) -> "Gaussians":
        """As they are stored; training may hold them another way."""
        return self

    @staticmethod
    def from_points(
        xyz: np.ndarray, rgb_encoded: np.ndarray, sh_degree: int, device: str, display: Display | None = None
    ) -> "Gaussians":
        """3DGS's start: one round Gaussian per point, as large as its neighbours are far, in the point's colour.

        xyz float32 `[N, 3]`; rgb uint8 `[N, 3]`, sRGB-encoded as the photographs are, decoded here unless the
        `display` takes encoded colours.
        """
        from fujinsplat.splat.neighbours import square_distances

        n = len(xyz)
        k = min(NEIGHBOURS, n - 1)
        if k:
            size = np.sqrt(np.maximum(square_distances(xyz, k).mean(1), 1e-14))
        else:
            size = np.full(n, 0.01)
        start = rgb_encoded.astype(np.float64) / 255
        start = start if display is not None and display.colour == "encoded" else decode(start)
        values = {
            "means": xyz,
            "quats": np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
            "scales": np.log(size)[:, None].repeat(3, 1),
            "opacities": np.full(n, np.log(START_OPACITY / (1 - START_OPACITY))),
            "sh0": ((start - 0.5) / C0)[:, None],
            "shN": np.zeros((n, (sh_degree + 1) ** 2 - 1, 3)),
        }
        return Gaussians(
            {name: torch.tensor(np.asarray(v), dtype=torch.float32, device=device) for name, v in values.items()},
            display,
        )

    def save(self, path: Path | str, metadata: dict[str, str]) -> None:
        """The model: raw parameters as they are, its medium's, how they are shown, and `metadata` (text)."""
        values = {**self.parameters, **{f"{MEDIUM}{name}": value for name, value in self.medium.items()}}
        tensors = {name: value.detach().cpu().contiguous() for name, value in values.items()}
        notes = {**self.display.notes(), "medium": self.medium_kind, **metadata}
        write_tensors(path, {**tensors, **self.display.tensors()}, notes)

    @staticmethod
    @reader("Gaussian model", "train the scene again")
    def load(path: Path | str, device: str = "cpu") -> "Gaussians":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt", device=device) as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}
                notes = file.metadata() or {}
            medium = {name.removeprefix(MEDIUM): value for name, value in tensors.items() if name.startswith(MEDIUM)}
            parameters = {name: tensors[name] for name in NAMES}
            _whole(parameters, path)
            return Gaussians(parameters, stored(tensors, notes), medium, notes.get("medium", ""))
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; train the scene first") from None
        except (SafetensorError, KeyError, OSError) as error:
            raise UserError(f"{path} is not a Gaussian model ({error}); train the scene again") from None


def _whole(parameters: dict[str, torch.Tensor], path: Path | str) -> None:
    """Parameters of one set of Gaussians: one length, the right shapes, finite."""
    count, wanted = (
        len(parameters["means"]),
        {"means": (3,), "quats": (4,), "scales": (3,), "opacities": (), "sh0": (1, 3)},
    )
    if not count:
        raise UserError(f"{path} holds no Gaussians; train the scene again")
    for name, value in parameters.items():
        shape = tuple(value.shape[1:])
        fits = shape == wanted[name] if name in wanted else len(shape) == 2 and shape[1] == 3
        if not value.is_floating_point() or len(value) != count or not fits:
            raise UserError(
                f"{path}: {name} has shape {list(value.shape)} for {count} Gaussians; train the scene again"
            )
        if not torch.isfinite(value).all():
            raise UserError(f"{path}: {name} holds values that are not finite; train the scene again")
