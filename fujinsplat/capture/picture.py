"""The camera's own rendering: 8-bit RGB JPG or PNG, pixels as stored."""

from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.reading import check_size

SMALLEST = 8  # pixels on a side
REMEDY = "export it from the camera or the RAW developer as 8-bit RGB"


def _open(path: Path):
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(path)
    except UnidentifiedImageError:
        raise UserError(f"{path} is no JPG or PNG of 8 bits per channel; {REMEDY}") from None
    except PermissionError:
        raise UserError(f"{path} cannot be read: permission denied; give yourself the right to read it") from None
    except Image.DecompressionBombError:
        raise UserError(f"{path} says it has more pixels than any picture here may; {REMEDY}") from None
    except Exception as error:  # a damaged header makes Pillow raise many kinds
        raise UserError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}); copy it again") from None
    try:
        check_size(path, *image.size, REMEDY)
        if min(image.size) < SMALLEST:
            raise UserError(f"{path} has {image.width}x{image.height} pixels, too few for a view; {REMEDY}")
    except UserError:
        image.close()
        raise
    if image.mode != "RGB" or _png_depth(path) == 16:
        kind = {"L": "grey", "CMYK": "CMYK", "P": "a palette picture"}.get(image.mode)
        if kind is None:
            kind = "16-bit" if "16" in image.mode or image.mode == "I" or image.mode == "RGB" else image.mode
        image.close()
        raise UserError(f"{path} is {kind} instead of 8-bit RGB; {REMEDY}")
    return image


def _png_depth(path: Path) -> int | None:
    """Bits per channel of a PNG (Pillow reads 16-bit RGB as 8-bit without a word), None for other files."""
    with path.open("rb") as stream:
        head = stream.read(25)
    return head[24] if head.startswith(b"\x89PNG") and len(head) == 25 else None


def rgb_size(path: Path) -> tuple[int, int]:
    """(width, height) from the header."""
    with _open(path) as image:
        return image.size


def read_rgb(path: Path) -> tuple[np.ndarray, int]:
    """(uint8 [H, W, 3] camera RGB, EXIF orientation: 1 means upright). The orientation is not applied: poses and RAW
    speak of the stored pixels."""
    with _open(path) as image:
        try:
            pixels = np.array(image)
            orientation = int(image.getexif().get(274, 1))
        except Exception as error:  # of a damaged picture
            raise UserError(f"{path} is truncated or damaged ({error}); copy it again") from None
    return pixels, orientation
