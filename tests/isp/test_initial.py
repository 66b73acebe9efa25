"""The initial state: what regressions recover of a simulated camera, and what they refuse."""

import numpy as np
import pytest
import torch

from fujinsplat.core import color
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import IspSettings
from fujinsplat.isp import develop, initial, materialize, reference, samples, tonefit

from .camera import CAMERA_MATRIX, SimulatedViews

SETTINGS = IspSettings(warmup_steps=0, joint_steps=0)


def psnr(picture, camera):
    return 10 * np.log10(255**2 / max(np.mean((picture.astype(float) - camera) ** 2), 1e-9))


def fidelity(base, views):
    return min(psnr(materialize(develop(base, views.raw(s))), views.rgb(s)) for s in views.stems)


def initial_base(views, settings=SETTINGS):
    return initial.initial_state(samples.take(views, settings), settings, "here")


def test_curve_regression_recovers_an_increasing_curve_and_leads_black_to_black():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.8, 3.5, 20000)  # hazy pictures hold no dark pixels
    true = lambda latent: latent + 0.8 * np.sin(latent / 2)  # noqa: E731
    curve = tonefit.fit_curve(x, true(x) + 0.02 * rng.normal(size=x.size), np.ones_like(x))
    assert (np.diff(curve) > 0).all() and curve[0] == -8 and curve[-1] == pytest.approx(8)
    seen = np.linspace(0.9, 3.4, 50)
    assert np.abs(tonefit.apply_curve(curve, seen) - true(seen)).max() < 0.01
    assert abs(tonefit.apply_curve(curve, np.zeros(1))[0]) < 0.05
    assert np.allclose(tonefit.invert_curve(curve, tonefit.apply_curve(curve, seen)), seen)


def test_curve_regression_pools_what_runs_against_it():
    x = np.linspace(0, 3, 3000)
    curve = tonefit.fit_curve(x, -x, np.ones_like(x))
    assert (np.diff(curve) > 0).all()


def test_curve_parameters_reproduce_their_curve():
    curve = tonefit.NODES + 0.9 * np.sin(np.pi * tonefit.NODES / 8) * 2
    curve[200:210] = curve[200]  # a flat stretch
    curve = np.maximum.accumulate(curve) + 0.06 * tonefit.STEP * np.arange(257)
    curve = -8 + 16 * (curve - curve[0]) / (curve[-1] - curve[0])
    parameter = torch.from_numpy(np.stack([tonefit.curve_parameter(curve)] * 3))
    made = tonefit.NODES + reference.curve_deviation(parameter, 16.0).numpy()
    assert np.abs(made - curve).max() < 1e-6


def test_initial_state_renders_like_the_camera():
    views, clean = SimulatedViews(), SimulatedViews(hazy=False)
    base = initial_base(views)
    assert fidelity(base, views) > 50
    assert fidelity(base, clean) > 32  # colours and darks that haze never showed
    plain = initial_base(views, SETTINGS.model_copy(update={"initial": "metadata"}))
    assert np.allclose(plain.base_matrix.numpy(), CAMERA_MATRIX.T, atol=1e-6)
    assert not plain.g9.any() and plain.tone.any()
    assert 35 < fidelity(plain, views) < fidelity(base, views)


def test_one_view_is_enough():
    views = SimulatedViews(count=1)
    assert fidelity(initial_base(views), views) > 50


def test_missing_colour_matrix_is_fitted():
    views = SimulatedViews(matrix=None)
    for kind in ("metadata", "fitted"):
        base = initial_base(views, SETTINGS.model_copy(update={"initial": kind}))
        assert fidelity(base, views) > 45
        assert np.allclose(base.base_matrix.sum(dim=0), 1, atol=1e-5)  # white-balanced grey stays grey
        assert not np.allclose(base.base_matrix, np.eye(3), atol=0.1)


