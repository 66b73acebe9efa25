"""Known smoke is found, what is not determined is said, and nothing depends on chance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from smoky import AIRLIGHT, capture

from fujinsplat.core.errors import UserError
from fujinsplat.smoke import Smoke, SmokeSettings, estimate, point_depth


@pytest.fixture(scope="module")
def found(smoky):
    return estimate(smoky.views, smoky.cameras, smoky.depth, smoky.trusted)


def test_known_airlight_and_transmission_are_found(smoky, found):
    assert np.abs(found.colour.numpy() / AIRLIGHT - 1).max() < 0.005
    error = (found.transmission / smoky.transmission).log()
    assert abs(float(error.median())) < 0.06 and float(error.std()) < 0.08
    assert found.statistics["determined"] and found.keep == 1
    before = (smoky.views - smoky.clean).abs().mean()
    assert (found.clear() - smoky.clean).abs().mean() < before / 5


def test_depth_from_points_serves_as_well(smoky):
    points = point_depth(smoky.points, smoky.cameras)
    assert 0.5 < float(points.trusted.float().mean()) <= 1
    off = (points.z / smoky.depth).log().abs()[points.trusted]
    assert float(off.median()) < 0.03
    found = estimate(smoky.views, smoky.cameras, points.z, points.trusted)
    error = (found.transmission / smoky.transmission).log()[points.trusted]
    assert float(error.std()) < 0.15


def test_smoke_that_is_denser_to_one_side_of_the_picture_is_followed(smoky):
    """Its growth with distance changes sides from view to view, which one slope per view cannot say."""
    far = smoky.depth / smoky.depth.median()
    x = torch.linspace(-1, 1, far.shape[2])
    side = torch.tensor([(-1.0) ** view for view in range(len(far))])[:, None, None]
    T = torch.exp(-(0.3 + (0.5 + 0.4 * side * x) * far))
    views = smoky.clean * T[..., None] + torch.tensor(AIRLIGHT, dtype=torch.float32) * (1 - T[..., None])

    def error(settings):
        found = estimate(views, smoky.cameras, smoky.depth, smoky.trusted, settings)
        return float((found.transmission / T).log().std())

    assert error(SmokeSettings()) < 0.8 * error(SmokeSettings(slopes=(1, 1)))


def test_points_say_nothing_about_what_lies_beside_them(smoky):
    """The wall's points gone, all that is left around the square are its own: the wall must not take their depth."""
    square = smoky.points[smoky.points[:, 2] < 3]
    assert len(square) < len(smoky.points)
    points = point_depth(square, smoky.cameras)
    wrong = (points.z / smoky.depth).log().abs() > 0.1
    assert float(wrong.float().mean()) > 0.5
    assert float((points.trusted & wrong).float().sum() / wrong.sum()) < 0.05
    assert float(points.trusted[~wrong].float().mean()) > 0.5


def test_levels_of_the_airlight_are_told_from_transmission(smoky):
    level = torch.tensor([1.03, 0.97, 1.01, 0.95, 0.99, 1.05, 0.96, 1.02, 0.98, 1.04])
    veil = torch.tensor(AIRLIGHT, dtype=torch.float32) * (1 - smoky.transmission[..., None])
    views = smoky.views + veil * (level[:, None, None, None] - 1)
    found = estimate(views, smoky.cameras, smoky.depth, smoky.trusted)
    assert np.corrcoef(found.level[:, 0], level)[0, 1] > 0.9
    assert float((found.level[:, 0] - level).abs().mean()) < 0.025


@pytest.mark.parametrize("change", [{"airlight": "brightest"}, {"depth": "none"}, {"grid": (1, 1)}, {"consensus": 0.1}])
def test_every_step_of_the_estimate_counts(smoky, found, change):
    """The rows of the ablation: each leaves one step out, and the known smoke is found less well."""
    without = estimate(smoky.views, smoky.cameras, smoky.depth, smoky.trusted, SmokeSettings(**change))
    off = [(smoke.clear() - smoky.clean).abs().mean() for smoke in (found, without)]
    assert off[1] > 1.05 * off[0]
    assert change != {"depth": "none"} or float(without.slope.max()) < 1e-9


