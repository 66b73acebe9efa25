"""The media in training: parts of the trainer, on a scene small enough for seconds."""

import json
import math

import pytest
import torch
from pydantic import ValidationError

from fujinsplat.capture import read_cameras
from fujinsplat.core.errors import UserError
from fujinsplat.core.metrics import psnr
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.media.density import WaterDensity
from fujinsplat.splat.media.plain import random_views
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.models import MODELS
from fujinsplat.splat.models.watersplatting import WaterSplattingSettings
from fujinsplat.splat.render import render_encoded, render_through_medium
from fujinsplat.splat.train import Composition, Inputs, train

RATES = {"lr_means": 1.6e-3, "lr_scales": 0.02, "lr_sh0": 0.02}  # as in the demo: the runs are short
QUICK = SplatSettings(iterations=120, sh_degree=1, densify_every=20, max_gaussians=900, bake_steps=0, **RATES)
SHORT = QUICK.model_copy(update={"iterations": 40})
MEDIA = ("seasplat", "watersplatting")


def inputs(files):
    return Inputs({name: getattr(files, name) for name in ("views", "developed", "cameras", "points")})


def own(name, **changes):
    return ((name, MODELS[name].Settings(**changes)),)


@pytest.mark.parametrize("name", ["vanilla", *MEDIA])
def test_it_learns_what_it_is_given(scene_files, tmp_path, name):
    """The picture that is compared with the views (with its medium) comes near to them."""
    # in so short a run opacities would not come back from being reset
    unset = {"reset_every": 30_000} if name != "watersplatting" else {}
    parts = Composition(QUICK, "camera", name, own=own(name, **unset))
    trained = train(inputs(scene_files), parts, tmp_path / "run", "cpu")
    log = [json.loads(line) for line in trained.checkpoints.log_file.read_text().splitlines()]
    assert log[-1]["iteration"] == trained.iterations == round(120 * MODELS[name].Settings().iterations / 18000)
    assert log[-1]["psnr"] > log[0]["psnr"] + 3
    assert trained.gaussians.display.colour == "encoded"
    assert bool(trained.gaussians.medium) == (name in MEDIA)


@pytest.mark.parametrize("name", MEDIA)
def test_both_pictures_come_back_from_disk(scene_files, tmp_path, name):
    unset = {"reset_every": 30_000} if name != "watersplatting" else {}  # nothing is left of a run that ends on a reset
    parts = Composition(SHORT, "camera", name, own=own(name, **unset))
    trained = train(inputs(scene_files), parts, tmp_path / "run", "cpu")
    trained.gaussians.save(tmp_path / "model.safetensors", {})
    again = Gaussians.load(tmp_path / "model.safetensors")
    camera = read_cameras(scene_files.cameras, "held")[0]
    for render in (render_encoded, render_through_medium):
        torch.testing.assert_close(render(again, camera), render(trained.gaussians, camera))
    assert psnr(render_encoded(again, camera), render_through_medium(again, camera)) < 60


def test_a_model_without_a_medium_has_no_second_picture(scene_files):
    from tests.splat.conftest import world

    with pytest.raises(UserError, match="leave out --medium"):
        render_through_medium(world(10), read_cameras(scene_files.cameras, "held")[0])


@pytest.mark.parametrize("name", MEDIA)
def test_a_killed_run_continues_to_the_same_end(scene_files, tmp_path, name, monkeypatch):
    from fujinsplat.splat import train as module

    parts = Composition(SHORT, "camera", name)
    whole = train(inputs(scene_files), parts, tmp_path / "whole", "cpu")

    class Killed(Exception):
        pass

    steps, original = iter(range(10_000)), module._Run.step

    def step(self):
        if next(steps) == 21:
            self.checkpoints.save(self.iteration, self._state())
            raise Killed
        return original(self)

    monkeypatch.setattr(module._Run, "step", step)
    with pytest.raises(Killed):
        train(inputs(scene_files), parts, tmp_path / "cut", "cpu")
    monkeypatch.setattr(module._Run, "step", original)
    resumed = train(inputs(scene_files), parts, tmp_path / "cut", "cpu")
    for one, other in (
        (whole.gaussians.parameters, resumed.gaussians.parameters),
        (whole.gaussians.medium, resumed.gaussians.medium),
    ):
        assert one.keys() == other.keys()
        for key in one:
            torch.testing.assert_close(one[key], other[key], msg=key)


