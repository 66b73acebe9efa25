"""The protocol of supplement H: PSNR, SSIM and LPIPS of 8-bit pictures, without any alignment.

Pictures are uint8 `[H, W, 3]`, display-encoded RGB. A prediction of another size is area-resized to the reference.
"""

import math
from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.metrics import psnr, ssim
from fujinsplat.core.reading import check_size, reader
from fujinsplat.evaluate.perceptual import Perceptual, load_perceptual

LARGEST = 8  # how many times larger or smaller a resized prediction may be
METRICS = ("psnr", "ssim", "lpips")


def score(
    prediction: np.ndarray, reference: np.ndarray, perceptual: Perceptual | None = None
) -> dict[str, float | None]:
    """`{"psnr", "ssim", "lpips"}` of one uint8 RGB pair; `lpips` is None when no VGG weights are to be found."""
    return Scorer(load_perceptual() if perceptual is None else perceptual)(prediction, reference)


class Scorer:
    """`score` for many pictures: the LPIPS network is loaded once.

    `perceptual=None` leaves LPIPS out.
    """

    def __init__(self, perceptual: Perceptual | None):
        self.perceptual = perceptual

    def __call__(self, prediction: np.ndarray, reference: np.ndarray) -> dict[str, float | None]:
        prediction = fitted(prediction, reference)
        lpips = None if self.perceptual is None else self.perceptual.distance(prediction, reference)
        return {"psnr": psnr(prediction, reference, math.inf), "ssim": ssim(prediction, reference), "lpips": lpips}


def fitted(prediction: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The prediction on the reference's pixel grid, uint8: itself when the sizes agree, otherwise area-resized."""
    for name, picture in (("prediction", prediction), ("reference", reference)):
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3:
            raise UserError(f"the {name} is {picture.dtype} {list(picture.shape)}; scores need uint8 RGB [H, W, 3]")
    if prediction.shape == reference.shape:
        return prediction
    from fujinsplat.capture import area_resize
    from fujinsplat.capture.cameras import same_aspect

    (height, width), (high, wide) = prediction.shape[:2], reference.shape[:2]
    if not same_aspect((width, height), (wide, high)) or not 1 / LARGEST <= height / high <= LARGEST:
        raise UserError(
            f"a render of {_size(prediction)} cannot stand for a reference of {_size(reference)}: the shapes differ, "
            f"or one is more than {LARGEST} times larger; render it again at the reference's size"
        )
    resized = area_resize(prediction, width=reference.shape[1], height=reference.shape[0])
    return np.clip(np.rint(resized), 0, 255).astype(np.uint8)


@reader("picture", "make it again")
def read_picture(path: Path) -> np.ndarray:
    """An 8-bit RGB picture file as uint8 `[H, W, 3]`."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            check_size(path, *picture.size, "make it again")
            if picture.mode not in ("RGB", "RGBA", "L", "P"):
                raise UserError(f"{path} holds {picture.mode} pixels; scores need an 8-bit RGB picture")
            return np.asarray(picture.convert("RGB"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; render it first") from None
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path} is not a readable picture ({error}); make it again") from None


def _size(picture: np.ndarray) -> str:
    return f"{picture.shape[1]}x{picture.shape[0]}"
