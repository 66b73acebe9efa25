"""PSNR and SSIM, once."""

import numpy as np

from fujinsplat.core.errors import UserError

LIMIT = 100.0  # dB: what equal pictures get where a plain number is wanted
SSIM_WINDOW = 7


def unit(picture: np.ndarray) -> np.ndarray:
    """An 8-bit picture as float64 in [0, 1]; anything else as it is."""
    return picture.astype(np.float64) / 255 if picture.dtype == np.uint8 else picture


def psnr(picture, reference, limit: float = LIMIT) -> float:
    """Peak signal-to-noise ratio at data range 1 (dB), at most `limit`: of numpy arrays or torch tensors.

    8-bit pictures are divided by 255 first; scikit-image's number to the last bit, without its import of scipy.stats.
    """
    if isinstance(picture, np.ndarray):
        return psnr_of_error(float(np.mean((unit(reference) - unit(picture)) ** 2)), limit)
    return psnr_of_error(float((picture.detach() - reference.detach()).square().mean()), limit)


def psnr_of_error(mean_square: float, limit: float = LIMIT) -> float:
    """The same from a mean squared error."""
    return limit if mean_square <= 0 else min(limit, float(10 * np.log10(1.0 / mean_square)))


def ssim(picture: np.ndarray, reference: np.ndarray) -> float:
    """scikit-image's SSIM at data range 1: uniform 7x7 window, sample covariance, mean over the channels."""
    from skimage.metrics import structural_similarity

    height, width = reference.shape[:2]
    if min(height, width) < SSIM_WINDOW:
        raise UserError(f"pictures of {width} x {height} pixels are smaller than SSIM's 7x7 window; score larger ones")
    found = structural_similarity(unit(reference), unit(picture), data_range=1.0, channel_axis=-1)
    assert not isinstance(found, tuple), "no gradient and no map were asked for"
    return float(found)
