"""The observability study: the sharpest test of the whole flow is how many directions it has."""

import numpy as np
import pytest
import torch

from fujinsplat import flow
from fujinsplat.analysis import observability
from fujinsplat.analysis.observability import IDENTITY_DIRECTIONS, probe_jacobian, published_pairs, rank, visible
from fujinsplat.core.settings import ActionsSettings, AnalysisSettings


@pytest.fixture(scope="module")
def identity_jacobian() -> torch.Tensor:
    return probe_jacobian(flow.zeros(), 7, 16, 9)


def test_72_directions_move_the_probes_at_the_identity(identity_jacobian):
    assert identity_jacobian.shape == (2187, 573)
    assert rank(identity_jacobian) == IDENTITY_DIRECTIONS == 72


def test_21_come_from_curves_and_51_from_couplings(identity_jacobian):
    assert rank(identity_jacobian[:, :384]) == 21
    assert rank(identity_jacobian[:, 384:]) == 54 - 3


def test_couplings_without_their_constants_would_give_the_published_69(identity_jacobian):
    """Centred knots: each conditioner loses its constant, so 6 x 8 shapes stay beside the curves' 21."""
    couplings = identity_jacobian[:, 384:].reshape(-1, 7, 3, 9)
    centred = couplings - couplings.mean(dim=-1, keepdim=True)
    both = torch.cat([identity_jacobian[:, :384], centred.reshape(len(couplings), -1)], dim=1)
    assert rank(both) == 69


def test_the_jacobian_is_that_of_the_fast_operator():
    torch.manual_seed(0)
    action, step = 0.1 * torch.randn(573, dtype=torch.float64), torch.randn(573, dtype=torch.float64)
    probes = 0.98 * flow.probe_grid(3, dtype=torch.float64) + 0.007
    reference = torch.func.jvp(lambda p: observability.reference.apply(probes[None], p[None]), (action,), (step,))[1]
    quotient = (flow.apply(probes, action + 1e-7 * step) - flow.apply(probes, action - 1e-7 * step)) / 2e-7
    torch.testing.assert_close(reference[0], quotient, rtol=1e-5, atol=1e-5)


def test_one_quantisation_level_is_the_threshold():
    level = np.sqrt(2187) / 255
    assert visible(np.array([3 * level, 1.001 * level, 0.999 * level, 0]), 2187) == 2


def test_the_study_on_a_scene(scene):
    from fujinsplat.actions.fit import fit_scene
    from fujinsplat.capture import SourceViews
    from fujinsplat.isp import load

    how = ActionsSettings(steps=60, pixels=400)
    settings = AnalysisSettings(refits=2)
    views = SourceViews(scene.source), SourceViews(scene.clean), load(scene.base)
    experts = {"Mine": fit_scene(load(scene.base), *views[:2], how, 3, 8)}
    rows, result, spectra = observability.study({"Mine": views}, experts, settings, how)
    assert result["identity_directions"] == 72 and set(spectra) == {"identity", "Mine"}
    (refit,) = result["refits"].values()
    assert len(refit["pairs"]) == 1 and len(refit["target_psnr"]) == 2
    # the refits agree on the picture more than in coefficients
    assert refit["pairs"][0]["output_psnr"] > 20 and abs(refit["pairs"][0]["cosine"]) < 0.9
    assert rows[1]["refitted"].startswith("Mine view")
    again = observability.study({"Mine": views}, experts, settings, how)
    assert again[1] == result


def test_the_papers_own_pairs_are_refitted_on_its_scenes():
    from types import SimpleNamespace

    views = lambda *stems: (SimpleNamespace(stems=list(stems)), None, None)  # noqa: E731
    scenes = {"Hinoki": views("DSC0010", "DSC0011"), "Tsubaki": views("0003", "0013")}
    assert published_pairs(scenes) == [("Hinoki", "DSC0011"), ("Tsubaki", "0003")]
    assert published_pairs({"Hinoki": views("0011")}) == [] == published_pairs({"Hinoki": views(), "Tsubaki": views()})
