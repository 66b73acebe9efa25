"""From captures to observations: what is stored replays, and nothing depends on shards, order or interruption."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open

from fujinsplat.actions.veil import fit
from fujinsplat.controller.network import summarise
from fujinsplat.core.color import decode, encode, luminance
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings
from fujinsplat.flow import apply, invert
from fujinsplat.synthesis import captures as captures_module
from fujinsplat.synthesis.captures import Captures, interpolate, reduced, sample
from fujinsplat.synthesis.draws import Draws, exposed, make_draws
from fujinsplat.synthesis.external import ExternalBase, Tone, tone_of
from fujinsplat.synthesis.observe import hazed, write_shard
from fujinsplat.synthesis.recipe import Recipe
from fujinsplat.synthesis.sheet import read_sheet, shard
from fujinsplat.synthesis.smoke import Smoke

from .conftest import make_population


def psnr(a, b) -> float:
    return float(-10 * np.log10(np.mean((np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2) + 1e-30))


def tensors(path) -> dict[str, np.ndarray]:
    with safe_open(str(path), "np") as stream:
        return {name: stream.get_tensor(name) for name in stream.keys()}


@pytest.fixture(scope="module")
def draws(sampled, population, matrix, settings) -> Draws:
    return make_draws(sampled, population, matrix, Recipe(), settings)


def test_kept_taps_give_the_summary_of_the_whole_picture(external, sampled):
    """Interpolating what is kept equals summarising the decoded capture, as real views are."""
    from fujinsplat.capture.raw import read_raw

    capture = read_sheet(external)[2]
    whole = read_raw(capture.path, CaptureSettings()).linear.astype(np.float32) / 65535
    row = sampled.names.index(capture.name)
    kept = interpolate(sampled.taps[row] / 65535, sampled.blend[row])
    np.testing.assert_allclose(kept, summarise(torch.from_numpy(whole)).numpy(), atol=2e-7)


def test_matrix_is_the_cameras_own(matrix):
    """The pooled least squares find the matrix that the files' metadata describe."""
    from fujinsplat.demo.sensor import CAMERA_TO_SRGB

    np.testing.assert_allclose(matrix, CAMERA_TO_SRGB.T, atol=0.12)


def test_external_base_inverts_in_closed_form(matrix):
    base = ExternalBase(matrix, Tone.exposure(3.2))
    raw = np.random.default_rng(0).uniform(0, 0.3, (500, 3))
    np.testing.assert_allclose(base.invert(base.develop(raw, [2.4, 1, 1.7]), [2.4, 1, 1.7]), raw, atol=1e-12)


def test_tone_of_a_calibrated_base_inverts(matrix):
    """A base's grey response, shoulder included, and back; the external base with it is still closed-form."""
    from fujinsplat.isp import BaseISP

    isp = BaseISP(1.2)
    with torch.no_grad():
        isp.tone.normal_(0, 0.05, generator=torch.Generator().manual_seed(0))
    tone = tone_of(isp, np.ones(3))
    assert (np.diff(tone.y) > 0).all()
    levels = np.linspace(-0.05, 1.4, 300)
    np.testing.assert_allclose(tone.invert(tone(levels)), levels, atol=1e-12)
    base = ExternalBase(matrix, tone)
    raw = np.random.default_rng(0).uniform(0, 0.3, (500, 3))
    np.testing.assert_allclose(base.invert(base.develop(raw, [2.4, 1, 1.7]), [2.4, 1, 1.7]), raw, atol=1e-9)


PUBLISHED = {"light": 0.0, "veil": "published", "smoke": "uniform", "tone": "exposure", "relight": 0.0}


def test_two_gains(sampled, population, matrix, settings):
    """Synthetic clean RAW is as bright as real clean RAW, and its development as bright as real base output."""
    draws = make_draws(sampled, population, matrix, Recipe(), settings.model_copy(update=PUBLISHED))
    np.testing.assert_allclose(draws.gain * sampled.median, population.raw.clean_median, rtol=1e-9)
    developed = [
        np.median(luminance(draws.base(row).linear(draws.exposed(row, pixels / 65535), sampled.white_balance[row])))
        for row, pixels in enumerate(sampled.pixels)
    ]
    assert np.median(developed) == pytest.approx(population.base.clean_median, rel=1e-6)


