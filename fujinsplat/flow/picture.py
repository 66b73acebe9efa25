"""A picture file through an action."""

from pathlib import Path

import numpy as np
import torch

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file
from fujinsplat.flow import operator


def develop(image: Path, out: Path, action: torch.Tensor, K: int, M: int, invert: bool = False) -> None:
    """Read `image` (encoded RGB, 8 or 16 bit), apply (or undo) `action [P]`, clip to [0, 1], write `out` in 8 bit.

    A TIFF of 16 bits is written when `image` had 16 bits and `out` is a TIFF.
    """
    pixels, levels = read_encoded(image)
    direction = operator.invert if invert else operator.apply
    result = direction(torch.from_numpy(pixels), action.float(), K, M).clamp_(0, 1).mul_(levels).round_().numpy()
    write_levels(out, result.astype(np.uint8 if levels == 255 else np.uint16))


def read_encoded(path: Path) -> tuple[np.ndarray, int]:
    """float32 `[H, W, 3]` in [0, 1], and the largest level of the file (255 or 65535)."""
    from skimage import io

    if not path.is_file():
        raise UserError(f"{path} does not exist; give an RGB picture")
    try:
        pixels = io.imread(path)
    except Exception as error:  # every reader raises its own kind
        raise UserError(f"{path} is not a readable picture ({' '.join(str(error).split())[:120]})") from None
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype not in (np.uint8, np.uint16):
        raise UserError(f"{path} is {pixels.shape} {pixels.dtype}; an 8 or 16 bit RGB picture is needed")
    levels = int(np.iinfo(pixels.dtype).max)
    return np.divide(pixels[..., :3], levels, dtype=np.float32), levels


def write_levels(path: Path, pixels: np.ndarray) -> None:
    """8 or 16 bit `[H, W, 3]`; a format without 16 bits gets the upper eight."""
    from skimage import io

    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", ".tif", ".tiff"):
        raise UserError(f"cannot write {path}: choose a name that ends in .png, .jpg or .tif")
    if pixels.dtype == np.uint16 and path.suffix.lower() not in (".tif", ".tiff"):
        pixels = np.round(pixels / 257).astype(np.uint8)
    with atomic_file(path) as temporary:
        io.imsave(temporary, pixels, check_contrast=False)