@pytest.mark.parametrize("name", MEDIA)
def test_a_medium_that_diverges_is_one_sentence(scene_files, tmp_path, name):
    with pytest.raises(ValidationError, match="less than or equal to 1000000"):
        own(name, lr_medium=3e38)
    endless = MODELS[name].Settings().model_copy(update={"lr_medium": math.inf})
    parts = Composition(SHORT, "camera", name, own=((name, endless),))
    with pytest.raises(UserError, match=rf"training diverged at iteration .* lower .* settings\.{name}\.lr_medium"):
        train(inputs(scene_files), parts, tmp_path / "run", "cpu")


@pytest.mark.parametrize("name", MEDIA)
def test_the_last_checkpoint_is_a_good_one(scene_files, tmp_path, name, monkeypatch):
    """Parameters are looked at before they are saved: a loss tells of them only one iteration later."""
    from fujinsplat.splat import train as module

    original = module._Run.step

    def step(self):
        done = original(self)
        if self.iteration == 7:
            next(self.model.medium.parameters()).data.fill_(math.nan)
        return done

    monkeypatch.setattr(module._Run, "step", step)
    monkeypatch.setattr(module, "LOG_ENTRIES", 1)
    parts = Composition(SHORT.model_copy(update={"checkpoint_seconds": 1e-9}), "camera", name)
    with pytest.raises(UserError, match=r"diverged at iteration 7.*last good checkpoint is .* \(iteration 6\)"):
        train(inputs(scene_files), parts, tmp_path, "cpu")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["iteration"] == 6
    assert all(bool(torch.isfinite(value).all()) for value in state["model"]["medium"]["parameters"].values())


@pytest.mark.parametrize("name", [*MEDIA, "vanilla"])
def test_a_loss_of_its_own_may_be_large(scene_files, tmp_path, name, monkeypatch):
    """SeaSplat's factor of 1,000 and WaterSplatting's division are no divergence; a photometric loss of 10 is."""
    from fujinsplat.splat.models import gaussians as module

    field = {"seasplat": "sea_field.SeaField", "watersplatting": "water_field.WaterField"}.get(name)
    kind = f"fujinsplat.splat.media.{field}" if field else f"{module.__name__}.GaussianField"
    monkeypatch.setattr(f"{kind}.compare", lambda self, rendered, target: (rendered - target).square().mean() + 50)
    parts = Composition(SHORT.model_copy(update={"iterations": 6}), "camera", name)
    if name == "vanilla":
        with pytest.raises(UserError, match="training diverged"):
            train(inputs(scene_files), parts, tmp_path / "run", "cpu")
    else:
        train(inputs(scene_files), parts, tmp_path / "run", "cpu")


def test_the_medium_of_seasplat_waits_for_its_switch(scene_files, tmp_path):
    parts = Composition(SHORT, "camera", "seasplat", own=own("seasplat", switch=15_000))
    trained = train(inputs(scene_files), parts, tmp_path / "run", "cpu")
    from fujinsplat.splat.media.seasplat import SeaMedium

    untouched = SeaMedium(SHORT.seed)
    torch.testing.assert_close(trained.gaussians.medium["backscatter"], untouched.backscatter.data)
    assert (trained.gaussians.medium["background"] != untouched.background.data).any()


def density(**changes):
    settings = WaterSplattingSettings(**{"split_size": 0.1, "grad_threshold": 0.01, **changes})
    return WaterDensity(settings, first=10, last=1000, every=10, views=6, unit=1.0, limit=1000)


def gaussians(sizes, opacities):
    n = len(sizes)
    values = {
        "means": torch.zeros(n, 3),
        "quats": torch.tensor([[1.0, 0, 0, 0]]).repeat(n, 1),
        "scales": torch.tensor(sizes).log()[:, None].repeat(1, 3),
        "opacities": torch.tensor(opacities).logit(),
        "sh0": torch.zeros(n, 1, 3),
        "shN": torch.zeros(n, 0, 3),
    }
    model = Gaussians(values)
    return model.parameters, {k: torch.optim.Adam([v], lr=0.1) for k, v in model.parameters.items()}


def observed(gradients):
    means2d = torch.zeros(1, len(gradients), 2)
    means2d.absgrad = torch.tensor(gradients)[None, :, None].repeat(1, 1, 2)
    return {"means2d": means2d, "radii": torch.ones(1, len(gradients), 2), "width": 20, "height": 10}


def test_density_splits_the_large_doubles_the_small_and_removes_the_faint():
    control = density()
    parameters, optimizers = gaussians([0.05, 0.5, 0.05, 0.05], [0.9, 0.9, 0.9, 0.01])
    control.observe(observed([1.0, 1.0, 0.0, 0.0]), 4)
    assert control.step(parameters, optimizers, 310)
    sizes = sorted(parameters["scales"].exp()[:, 0].tolist())
    assert sizes == pytest.approx([0.05, 0.05, 0.05, 0.5 / 1.6, 0.5 / 1.6])