def test_a_channel_clipped_in_half_the_pixels_does_not_spoil_the_rest():
    views = SimulatedViews()
    for stem in views.stems:
        raw = views.raw(stem)
        level = np.median(raw[..., 1])
        gained = np.minimum(raw / level * 0.999, 1).astype(np.float32)  # green saturates in every second pixel
        views.replace(stem, gained)
        assert 0.4 < (gained[..., 1] >= 0.99).mean() < 0.6
    base = initial_base(views)
    errors = []
    for stem in views.stems:
        picture, whole = materialize(develop(base, views.raw(stem))), views.raw(stem).max(axis=-1) < 0.98
        errors.append((picture[whole].astype(float) - views.rgb(stem)[whole]) ** 2)
    assert 10 * np.log10(255**2 / np.mean(np.concatenate(errors))) > 38
    assert fidelity(base, views) > 28


@pytest.mark.parametrize("level", [0, 1])
def test_white_and_black_views_are_no_obstacle(level):
    views = SimulatedViews(count=1)
    views.replace("0000", np.full_like(views.raw("0000"), level), np.full_like(views.rgb("0000"), 255 * level))
    base = initial_base(views)
    assert all(torch.isfinite(tensor).all() for tensor in base.state_dict().values())
    assert fidelity(base, views) > 40


def test_metadata_that_cannot_be_are_caught():
    views = SimulatedViews(count=1, matrix=np.zeros((3, 3)))
    assert fidelity(initial_base(views), views) > 45  # as without a matrix
    views.white_balance = lambda stem: np.array([2.0, 1.0, 0.0])
    with pytest.raises(UserError, match=r"view 0000 of simulated/source has the white balance \[2.0, 1.0, 0.0\]"):
        initial_base(views)


@pytest.mark.parametrize("spoil", ["negative", "shuffled", "other"])
def test_pictures_that_no_tone_map_explains_are_refused(spoil):
    views = SimulatedViews(hazy=False)
    rgb = views.rgb("0001")
    wrong = {"negative": 255 - rgb, "shuffled": rgb[::-1, ::-1].copy(), "other": views.rgb("0002")}[spoil]
    views.replace("0001", views.raw("0001"), wrong)
    with pytest.raises(UserError, match=r"view 0001 of here: no increasing tone map .* of one shot"):
        initial_base(views)


def test_a_nearly_uniform_view_is_not_refused():
    views = SimulatedViews(count=1)
    rng = np.random.default_rng(0)
    raw = np.clip(0.2 + 0.002 * rng.normal(size=(96, 128, 3)), 0, 1).astype(np.float32)
    rgb = np.clip(140 + 2 * rng.normal(size=raw.shape), 0, 255).astype(np.uint8)  # smoke and two kinds of noise
    views.replace("0000", raw, rgb)
    assert fidelity(initial_base(views), views) > 35


def test_raw_and_rgb_of_different_sizes_are_refused():
    views = SimulatedViews(count=1)
    views.replace("0000", views.raw("0000"), np.repeat(np.repeat(views.rgb("0000"), 2, 0), 2, 1))
    with pytest.raises(UserError, match=r"RAW is 128x96 and camera RGB 256x192; decode the scene again"):
        initial_base(views)


def test_no_views_are_refused():
    views = SimulatedViews(count=1)
    views.stems = []
    with pytest.raises(UserError, match="has no views"):
        initial_base(views)


def test_sensitivity_is_the_slope_of_the_encoding_in_the_latent():
    latent = np.linspace(0.01, 3.6, 100)
    encoded = lambda l: color.encode(reference.SCALE * np.sinh(l))  # noqa: E731
    slope = (encoded(latent + 1e-6) - encoded(latent - 1e-6)) / 2e-6
    assert np.allclose(tonefit.sensitivity(reference.SCALE * np.sinh(latent)), slope, rtol=1e-3)


def test_saturated_colours_without_a_common_brightness_are_not_refused():
    views = SimulatedViews(count=1)
    y, x = np.mgrid[0:96, 0:128] / 128
    waves = [np.sin(7 * x + a) * np.cos(9 * y + b) for a, b in ((0, 1), (2, 4), (5, 3))]
    views.replace("0000", (0.05 + 0.045 * np.stack(waves, axis=-1)).astype(np.float32))
    initial_base(views)