def test_the_same_input_gives_the_same_bits(smoky, found):
    again = estimate(smoky.views, smoky.cameras, smoky.depth, smoky.trusted)
    assert torch.equal(again.grid, found.grid) and torch.equal(again.colour, found.colour)


def test_an_earlier_estimate_is_a_good_start(smoky, found):
    again = estimate(smoky.views, smoky.cameras, smoky.depth, smoky.trusted, previous=found)
    assert float((again.transmission / found.transmission).log().abs().mean()) < 0.02


def test_a_larger_picture_gives_the_same_smoke(smoky, found):
    large = smoky.views.repeat_interleave(2, 1).repeat_interleave(2, 2)
    depth = smoky.depth.repeat_interleave(2, 1).repeat_interleave(2, 2)
    cameras = [camera.scaled(2 * camera.width, 2 * camera.height) for camera in smoky.cameras]
    from fujinsplat.smoke import SmokeSettings

    again = estimate(large, cameras, depth, torch.ones_like(depth, dtype=torch.bool), SmokeSettings(width=96))
    assert float((again.transmission[:, ::2, ::2] / found.transmission).log().abs().mean()) < 0.03


def test_it_comes_back_from_its_file(smoky, found, tmp_path):
    found.save(tmp_path / "smoke.safetensors")
    read = Smoke.load(tmp_path / "smoke.safetensors")
    assert read.stems == found.stems and read.statistics == found.statistics
    assert float((read.transmission - found.transmission).abs().max()) < 1e-3
    assert torch.allclose(read.clear_of(2, smoky.views[2]), found.clear_of(2), atol=0.02)
    with pytest.raises(UserError, match="holds no pictures"):
        read.clear()
    found.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "smoke.safetensors").read_bytes()


def test_an_estimate_of_an_earlier_version_is_made_again(found, tmp_path):
    replace(found, slope=found.slope.mean((1, 2))).save(tmp_path / "old.safetensors")
    with pytest.raises(UserError, match="was made by an earlier version"):
        Smoke.load(tmp_path / "old.safetensors")


def test_still_smoke_is_not_taken_away():
    still = capture(change=0.0)
    found = estimate(still.views, still.cameras, still.depth, still.trusted)
    assert found.keep == 0 and not found.statistics["determined"]
    assert "hardly changes" in found.statistics["words"][0]
    assert torch.allclose(found.clear(), still.views, atol=1e-6)


def refused(capture, match, views=None, depth=None, trusted=None, count=None):
    views = capture.views if views is None else views
    trusted = capture.trusted if trusted is None else trusted
    n = count or len(views)
    with pytest.raises(UserError, match=match) as error:
        estimate(views[:n], capture.cameras[:n], capture.depth[:n], trusted[:n])
    assert "\n" not in str(error.value)


def test_what_holds_no_smoke_is_refused_in_a_sentence(smoky):
    refused(smoky, "one view", count=1)
    refused(smoky, "the same picture", views=smoky.views[:1].expand_as(smoky.views))
    refused(smoky, "'003' is saturated", views=_with(smoky.views, 3, 1.7))
    refused(smoky, "'004' is black", views=_with(smoky.views, 4, 0.0))
    refused(smoky, "'005' holds values", views=_with(smoky.views, 5, float("nan")))
    refused(smoky, "no pixel has a depth", trusted=~smoky.trusted)
    few = torch.zeros_like(smoky.trusted)
    few[:, 30:33, 40:43] = True
    refused(smoky, "seen alike by two views", trusted=few)


def _with(views, index, value):
    views = views.clone()
    views[index] = value
    return views


def test_without_points_there_is_no_depth(smoky):
    with pytest.raises(UserError, match="no points"):
        point_depth(np.zeros((0, 3)), smoky.cameras)
    with pytest.raises(UserError, match="at most 10 points"):
        point_depth(smoky.points[:10], smoky.cameras)