def test_draws_follow_the_paper(sampled, population, matrix, settings):
    """Published settings: t = exp(-beta d), with the population's median; level = ratio x the capture's median."""
    published = settings.model_copy(update=PUBLISHED)
    drawn = make_draws(sampled, population, matrix, Recipe(labels="published", coordinate="raw"), published)
    beta = -np.log(population.raw.t_median) / np.median(sampled.depth_range)
    np.testing.assert_allclose(drawn.contrast, np.exp(-beta * sampled.depth_range), rtol=1e-12)
    assert drawn.base(0).tone(np.array([1.0])) == 1
    for row in range(len(sampled)):
        clean = drawn.base(row).linear(drawn.exposed(row, sampled.pixels[row] / 65535), sampled.white_balance[row])
        level = population.raw.pivot_ratio * np.median(luminance(clean))
        assert drawn.pivot[row].mean() == pytest.approx(level, rel=1e-6)
        pair = next(p for p in population.pairs if f"{p.scene}/{p.view}" == drawn.source[row])
        direction = np.array(pair.raw.pivot) * np.array(pair.white_balance)
        np.testing.assert_allclose(drawn.pivot[row] / drawn.pivot[row].mean(), direction / direction.mean(), rtol=1e-9)


def test_observations_replay_from_disk(sampled, draws, tmp_path):
    """Action, base and end-to-end cycles of the stored arrays, recomputed here, reach 100 dB."""
    write_shard(draws, sampled, tmp_path / "0000.safetensors")
    stored = tensors(tmp_path / "0000.safetensors")
    for row, name in enumerate(sampled.names):
        index = draws.of(name)[0]
        label = torch.from_numpy(stored["label"][row]).double()
        action = apply(torch.from_numpy(stored["base"][row]).double(), label)
        assert psnr(action, stored["target"][row]) >= 100
        developed = draws.base(index).develop(stored["raw"][row].astype(np.float64), sampled.white_balance[row])
        assert psnr(developed, stored["base"][row]) >= 100
        assert psnr(apply(torch.from_numpy(developed), label), stored["target"][row]) >= 100
        _, _, hazy, raw = hazed(draws, index, sampled.colours(row), sampled.depth[row], sampled.place[row])
        for kind, colours in (("raw", raw), ("rgb", hazy)):
            expected = interpolate(sampled.split(colours)[1], sampled.blend[row])
            np.testing.assert_allclose(stored[f"{kind}_summary"][row], expected, atol=1e-6)


def made_of(draws: Draws, sampled: Captures, index: int) -> tuple[np.ndarray, ...]:
    row = sampled.names.index(draws.capture[index])
    return hazed(draws, index, sampled.colours(row), sampled.depth[row], sampled.place[row])


def test_uniform_smoke_is_the_veil_it_stands_for(sampled, population, matrix, settings):
    """The inverted fitted label is the physical veil: linear H = t J + (1 - t) c of the clamped clean picture."""
    uniform = settings.model_copy(update={"smoke": "uniform"})
    drawn = make_draws(sampled, population, matrix, Recipe(labels="fitted"), uniform)
    for index in range(len(drawn)):
        clean, clamped, hazy, _ = made_of(drawn, sampled, index)
        t = drawn.contrast[index]
        assert psnr(hazy, encode(t * decode(clamped) + (1 - t) * drawn.pivot[index])) > 38
        np.testing.assert_allclose(clamped, np.clip(clean, drawn.floor[index], drawn.ceiling[index]))


def test_room_smoke_is_measured_as_real_pairs_are(sampled, draws):
    """The label's (c, t) is the veil that percentiles find between the clean and the smoky base output, and applying
    the label brings the smoky picture closer to the clean one."""
    dense = [index for index in range(len(draws)) if draws.sigma[index] and not draws.light[index]]
    assert len(dense) >= 3
    for index in dense:
        clean, target, hazy, _ = made_of(draws, sampled, index)
        veil = fit(decode(hazy), np.clip(decode(clean), 0, 1))
        assert veil.t == pytest.approx(draws.contrast[index], rel=1e-3)
        np.testing.assert_allclose(veil.pivot, draws.pivot[index], rtol=1e-2)
        assert psnr(np.clip(target, 0, 1), np.clip(clean, 0, 1)) > psnr(hazy, np.clip(clean, 0, 1)) + 1


