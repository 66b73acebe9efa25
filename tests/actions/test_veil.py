"""Contrast and pivot of one pair, recovered where they are known."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fujinsplat.actions import veil
from fujinsplat.actions.measure import fit_pair
from fujinsplat.core.color import decode

level = st.floats(0.05, 0.6)
pivots = st.tuples(level, level, level)
contrasts = st.floats(0.12, 0.95)


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    """A photograph in linear light, as bright as a RAW: float64 [128, 128, 3]."""
    from skimage.data import astronaut

    return 0.5 * decode(astronaut()[::4, ::4] / 255.0) + 0.002


def angle(a, b) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.degrees(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))))


@settings(max_examples=40, deadline=None)
@given(t=contrasts, pivot=pivots)
def test_a_planted_veil_is_recovered(clean, t, pivot):
    found = veil.fit(veil.Veil(t, pivot, 0.0).over(clean), clean)
    assert found.t == pytest.approx(t, rel=1e-9) and found.residual < 1e-12
    np.testing.assert_allclose(found.pivot, pivot, rtol=1e-7)


@settings(max_examples=40, deadline=None)
@given(t=contrasts, pivot=pivots, seed=st.integers(0, 1000))
def test_noise_costs_less_than_5_percent_and_2_degrees(clean, t, pivot, seed):
    """Shot and read noise of a sensor at ISO 800 or so, 14 bits, in both captures independently.

    Where smoke adds less than a tenth of its light, its colour is that much less certain.
    """
    random = np.random.default_rng(seed)

    def noisy(linear):
        electrons = 10_000
        shot = random.poisson(np.maximum(linear, 0) * electrons) / electrons
        return np.clip(np.round((shot + random.normal(0, 4 / electrons, linear.shape)) * 16383) / 16383, 0, 1)

    found = veil.fit(noisy(veil.Veil(t, pivot, 0.0).over(clean)), noisy(clean))
    assert found.t == pytest.approx(t, rel=0.05)
    assert angle(found.pivot, pivot) < 2 * max(1.0, 0.1 / (1 - t))


@settings(max_examples=20, deadline=None)
@given(t=contrasts, pivot=pivots, seed=st.integers(0, 1000))
def test_pixels_may_move_between_the_captures(clean, t, pivot, seed):
    """Percentiles are matched, not pixels."""
    hazy = veil.Veil(t, pivot, 0.0).over(clean).reshape(-1, 3)
    shuffled = np.random.default_rng(seed).permutation(hazy)
    assert veil.fit(shuffled, clean.reshape(-1, 3)) == veil.fit(hazy, clean.reshape(-1, 3))
    moved = np.roll(hazy.reshape(clean.shape), 2, axis=1)
    assert veil.fit(moved, clean).t == pytest.approx(t, rel=0.03)


def test_clipped_highlights_do_not_bend_the_fit(clean):
    """A tenth of the clean pixels is saturated: there H is not t J + (1 - t) c, and those blocks are not used."""
    bright = 4 * clean
    hazy = np.clip(veil.Veil(0.4, (0.3, 0.32, 0.35), 0.0).over(bright), 0, 1)
    found = veil.fit(hazy, np.clip(bright, 0, 1))
    assert (bright > 1).mean() > 0.1
    assert found.t == pytest.approx(0.4, rel=0.01) and angle(found.pivot, (0.3, 0.32, 0.35)) < 0.5


def test_degenerate_pairs_are_refused_with_their_reason(clean):
    black = np.zeros_like(clean)
    cases = {
        "no contrast": (clean, np.full_like(clean, 0.3)),
        "saturated": (clean, np.ones_like(clean)),
        "only 0% of the picture": (clean, black),
        r"t = 1\.25 lies outside": (1.25 * clean, clean),
        "no veil": (clean, clean),
        "not positive": (0.5 * clean, clean),
    }
    for reason, (hazy, target) in cases.items():
        with pytest.raises(veil.Degenerate, match=reason):
            fit_pair(hazy, target)


def test_level_direction_and_ratio(clean):
    fit = fit_pair(veil.Veil(0.5, (0.1, 0.2, 0.3), 0.0).over(clean), clean)
    np.testing.assert_allclose(fit.direction, [0.5, 1, 1.5])
    assert fit.level == pytest.approx(0.2) and fit.ratio == pytest.approx(0.2 / fit.clean_median)
