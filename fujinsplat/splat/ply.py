"""The 3DGS PLY: the file that Gaussian viewers read. Colours in it are display-encoded."""

import math
from pathlib import Path

import numpy as np
import torch

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file
from fujinsplat.core.reading import reader
from fujinsplat.splat.model import Gaussians

BANDS = 15  # coefficients of SH degrees 1 to 3, per channel: the original loader takes no PLY with fewer


def _columns(rest: int) -> list[str]:
    names = ["x", "y", "z", "nx", "ny", "nz", *(f"f_dc_{i}" for i in range(3)), *(f"f_rest_{i}" for i in range(rest))]
    return [*names, "opacity", *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]


def write_ply(path: Path | str, gaussians: Gaussians, comments: tuple[str, ...] = ()) -> None:
    """Raw parameters in the dataset's frame and scale: log scales, logit opacities, SH of degree 3 channel by channel,
    zero where the model has less."""
    p = {name: value.detach().cpu().numpy() for name, value in gaussians.parameters.items()}
    lower = p["shN"].transpose(0, 2, 1)
    rest = np.zeros((len(gaussians), 3, BANDS), np.float32)
    rest[..., : lower.shape[2]] = lower
    rest = rest.reshape(len(gaussians), 3 * BANDS)
    quats = p["quats"] / np.maximum(np.linalg.norm(p["quats"], axis=1, keepdims=True), 1e-12)
    blocks = [p["means"], np.zeros_like(p["means"]), p["sh0"][:, 0], rest, p["opacities"][:, None], p["scales"], quats]
    table = np.concatenate(blocks, axis=1).astype("<f4")
    names = _columns(rest.shape[1])
    header = ["ply", "format binary_little_endian 1.0", *(f"comment {text}" for text in comments)]
    header += [f"element vertex {len(table)}", *(f"property float {name}" for name in names), "end_header"]
    with atomic_file(path) as temporary:
        temporary.write_bytes(("\n".join(header) + "\n").encode() + table.tobytes())


@reader("3DGS PLY", "export it again")
def read_ply(path: Path | str) -> Gaussians:
    """A 3DGS PLY as Gaussians (display colours, as stored), of the SH degree that is not zero everywhere."""
    from plyfile import PlyData, PlyElementParseError, PlyHeaderParseError

    try:
        vertex = PlyData.read(str(path))["vertex"].data
        rest = sorted((n for n in vertex.dtype.names if n.startswith("f_rest_")), key=lambda n: int(n.split("_")[-1]))
        table = {n: np.asarray(vertex[n], np.float32) for n in _columns(len(rest)) if not n.startswith("n")}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; train the scene first") from None
    except (PlyHeaderParseError, PlyElementParseError, KeyError, ValueError) as error:
        raise UserError(f"{path} is not a 3DGS PLY ({error}); export it again") from None

    def stack(*names: str) -> torch.Tensor:
        return torch.from_numpy(np.stack([table[n] for n in names], -1))

    sh = stack(*rest).reshape(len(vertex), 3, len(rest) // 3).mT if rest else torch.zeros(len(vertex), 0, 3)
    while (degree := math.isqrt(sh.shape[1])) and not sh[:, degree**2 - 1 :].any():
        sh = sh[:, : degree**2 - 1]
    return Gaussians(
        {
            "means": stack("x", "y", "z"),
            "quats": stack(*(f"rot_{i}" for i in range(4))),
            "scales": stack(*(f"scale_{i}" for i in range(3))),
            "opacities": torch.from_numpy(table["opacity"].copy()),
            "sh0": stack("f_dc_0", "f_dc_1", "f_dc_2")[:, None],
            "shN": sh.contiguous(),
        }
    )