def test_room_smoke_thickens_with_depth_and_is_light_in_raw():
    """tau grows with depth by the given share; X = t X0 + (1 - t) A holds in RAW for every pixel."""
    raw, depth, place = np.full((3, 3), 0.2), np.array([0.5, 1.0, 2.0]), np.full((3, 2), 0.3)
    smoke = Smoke(0.7, 0.5, np.array([0.05, 0.1, 0.08]), np.zeros((4, 4)))
    through = np.exp(-0.7 * (0.5 + 0.5 * depth))
    np.testing.assert_allclose(
        smoke.over(raw, depth, place), through[:, None] * 0.2 + (1 - through)[:, None] * smoke.colour
    )
    uneven = Smoke(0.7, 0.0, smoke.colour, np.log(np.arange(1, 17).reshape(4, 4)))
    np.testing.assert_allclose(
        uneven.over(raw[:1], depth[:1], np.array([[1.0, 0.0]])),
        np.exp(-0.7 * 13) * 0.2 + (1 - np.exp(-0.7 * 13)) * smoke.colour[None],
    )


def test_relighting_stretches_about_the_median():
    raw = np.array([[0.02, 0.04, 0.03], [0.1, 0.2, 0.15], [0.3, 0.6, 0.45]])
    median = float(luminance(raw[1]))
    stretched = exposed(raw, 1.0, 1.5, median)
    np.testing.assert_allclose(stretched[1], raw[1])
    np.testing.assert_allclose(np.log(luminance(stretched[0]) / median), 1.5 * np.log(luminance(raw[0]) / median))
    np.testing.assert_allclose(stretched[0] / stretched[0, 1], raw[0] / raw[0, 1])
    assert exposed(raw, 10.0, 1.0, median).max() == 1


def test_shards_are_independent(external, sampled, draws, settings, tmp_path):
    """Sampling and observing in two shards gives the rows of one, bit for bit, in any order."""
    write_shard(draws, sampled, tmp_path / "all.safetensors")
    whole = tensors(tmp_path / "all.safetensors")
    first = 0
    for name in ("0001", "0000"):
        members = shard(read_sheet(external), settings.shard, name)
        sample(members, tmp_path / f"captures{name}.safetensors", settings)
        part = Captures.load(tmp_path / f"captures{name}.safetensors")
        write_shard(draws, part, tmp_path / f"{name}.safetensors")
    first = 0
    for name in ("0000", "0001"):
        part = tensors(tmp_path / f"{name}.safetensors")
        count = len(part["label"])
        for key, value in part.items():
            np.testing.assert_array_equal(value, whole[key][first : first + count], err_msg=key)
        first += count
    assert first == len(whole["label"])


def test_draws_are_deterministic_and_survive_the_disk(sampled, population, matrix, settings, draws, tmp_path):
    again = make_draws(sampled, population, matrix, Recipe(), settings)
    for name in ("label", "pivot", "contrast", "gain"):
        np.testing.assert_array_equal(getattr(again, name), getattr(draws, name))
    draws.save(tmp_path / "a.safetensors")
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    loaded = Draws.load(tmp_path / "a.safetensors")
    assert loaded.recipe == draws.recipe and loaded.capture == draws.capture
    np.testing.assert_array_equal(loaded.label, draws.label)


def test_an_interrupted_shard_goes_on_where_it_stopped(external, sampled, settings, tmp_path, monkeypatch):
    """Killed after three captures, the next run decodes only the others and writes the same file."""
    from fujinsplat.capture import raw as raw_module

    members, decoded, real = read_sheet(external), [], raw_module.read_raw

    def until_killed(path, given):
        if len(decoded) == 3:
            raise KeyboardInterrupt
        decoded.append(path.name)
        return real(path, given)

    monkeypatch.setattr(raw_module, "read_raw", until_killed)
    out = tmp_path / "0000.safetensors"
    with pytest.raises(KeyboardInterrupt):
        sample(members, out, settings)
    assert not out.exists()
    seen = []
    monkeypatch.setattr(raw_module, "read_raw", lambda path, given: (seen.append(path.name), real(path, given))[1])
    sample(members, out, settings)
    assert seen == [member.path.name for member in members[3:]]
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    whole = tmp_path / "whole.safetensors"
    sample(members, whole, settings)
    assert out.read_bytes() == whole.read_bytes()


def test_a_shard_says_what_fell_out_of_range(sampled, draws, tmp_path):
    write_shard(draws, sampled, tmp_path / "0000.safetensors")
    with safe_open(str(tmp_path / "0000.safetensors"), "np") as stream:
        outside, cycles = (json.loads(stream.metadata()[name]) for name in ("outside", "cycles"))
    assert len(outside) == len(cycles) == len(draws)
    assert min(min(cycle.values()) for cycle in cycles) >= 100
    clean = [sampled.split(made_of(draws, sampled, i)[0])[0] for i in range(len(draws))]
    above = np.mean([np.mean(c > draws.ceiling[i]) for i, c in enumerate(clean)])
    assert np.mean([row["clean_above_ceiling"] for row in outside]) == pytest.approx(above)


