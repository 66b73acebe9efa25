"""The rank-one study, where the structure of the residual is known."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from fujinsplat.analysis import rank_one
from fujinsplat.analysis.rank_one import AngleCounts, angle, pairwise_median, spectrum
from fujinsplat.capture import SourceViews
from fujinsplat.core.metrics import psnr
from fujinsplat.isp import load

component = st.floats(-1, 1)


@settings(max_examples=50, deadline=None)
@given(st.tuples(component, component, component), st.integers(0, 1000))
def test_a_planted_direction_carries_all_energy(direction, seed):
    assume(np.linalg.norm(direction) > 0.01)
    strength = np.random.default_rng(seed).normal(size=500)
    found = spectrum(np.outer(strength, direction))
    assert found.rho[0] == pytest.approx(1, abs=1e-12)
    assert angle(found.direction, np.array(direction)) < 1e-4 and found.direction.sum() >= 0


def test_two_planted_directions_need_two():
    random = np.random.default_rng(0)
    residual = np.outer(random.normal(size=4000), [1, 0, 0]) + 0.5 * np.outer(random.normal(size=4000), [0, 1, 0])
    found = spectrum(residual)
    assert found.rho[0] == pytest.approx(0.8, abs=0.02) and found.rho[1] == pytest.approx(1)


def test_a_residual_without_structure_has_a_third():
    assert spectrum(np.random.default_rng(0).normal(size=(100_000, 3))).rho[0] == pytest.approx(1 / 3, abs=0.01)


def test_no_smoke_is_no_error():
    assert spectrum(np.zeros((10, 3))).rho.tolist() == [1, 1, 1] and psnr(np.zeros(3), np.zeros(3)) == 100


def test_the_best_rank_one_error_is_what_rho_says():
    """Eckart-Young: ||R - R1||^2 / ||R||^2 = 1 - rho_1."""
    residual = np.random.default_rng(1).normal(size=(1000, 3)) * [3, 1, 0.5]
    found = spectrum(residual)
    rest = residual - np.outer(residual @ found.direction, found.direction)
    assert (rest**2).sum() / (residual**2).sum() == pytest.approx(1 - found.rho[0])


def test_pooled_angles_are_the_quantiles():
    angles = np.random.default_rng(2).uniform(0, 30, 10_000)
    counts = AngleCounts()
    for part in np.array_split(angles, 7):
        counts.add(part)
    assert counts.quantile(0.5) == pytest.approx(np.median(angles), abs=0.02)
    assert counts.quantile(0.9) == pytest.approx(np.quantile(angles, 0.9), abs=0.02)


def test_directions_are_compared_as_lines():
    assert pairwise_median(np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0]])) == 90
    assert pairwise_median(np.array([[1.0, 0, 0]])) is None


class Backwards(SourceViews):
    """The same views, listed in another order."""

    def __init__(self, folder):
        super().__init__(folder)
        self.stems = self.stems[::-1]


def test_stem_order_changes_nothing(scene):
    base = load(scene.base)
    forwards = rank_one.study({"Mine": (SourceViews(scene.source), SourceViews(scene.clean), base)})
    backwards = rank_one.study({"Mine": (Backwards(scene.source), Backwards(scene.clean), base)})
    assert forwards[:2] == backwards[:2]


def test_the_scene_s_smoke_points_to_its_pivot(scene):
    """All four views share one pivot: dense ones point to it, and removing the direction helps every one."""
    views = SourceViews(scene.source), SourceViews(scene.clean), load(scene.base)
    rows, result, directions = rank_one.study({"Mine": views})
    front = views[2].front_matrix().detach().double().numpy()
    pivot = np.array([0.05, 0.11, 0.07]) @ front
    assert angle(directions["Mine"]["p2"][0], pivot) < 15
    assert result["rho1_p1"] > 0.9 and result["psnr_after"] > result["psnr_before"] + 8
    assert rows[-1]["scene"] == "equal-scene mean" and rows[0]["rho1_p1"] == rows[-1]["rho1_p1"]