@pytest.mark.parametrize(("iteration", "grows"), [(310, True), (100, False), (505, False), (510, False), (1010, False)])
def test_density_grows_only_after_all_views_were_seen_since_the_last_limit(iteration, grows):
    control = density()
    parameters, optimizers = gaussians([0.05, 0.05], [0.9, 0.9])
    control.observe(observed([1.0, 1.0]), 2)
    control.step(parameters, optimizers, iteration)
    assert (len(parameters["means"]) > 2) == grows


def test_opacities_are_limited_once_a_cycle_and_never_all_removed():
    control = density()
    parameters, optimizers = gaussians([0.05, 0.05], [0.9, 0.9])
    control.observe(observed([0.0, 0.0]), 2)
    control.step(parameters, optimizers, 600)
    assert parameters["opacities"].sigmoid().tolist() == pytest.approx([0.5, 0.5])
    parameters, optimizers = gaussians([0.05, 0.05], [0.01, 0.01])
    control.observe(observed([0.0, 0.0]), 2)
    control.step(parameters, optimizers, 310)
    assert len(parameters["means"]) == 2


@pytest.mark.parametrize(
    ("iteration", "passes"), [(310, True), (490, True), (500, False), (600, False), (1010, True), (1100, True)]
)
def test_none_is_removed_in_the_pause_after_a_limit(iteration, passes):
    """Opacities that were just cut would go with it. After the last densification there is no limit, so no pause."""
    control = density()
    parameters, optimizers = gaussians([0.05, 0.05, 50.0], [0.9, 0.01, 0.9])
    control.observe(observed([0.0, 0.0, 0.0]), 3)
    assert control.step(parameters, optimizers, iteration) == passes
    assert len(parameters["means"]) == (1 if passes else 3)


def test_a_pass_that_removes_none_is_one():
    control = density()
    parameters, optimizers = gaussians([0.05, 0.05], [0.9, 0.9])
    control.observe(observed([0.0, 0.0]), 2)
    assert control.step(parameters, optimizers, 310) and len(parameters["means"]) == 2


def test_density_keeps_the_limit():
    control = density()
    control.limit = 5
    parameters, optimizers = gaussians([0.05] * 4, [0.9] * 4)
    control.observe(observed([1.0, 2.0, 3.0, 4.0]), 4)
    control.step(parameters, optimizers, 310)
    assert len(parameters["means"]) == 5


def test_extra_views_follow_from_seed_and_iteration():
    assert random_views(1, 5, 20, 7) == random_views(1, 5, 20, 7) != random_views(1, 6, 20, 7)
    assert set(random_views(1, 5, 200, 7)) == set(range(7))


@pytest.mark.parametrize("name", [*MEDIA, "vanilla", "gaussians"])
def test_on_linear_views_colours_start_in_linear_light(scene_files, name):
    from types import SimpleNamespace

    from fujinsplat.core.color import decode
    from fujinsplat.isp import BaseISP
    from fujinsplat.splat.data import TrainingScene
    from fujinsplat.splat.raster.harmonics import C0
    from fujinsplat.splat.targets import LinearTargets

    settings = MODELS[name].Settings()
    splat = MODELS[name].budget(QUICK, settings)
    files = (scene_files.views, scene_files.developed, scene_files.cameras, scene_files.points)
    scene = TrainingScene(*files, splat, "cpu")
    field = MODELS[name].run(scene, splat, settings)
    LinearTargets(scene, SimpleNamespace(base=BaseISP(), white_balance=torch.ones(3), gain=1.0), field, splat)
    start = field.gaussians.parameters["sh0"].detach()[:, 0] * C0 + 0.5
    expected = decode(torch.from_numpy(scene.rgb_encoded).float() / 255)
    torch.testing.assert_close(start, expected, atol=1e-5, rtol=1e-4)
    assert field.gaussians.display.colour == "camera"


def test_water_starts_coarse(scene_files):
    from fujinsplat.splat.data import TrainingScene
    from fujinsplat.splat.models.vanilla import budget

    settings = WaterSplattingSettings()
    splat = budget(QUICK, settings)
    files = (scene_files.views, scene_files.developed, scene_files.cameras, scene_files.points)
    field = MODELS["watersplatting"].run(TrainingScene(*files, splat, "cpu"), splat, settings)
    sizes = [tuple(field.render(field.scene.views[0], i)[0].shape[:2]) for i in (1, 21, 41, 100)]
    assert sizes == [(11, 15), (22, 30), (44, 60), (44, 60)]
    target = field.scene.target(0, field.scene.actions)
    small = field.fitted(target, torch.zeros(11, 15, 3))
    middles = target[1:43:4, 1:59:4] + target[2:44:4, 1:59:4] + target[1:43:4, 2:60:4] + target[2:44:4, 2:60:4]
    torch.testing.assert_close(small, middles / 4)  # bilinear: the four pixels about each middle, encoded as they are