@pytest.mark.parametrize("smoke", ["room", "uniform"])
@pytest.mark.parametrize("half", ["curves", "couplings"])
def test_restricted_recipes_stay_exact(sampled, population, matrix, settings, tmp_path, half, smoke):
    """One half of the action is zero, and the observation is still made by inverting what is left."""
    recipe = Recipe(curves=half == "curves", couplings=half == "couplings")
    drawn = make_draws(sampled, population, matrix, recipe, settings.model_copy(update={"smoke": smoke}))
    off = drawn.label[:, 384:] if half == "curves" else drawn.label[:, :384]
    on = drawn.label[:, :384] if half == "curves" else drawn.label[:, 384:]
    assert np.abs(off).max() == 0 and np.abs(on).max() > 0.01
    write_shard(drawn, sampled, tmp_path / "0000.safetensors")  # checks the cycles
    for index in range(3):
        clean, target, hazy, _ = made_of(drawn, sampled, index)
        np.testing.assert_array_equal(target, np.clip(clean, drawn.floor[index], drawn.ceiling[index]))
        label = torch.from_numpy(drawn.label[index]).double()
        np.testing.assert_allclose(hazy, invert(torch.from_numpy(target), label).numpy(), atol=1e-12)


def test_large_captures_are_area_reduced_before_their_summary():
    tall = np.random.default_rng(0).integers(0, 65536, (3012, 2012, 3), np.uint16)
    small = reduced(tall)
    assert small.shape == (1506, 1006, 3)
    blocks = tall.reshape(1506, 2, 1006, 2, 3).mean(axis=(1, 3))
    assert np.abs(small - blocks).max() <= 0.51
    assert reduced(tall[:1000, :1506]).shape == (1000, 1506, 3)  # not enlarged, and not made smaller than it need be


def test_draws_from_actions_leave_the_scene_out(sampled, population, matrix, settings, tmp_path):
    """No action and no pair of the left-out scene shapes a draw."""
    random = np.random.default_rng(0)
    experts = {scene: random.normal(0, 0.05, (4, 573)) for scene in ("one", "two", "three")}
    recipe = Recipe(draws="actions", without="one")
    drawn = make_draws(sampled, population, matrix, recipe, settings, experts)
    assert all(" one" not in source for source in drawn.source)
    changed = {**experts, "one": experts["one"] + 1}
    pairs = [p for p in population.pairs if p.scene != "one"]
    other = make_draws(sampled, type(population).of(pairs, []), matrix, recipe, settings, changed)
    np.testing.assert_array_equal(drawn.label, other.label)
    np.testing.assert_array_equal(drawn.gain, other.gain)
    write_shard(drawn, sampled, tmp_path / "0000.safetensors")


def test_a_population_of_one_pair_is_refused(sampled, matrix, settings):
    with pytest.raises(UserError, match="at least two"):
        make_draws(sampled, make_population(1), matrix, Recipe(), settings)


def test_a_cycle_that_fails_names_the_capture(sampled, draws, tmp_path, monkeypatch):
    """A stored pixel that does not replay stops the stage, and nothing is written."""
    from fujinsplat.synthesis import observe as module

    real = module.hazed

    def disturbed(drawn, index, *colours):
        clean, target, hazy, synthetic = real(drawn, index, *colours)
        return clean, target, hazy + (1e-3 if index == 2 else 0), synthetic

    monkeypatch.setattr(module, "hazed", disturbed)
    with pytest.raises(UserError, match=draws.capture[2]):
        write_shard(draws, sampled, tmp_path / "0000.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_seeds_belong_to_captures(sampled, settings):
    """Another seed chooses other pixels of the same capture; the name decides, not the row."""
    a = captures_module.seed_of("x", 1, "pixels").integers(1 << 30, size=4)
    assert (a == captures_module.seed_of("x", 1, "pixels").integers(1 << 30, size=4)).all()
    assert (a != captures_module.seed_of("x", 2, "pixels").integers(1 << 30, size=4)).any()
    assert (a != captures_module.seed_of("y", 1, "pixels").integers(1 << 30, size=4)).any()
