"""Expert fitting on a scene whose smoke is known, and its parts."""

import numpy as np
import pytest
import torch

from fujinsplat import flow
from fujinsplat.actions.fit import draw_pixels, fit, fit_scene, sample
from fujinsplat.capture import SourceViews
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import ActionsSettings
from fujinsplat.flow.photometric import Target, photometric, plain
from fujinsplat.isp import load

QUICK = ActionsSettings(steps=120, pixels=600)


@pytest.fixture(scope="module")
def views(scene):
    return load(scene.base), SourceViews(scene.source), SourceViews(scene.clean)


@pytest.fixture(scope="module")
def fitted(views):
    return fit_scene(*views, QUICK, 7, 16, scene="Mine")


def test_fitted_actions_bring_every_view_near_its_clean_twin(fitted, views):
    _, source, clean = views
    from fujinsplat.evaluate.protocol import psnr

    before = [psnr(source.rgb(stem), clean.rgb(stem)) for stem in fitted.stems]
    assert fitted.stems == source.stems and fitted.action.shape == (4, 573)
    assert all(after > start + 8 for start, after in zip(before, fitted.extra["psnr"].tolist(), strict=True))
    assert fitted.extra["loss"].shape == (4,) and (fitted.extra["loss"] > 0).all()


def test_the_same_seed_gives_the_same_actions(fitted, views):
    again = fit_scene(*views, QUICK, 7, 16, scene="Mine")
    assert torch.equal(again.action, fitted.action)


def test_a_view_is_fitted_alike_in_any_company_and_order(views):
    samples = sample(*views, QUICK)
    together, _ = fit(samples.base_encoded, samples.clean_encoded, QUICK)
    backwards, _ = fit(samples.base_encoded.flip(0), samples.clean_encoded.flip(0), QUICK)
    alone, _ = fit(samples.base_encoded[2:3], samples.clean_encoded[2:3], QUICK)
    assert torch.equal(backwards.flip(0), together)
    torch.testing.assert_close(alone[0], together[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 8), (9, 22)])
def test_other_capacities_fit_as_well(views, shape):
    samples = sample(*views, QUICK)
    action, losses = fit(samples.base_encoded, samples.clean_encoded, QUICK, *shape)
    nothing, start = fit(samples.base_encoded, samples.clean_encoded, ActionsSettings(steps=0), *shape)
    assert action.shape == (4, flow.size(*shape)) and not nothing.any()
    assert (losses < 0.5 * start).all()


def test_pixels_follow_from_the_view_alone():
    first = draw_pixels("0007", 5000, 100, seed=195)
    assert np.array_equal(first, draw_pixels("0007", 5000, 100, seed=195)) and len(set(first)) == 100
    assert not np.array_equal(first, draw_pixels("0008", 5000, 100, seed=195))


def test_a_missing_twin_is_named(views, scene, tmp_path):
    import shutil

    from fujinsplat.core.files import read_json, write_json

    shutil.copytree(scene.clean, tmp_path / "clean")
    write_json(tmp_path / "clean" / "views.json", read_json(scene.clean / "views.json")[:-1])
    with pytest.raises(UserError, match=r"clean has no clean twin of 0004"):
        sample(views[0], views[1], SourceViews(tmp_path / "clean"), QUICK)


def test_the_one_pass_loss_is_the_formula():
    generator = torch.Generator().manual_seed(0)
    developed = torch.rand(3, 1500, 3, generator=generator) * 1.5 - 0.25
    target = Target(torch.rand(3, 1500, 3, generator=generator))
    results = []
    for loss in (photometric, plain):
        z = developed.clone().requires_grad_()
        value = loss(z, target, 0.25, 0.01)
        (value * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
        results.append((value.detach(), z.grad))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-5, atol=0)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-4, atol=1e-9)
