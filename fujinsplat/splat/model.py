"""The Gaussians: raw parameters, their activation, their start from points, and the linear model on disk.

Colours are linear light throughout. Raw parameters carry gsplat's names and conventions, so its strategies can work on
them: `means [N, 3]`, `quats [N, 4]`, `scales [N, 3]` (log), `opacities [N]` (logit), `sh0 [N, 1, 3]`, `shN [N, K-1,
3]`.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.color import decode
from fujinsplat.errors import UserError
from fujinsplat.files import write_tensors
from fujinsplat.splat.raster.engine import rasterize
from fujinsplat.splat.raster.harmonics import C0

NAMES = ("means", "quats", "scales", "opacities", "sh0", "shN")
START_OPACITY = 0.1  # 3DGS
NEIGHBOURS = 3  # 3DGS: the start size is the mean distance to so many points


class Gaussians:
    """`parameters` is a plain dict of tensors, replaced entry by entry when densification changes their number."""

    def __init__(self, parameters: dict[str, Tensor]):
        self.parameters = {name: torch.nn.Parameter(parameters[name]) for name in NAMES}

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

    def render(self, viewmat: Tensor, K: Tensor, width: int, height: int, sh_degree: int | None = None):
        """(linear picture `[H, W, 3]`, alpha `[H, W]`, info) on black; see `fujinsplat.splat.rasterize`."""
        return rasterize(**self.activated(sh_degree), viewmat=viewmat, K=K, width=width, height=height)

    @staticmethod
    def from_points(xyz: np.ndarray, rgb_encoded: np.ndarray, sh_degree: int, device: str) -> "Gaussians":
        """3DGS's start: one round Gaussian per point, as large as its neighbours are far, in the point's colour.

        xyz float32 `[N, 3]`; rgb uint8 `[N, 3]`, sRGB-encoded as the photographs are, decoded here.
        """
        from fujinsplat.splat.neighbours import mean_square_distances

        n = len(xyz)
        k = min(NEIGHBOURS, n - 1)
        if k:
            size = np.sqrt(np.maximum(mean_square_distances(xyz, k), 1e-14))
        else:
            size = np.full(n, 0.01)
        colour_linear = decode(rgb_encoded.astype(np.float64) / 255)
        values = {
            "means": xyz,
            "quats": np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)),
            "scales": np.log(size)[:, None].repeat(3, 1),
            "opacities": np.full(n, np.log(START_OPACITY / (1 - START_OPACITY))),
            "sh0": ((colour_linear - 0.5) / C0)[:, None],
            "shN": np.zeros((n, (sh_degree + 1) ** 2 - 1, 3)),
        }
        return Gaussians(
            {name: torch.tensor(np.asarray(v), dtype=torch.float32, device=device) for name, v in values.items()}
        )

    def save(self, path: Path | str, metadata: dict[str, str]) -> None:
        """The linear model: raw parameters as they are, with `metadata` (text)."""
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.parameters.items()}
        write_tensors(path, tensors, {"colour": "linear", **metadata})

    @staticmethod
    def load(path: Path | str, device: str = "cpu") -> "Gaussians":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            tensors = load_file(path, device=device)
            return Gaussians({name: tensors[name] for name in NAMES})
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; train the scene first") from None
        except (SafetensorError, KeyError, OSError) as error:
            raise UserError(f"{path} is not a linear Gaussian model ({error}); train the scene again") from None