def test_water_starts_turned_and_as_large_as_neighbours_are_far(scene_files):
    from scipy.spatial import cKDTree

    from fujinsplat.splat.data import TrainingScene
    from fujinsplat.splat.models.vanilla import budget

    settings = WaterSplattingSettings()
    splat = budget(QUICK, settings)
    files = (scene_files.views, scene_files.developed, scene_files.cameras, scene_files.points)
    scene = TrainingScene(*files, splat, "cpu")
    start = MODELS["watersplatting"].run(scene, splat, settings).gaussians.parameters
    distances = torch.from_numpy(cKDTree(scene.xyz).query(scene.xyz, k=4)[0][:, 1:].mean(1)).float()
    torch.testing.assert_close(start["scales"].detach().exp()[:, 0], distances, rtol=1e-4, atol=1e-6)
    assert len(start["quats"].unique(dim=0)) == len(scene.xyz)


@pytest.mark.parametrize(("name", "iterations"), [("vanilla", 2000), ("seasplat", 2000), ("seasplat", 18_000)])
def test_opacities_are_never_set_back_at_the_end_of_the_window(scene_files, name, iterations):
    """3,000 to 12,000 of 15,000, whatever the length of the run; rounding must not add a fifth time near its end."""
    from fujinsplat.splat.data import TrainingScene

    settings = MODELS[name].Settings()
    splat = MODELS[name].budget(QUICK.model_copy(update={"iterations": iterations}), settings)
    files = (scene_files.views, scene_files.developed, scene_files.cameras, scene_files.points)
    field = MODELS[name].run(TrainingScene(*files, splat, "cpu"), splat, settings)
    expected = [k * iterations / 18_000 for k in (3000, 6000, 9000, 12_000)]
    assert field.resets() == pytest.approx(expected, abs=1)
    assert field.resets()[-1] < 0.85 * field.schedule.densify_until


def published_field(scene_files, name):
    """The model of a run of the published length."""
    from fujinsplat.splat.data import TrainingScene

    settings = MODELS[name].Settings()
    splat = MODELS[name].budget(SplatSettings(), settings)
    files = (scene_files.views, scene_files.developed, scene_files.cameras, scene_files.points)
    return MODELS[name].run(TrainingScene(*files, splat, "cpu"), splat, settings)


def test_a_whole_run_of_seasplat_has_the_published_passes(scene_files, monkeypatch):
    """15,000 iterations, 3,000 steps at the switch, 50 steps of the medium each 100 iterations from there on."""
    field = published_field(scene_files, "seasplat")
    turns = []
    monkeypatch.setattr(field, "_turns", lambda step, count, at: turns.append((step.__name__, count, field.iteration)))
    for iteration in range(1, field.settings.iterations + 1):
        field.before(iteration)
    assert turns[:3] == [("_medium_step", 1000, 10_001), ("_colour_step", 2000, 10_001), ("_medium_step", 50, 10_100)]
    assert field.settings.iterations + sum(count for _, count, _ in turns) == 20_500
    assert field.settings.sh_degree == 0


def test_a_whole_run_of_watersplatting_decides_when_published(scene_files, monkeypatch):
    from fujinsplat.splat.media import density as module

    field = published_field(scene_files, "watersplatting")
    control, grown, culled, limited = field.density, [], [], []
    control.views = 25
    monkeypatch.setattr(control, "_grow", lambda *_: grown.append(iteration))
    monkeypatch.setattr(control, "_cull", lambda *_: culled.append(iteration))
    monkeypatch.setattr(module, "reset_opa", lambda *_: limited.append(iteration))
    for iteration in range(1, field.settings.iterations + 1):
        control.step({}, {}, iteration)
    assert limited == list(range(600, 10_000, 500))
    assert grown == [k for k in range(700, 10_000, 100) if k % 500 in (200, 300, 400)]
    assert culled == [*grown, *range(10_000, 15_001, 100)]
    assert [field.halvings(k) for k in (1, 3000, 3001, 6000, 6001)] == [2, 2, 1, 1, 0]
    rates = []
    for iteration in (1, field.settings.iterations):
        field.before(iteration)
        rates += [field.optimizers["means"].param_groups[0]["lr"] * field.unit]
        rates += [field.medium_optimizer.param_groups[0]["lr"]]
    assert rates == pytest.approx([1.6e-4, 1e-3, 5e-5, 1.5e-4])
