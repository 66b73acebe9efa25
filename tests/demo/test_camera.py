"""The camera's own rendering: shaped like a maker's, nothing to do with the Base ISP, reproducible from the RAW."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from fujinsplat.demo import camera, sensor


def test_shares_no_code_with_the_base_isp():
    code = "import sys, fujinsplat.demo.world, fujinsplat.demo.external as _; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "fujinsplat.demo.camera" in loaded
    assert "fujinsplat.isp" not in loaded and "fujinsplat.flow" not in loaded and "fujinsplat.splat" not in loaded


def test_tone_is_an_s_curve_with_roll_off():
    x = np.geomspace(1e-4, 20, 400)
    y = camera.tone(x)
    assert (np.diff(y) >= 0).all() and y[0] < 0.02 and y[-1] == pytest.approx(1, abs=1e-6)
    slope = np.gradient(np.log(np.maximum(y, 1e-6)) * 2.2, np.log(x))
    middle = slope[np.searchsorted(x, 0.1)]
    assert middle > 1.05, "contrast in the middle tones"
    assert slope[np.searchsorted(x, 1.0)] < 0.6 * middle, "highlights roll off"


def test_neutral_stays_neutral_and_hues_turn_a_little():
    grey = np.full((3, 3), 1.0) * np.array([[0.05], [0.2], [0.8]])
    assert camera._twist(grey) == pytest.approx(grey)
    colours = np.array([[0.5, 0.1, 0.1], [0.1, 0.5, 0.1], [0.1, 0.1, 0.5], [0.4, 0.4, 0.1]])
    turned = camera._twist(colours)
    assert turned.mean(-1) == pytest.approx(colours.mean(-1))
    assert 0.005 < np.abs(turned - colours).max() < 0.08


def test_demosaic_keeps_flat_colour_and_ramps():
    rgb = np.broadcast_to(np.array([0.3, 0.5, 0.2]), (20, 30, 3)) + np.linspace(0, 0.2, 30)[None, :, None]
    mosaic = rgb[..., 1].copy()
    mosaic[::2, ::2], mosaic[1::2, 1::2] = rgb[::2, ::2, 0], rgb[1::2, 1::2, 2]
    inner = np.s_[3:-3, 3:-3]
    assert camera.demosaic(mosaic)[inner] == pytest.approx(rgb[inner], abs=1e-9)


def test_blown_highlights_are_white():
    picture = camera.develop(np.full((16, 16), sensor.WHITE, np.uint16))
    assert (picture >= 253).all()


def test_a_map_of_single_pixels_reproduces_the_rendering(scene, decode):
    """The Base ISP works pixel by pixel, so the camera's neighbourhood operations must stay small beside it."""
    features, targets = [], []
    for path in sorted((scene / "train").glob("*.dng")):
        x = np.cbrt(np.maximum(decode(path), 0)).reshape(-1, 3)
        columns = [np.ones(len(x))]
        for degree in range(1, 6):
            columns += [np.prod(x[:, list(c)], 1) for c in itertools.combinations_with_replacement(range(3), degree)]
        features.append(np.stack(columns, 1))
        targets.append(np.asarray(Image.open(path.with_suffix(".JPG"))).reshape(-1, 3) / 255)
    features, targets = np.concatenate(features), np.concatenate(targets)
    fitted = features @ np.linalg.lstsq(features, targets, rcond=None)[0]
    assert -10 * np.log10(np.mean((fitted - targets) ** 2)) > 35
