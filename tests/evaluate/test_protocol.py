"""Scores of planted pictures whose numbers are known in closed form, and LPIPS values measured with lpips itself."""

import math

import numpy as np
import pytest
from skimage.data import astronaut
from skimage.filters import gaussian

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate import Scorer, score
from fujinsplat.evaluate.perceptual import load_perceptual

WITHOUT_LPIPS = Scorer(None)


@pytest.fixture(scope="module")
def perceptual():
    found = load_perceptual(online=False)
    if found.network is None:
        pytest.skip(found.reason)
    return found


@pytest.mark.parametrize("offset", [1, 5, 16, 100])
def test_psnr_of_a_constant_offset(offset):
    reference = np.random.default_rng(offset).integers(0, 150, (24, 31, 3)).astype(np.uint8)
    found = WITHOUT_LPIPS((reference + offset).astype(np.uint8), reference)
    assert found["psnr"] == pytest.approx(20 * math.log10(255 / offset), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_psnr_is_that_of_scikit_image(seed):
    from skimage.metrics import peak_signal_noise_ratio

    first, second = np.random.default_rng(seed).integers(0, 256, (2, 17 + seed, 23, 3)).astype(np.uint8)
    assert WITHOUT_LPIPS(first, second)["psnr"] == peak_signal_noise_ratio(second / 255, first / 255, data_range=1.0)


@pytest.mark.parametrize("a, b", [(10, 200), (128, 140), (0, 255)])
def test_ssim_of_two_flat_pictures(a, b):
    """Without variance only the luminance term is left, with scikit-image's constant 0.01 at data range 1."""
    first, second = (np.full((16, 16, 3), value, np.uint8) for value in (a, b))
    x, y, c = a / 255, b / 255, 0.01**2
    assert WITHOUT_LPIPS(first, second)["ssim"] == pytest.approx((2 * x * y + c) / (x * x + y * y + c), abs=1e-12)


def test_ssim_is_the_mean_over_channels():
    reference = np.random.default_rng(0).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    prediction = reference.copy()
    prediction[..., 1] = 255 - prediction[..., 1]  # one channel spoilt, two perfect
    one = WITHOUT_LPIPS(np.repeat(prediction[..., 1:2], 3, -1), np.repeat(reference[..., 1:2], 3, -1))["ssim"]
    assert WITHOUT_LPIPS(prediction, reference)["ssim"] == pytest.approx((2 + one) / 3, abs=1e-12)


def test_equal_pictures_score_perfectly():
    picture = astronaut()[:64, :64]
    assert WITHOUT_LPIPS(picture, picture.copy()) == {"psnr": math.inf, "ssim": pytest.approx(1.0), "lpips": None}


def test_a_render_of_another_size_is_area_resized_to_the_reference():
    reference = np.random.default_rng(1).integers(0, 256, (12, 18, 3)).astype(np.uint8)
    twice = np.repeat(np.repeat(reference, 2, 0), 2, 1)  # every pixel four times: its area mean is itself
    assert WITHOUT_LPIPS(twice, reference)["psnr"] == math.inf
    checks = np.zeros((24, 36, 3), np.uint8)
    checks[::2] = 200  # rows of 200 and 0 average to 100
    assert WITHOUT_LPIPS(checks, np.full_like(reference, 100))["psnr"] == math.inf


@pytest.mark.parametrize("sigma, value", [(0.5, 0.0285), (1, 0.164), (2, 0.293), (4, 0.442), (8, 0.597)])
def test_lpips_of_the_blurred_astronaut(perceptual, sigma, value):
    picture = astronaut() / 255.0
    blurred = gaussian(picture, sigma, channel_axis=-1)
    assert perceptual.distance(blurred, picture) == pytest.approx(value, abs=6e-4 if value > 0.1 else 6e-5)


def test_score_gives_all_three_numbers(perceptual):
    picture = astronaut()[:96, :96]
    darker = (picture * 0.8).astype(np.uint8)
    found = score(darker, picture)
    assert set(found) == {"psnr", "ssim", "lpips"}
    assert 0 < found["lpips"] < 0.5
    assert found["lpips"] == pytest.approx(perceptual.distance(darker, picture), abs=1e-6)
    assert score(picture, picture)["lpips"] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(
    "picture, words",
    [
        (np.zeros((8, 8, 3)), "float64"),
        (np.zeros((8, 8), np.uint8), r"\[8, 8\]"),
        (np.zeros((5, 5, 3), np.uint8), "7x7"),
    ],
)
def test_what_cannot_be_scored_is_refused(picture, words):
    with pytest.raises(UserError, match=words):
        WITHOUT_LPIPS(picture, picture)
