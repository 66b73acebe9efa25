"""The GPU's way on the CPU: our own code and gsplat's Python are the real ones, gsplat's CUDA part is its twin."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import count_gpu
import pytest
import torch
import twin
from scenes import make

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat import loss, rasterize
from fujinsplat.splat import train as training
from fujinsplat.splat.data import Palette, TrainingScene
from fujinsplat.splat.train import Composition, Inputs, train

QUICK = SplatSettings(iterations=40, sh_degree=1, densify_every=10, max_gaussians=400, bake_steps=0, sh_interval=5000)
LEAVES = ("means", "quats", "scales", "opacities", "sh")


@pytest.fixture
def gpu_way(monkeypatch):
    loss._one_kernel_ssim.cache_clear()
    yield twin.install(monkeypatch)
    loss._one_kernel_ssim.cache_clear()


def inputs(files):
    return Inputs({name: getattr(files, name) for name in ("views", "developed", "cameras", "points")})


def log_of(trained):
    return [json.loads(line) for line in trained.checkpoints.log_file.read_text().splitlines()]


@pytest.mark.parametrize("with_depth", [False, True])
def test_both_ways_draw_the_same(monkeypatch, with_depth):
    scene = make(1, ["ordinary", "needle", "border", "off_screen", "behind", "opaque"] * 5, 61, 47, 16, True)
    results = []
    for way in ("cpu", "gpu"):
        if way == "gpu":
            twin.install(monkeypatch)
        arguments = scene.arguments()
        image, alpha, info = rasterize(**arguments, with_depth=with_depth)
        info["means2d"].retain_grad()
        total = image.square().mean() + alpha.mean()
        (total + 0.1 * info["depth"].mean() if with_depth else total).backward()
        gradients = [arguments[name].grad for name in LEAVES] + [info["means2d"].grad]
        results.append([image.detach(), alpha.detach(), info["depth"].detach(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        close = (ours - theirs).abs() <= 2e-2 * float(theirs.abs().max())  # needles: differences of large numbers
        assert close.float().mean() > 0.98
    assert not results[1][2].requires_grad


def test_a_depth_channel_is_drawn_only_when_asked_for(gpu_way):
    scene = make(0, ["ordinary"] * 8, 32, 24, 4, False)
    twin.CALLS.clear()
    _, _, info = rasterize(**scene.arguments())
    assert twin.CALLS["rasterize_to_pixels_3dgs_fwd"] == 1 and "depth" not in info
    assert info["depth"].shape == (24, 32) and twin.CALLS["rasterize_to_pixels_3dgs_fwd"] == 2
    with pytest.raises(KeyError):
        info["nothing"]


def test_training_agrees_with_the_cpus(scene_files, tmp_path, monkeypatch):
    """Ten iterations without densification, in and out of the delta-ISP's window: rounding is all that differs."""
    few = QUICK.model_copy(update={"iterations": 10})
    parts = Composition(few, reconcile="delta")
    results = []
    for way in ("cpu", "gpu"):
        if way == "gpu":
            twin.install(monkeypatch)
        results.append(log_of(train(inputs(scene_files), parts, tmp_path / way, "cpu")))
    assert len(results[0]) == len(results[1]) == 10
    for ours, theirs in zip(*results, strict=True):
        assert ours["view"] == theirs["view"] and abs(ours["loss"] - theirs["loss"]) < 5e-4
    assert abs(results[0][0]["loss"] - results[1][0]["loss"]) < 2e-6, "before anything has moved"
    assert results[0][-1]["alpha_max"] == pytest.approx(results[1][-1]["alpha_max"], abs=1e-4) != 0


@pytest.mark.parametrize("selective", [False, True], ids=["adam", "selective"])
def test_a_broken_training_goes_on_to_the_same_bits(scene_files, tmp_path, gpu_way, monkeypatch, selective):
    """Through densification and the delta-ISP's window; a state is saved after every iteration."""
    saving = QUICK.model_copy(update={"checkpoint_seconds": 1e-9, "selective_adam": selective})
    parts = Composition(saving, reconcile="delta")
    whole = train(inputs(scene_files), parts, tmp_path / "whole", "cpu")
    step = training._Run.step

    def dies(self):
        if self.iteration == 31:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(training._Run, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(inputs(scene_files), parts, tmp_path / "broken", "cpu")
    monkeypatch.setattr(training._Run, "step", step)
    resumed = train(inputs(scene_files), parts, tmp_path / "broken", "cpu")
    for name, value in whole.gaussians.parameters.items():
        assert torch.equal(value, resumed.gaussians.parameters[name]), name
    assert whole.summary == resumed.summary and len(whole.gaussians) > 200, "it has grown"


@pytest.mark.parametrize("more", [(), ("info",)], ids=["gsplat 1.5", "gsplat 1.6"])
def test_densification(scene_files, tmp_path, gpu_way, monkeypatch, more):
    """1.6 hands its own `_grow_gs` one argument more; 1.5's is called with what it knows."""
    from gsplat.strategy import DefaultStrategy

    from fujinsplat.compat.gsplat_strategy import BoundedStrategy

    plain, bounded, seen = DefaultStrategy._grow_gs, BoundedStrategy._grow_gs, []

    def grows(self, params, optimizers, state, step, *rest):
        seen.append(rest)
        return plain(self, params, optimizers, state, step)

    monkeypatch.setattr(DefaultStrategy, "_grow_gs", grows)
    monkeypatch.setattr(BoundedStrategy, "_grow_gs", lambda self, *known: bounded(self, *known, *more))
    greedy = QUICK.model_copy(update={"grad_threshold": 1e-7, "max_gaussians": 260})
    trained = train(inputs(scene_files), Composition(greedy), tmp_path / "run", "cpu")
    assert 230 < max(entry["gaussians"] for entry in log_of(trained)) <= 260
    assert seen and set(seen) == {more}


@pytest.mark.parametrize("model", ["vanilla", "seasplat", "watersplatting"])
def test_the_other_models_train_and_render(scene_files, tmp_path, gpu_way, model):
    from fujinsplat.capture import read_cameras
    from fujinsplat.rows.registries import AllSettings
    from fujinsplat.splat.render import render_encoded

    settings = AllSettings().model_copy(update={"splat": QUICK.model_copy(update={"iterations": 8})})
    trained = train(inputs(scene_files), Composition.of(settings, "base", model, "none"), tmp_path / "run", "cpu")
    log = log_of(trained)
    assert all(entry["loss"] == entry["loss"] for entry in log)
    picture = render_encoded(trained.gaussians, read_cameras(scene_files.cameras, "held")[0])
    assert picture.shape == (44, 60, 3) and bool(torch.isfinite(picture).all())


def test_smoke_trains_and_goes_on_to_the_same_bits(smoky_files, tmp_path, monkeypatch):
    """Linear light, the points' depth with its gradient, and three estimates on the way, the last after a break; the
    CPU's way gives the same losses to rounding."""
    from fujinsplat.capture import read_cameras
    from fujinsplat.rows.registries import AllSettings
    from fujinsplat.smoke.targets import SmokeTargets
    from fujinsplat.splat.render import render_encoded

    few = QUICK.model_copy(update={"iterations": 12, "depth_from_points": 0.05, "checkpoint_seconds": 1e-9})
    parts = Composition.of(AllSettings().model_copy(update={"splat": few}), "cleared", "gaussians", "none")
    files, estimates, again, step = Inputs(smoky_files), [], SmokeTargets.reestimate, training._Run.step
    monkeypatch.setattr(
        SmokeTargets, "reestimate", lambda self, render: estimates.append(again(self, render)) or estimates[-1]
    )
    ours = [entry["loss"] for entry in log_of(train(files, parts, tmp_path / "cpu", "cpu"))]
    twin.install(monkeypatch)
    twin.CALLS.clear()
    whole = train(files, parts, tmp_path / "whole", "cpu")
    assert len(estimates) == 6 and all(estimate.grid.isfinite().all() for estimate in estimates)
    # an iteration draws once; each estimate looks at all six views
    assert twin.CALLS["rasterize_to_pixels_3dgs_fwd"] >= 12 + 3 * 6
    theirs = [entry["loss"] for entry in log_of(whole)]
    assert theirs[:2] == pytest.approx(ours[:2], rel=1e-4) and theirs == pytest.approx(ours, rel=0.05)
    picture = render_encoded(whole.gaussians, read_cameras(smoky_files["cameras"], "source")[0])
    assert picture.shape == (64, 96, 3) and bool(torch.isfinite(picture).all()) and float(picture.std()) > 0.01

    def dies(self):
        if self.iteration == 6:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(training._Run, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(files, parts, tmp_path / "broken", "cpu")
    monkeypatch.setattr(training._Run, "step", step)
    resumed = train(files, parts, tmp_path / "broken", "cpu")
    for name, value in whole.gaussians.parameters.items():
        assert torch.equal(value, resumed.gaussians.parameters[name]), name


def test_selective_adam_moves_what_is_in_sight_alone(gpu_way):
    from fujinsplat.compat.gsplat_strategy import SightAdam

    parameter = torch.nn.Parameter(torch.zeros(6, 3))
    optimizer = SightAdam(parameter, lr=0.1, eps=1e-15)
    parameter.grad = torch.ones(6, 3)
    seen = torch.tensor([True, False, True, False, False, False])
    optimizer.step(seen)
    moved = (parameter != 0).all(-1)
    assert torch.equal(moved, seen)
    optimizer.step()
    assert bool((parameter != 0).all())


def test_selective_adam_wants_a_gpu(scene_files, tmp_path):
    chosen = QUICK.model_copy(update={"selective_adam": True})
    with pytest.raises(UserError, match="selective_adam runs on a GPU alone"):
        train(inputs(scene_files), Composition(chosen), tmp_path / "run", "cpu")


# development by distinct colours


@pytest.mark.parametrize("width", [60, 30], ids=["same size", "reduced"])
def test_colours_developed_once_give_the_same_picture_and_gradient(scene_files, monkeypatch, width):
    """The picture of developing every pixel; the action's gradient to rounding (sums are ordered anew)."""
    from fujinsplat import flow
    from fujinsplat.core import gpu
    from fujinsplat.flow import operator, reference

    files = scene_files
    paths = (files.views, files.developed, files.cameras, files.points)
    scene = TrainingScene(*paths, SplatSettings(max_width=width), "cpu")
    monkeypatch.setattr(operator, "implementation", lambda device: reference)
    weights = torch.randn(scene.views[0].height, width, 3, generator=torch.Generator().manual_seed(0))
    results = []
    for held in (False, True):
        monkeypatch.setattr(gpu, "holds", lambda tensor, held=held: held)
        action = scene.actions[0].clone().requires_grad_()
        developed = scene.develop(0, action)
        (developed * weights).sum().backward()
        results.append((developed.detach(), action.grad))
    # the curve of the display in vectors of pixels and of colours: the last bit may differ
    assert (
        torch.equal(results[0][0], results[1][0])
        if width == 60
        else torch.allclose(*(r[0] for r in results), atol=1e-6)
    )
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-5 * float(results[0][1].abs().max()))
    assert flow.apply(scene.base(0)[None], scene.actions[:1]).shape == (1, 44, 60, 3)


def test_a_palette_is_its_picture():
    picture = torch.randint(0, 4, (20, 30, 3), generator=torch.Generator().manual_seed(1)).to(torch.uint8) * 60
    palette = Palette.of(picture)
    assert len(palette.colours) == len(torch.unique(picture.view(-1, 3), dim=0)) <= 64
    assert torch.equal(palette.spread(palette.colours), picture)
    assert torch.equal(palette.spread(palette.colours_encoded()), picture.float() / 255)


# the loss


def test_similarity_in_one_kernel_where_it_can_be(gpu_way, monkeypatch):
    """fused-ssim has no gradient for its second picture: in the delta-ISP's window ours does it."""
    calls = []

    def fused_ssim(x, y, padding):
        calls.append((x.shape, padding))
        return loss.ssim(x[0].permute(1, 2, 0), y[0].permute(1, 2, 0))

    monkeypatch.setitem(sys.modules, "fused_ssim", SimpleNamespace(fused_ssim=fused_ssim))
    loss._one_kernel_ssim.cache_clear()
    g = torch.Generator().manual_seed(0)
    x, y = torch.rand(20, 24, 3, generator=g, requires_grad=True), torch.rand(20, 24, 3, generator=g)
    plain = (1 - 0.2) * (x - y).abs().mean() + 0.2 * (1 - loss.ssim(x, y))
    assert torch.allclose(loss.photometric_loss(x, y, 0.2), plain) and calls == [((1, 3, 20, 24), "same")]
    loss.photometric_loss(x, y.requires_grad_(), 0.2).backward()
    assert len(calls) == 1 and y.grad is not None


def test_the_windows_are_made_once(gpu_way):
    loss._windows.cache_clear()
    x, y = torch.rand(2, 16, 16, 3)
    for _ in range(3):
        loss.photometric_loss(x, y, 0.2)
    assert loss._windows.cache_info().misses == 1


# what a GPU would do in an iteration


def counted_run(files, folder, settings, iterations, **parts):
    """A run that has come as far as `iterations - 1`, and the count of one more iteration."""
    composition = Composition(settings, **parts)
    made = {}
    to_the_end, training._Run.to_the_end = training._Run.to_the_end, lambda self: made.setdefault("run", self)
    try:
        train(inputs(files), composition, folder, "cpu")
    finally:
        training._Run.to_the_end = to_the_end
    run = made["run"]
    for _ in range(len(run.scene)):
        run.step()  # every view's target is developed
    run.iteration = iterations - 1
    with twin.Counting() as counting:
        run.step()
    return counting


def test_an_iteration_does_not_wait_for_the_gpu(scene_files, tmp_path, gpu_way):
    """Not behind densification, where gsplat itself looks; in the delta-ISP's window and out of it."""
    ordinary = counted_run(scene_files, tmp_path / "a", QUICK, 39, reconcile="delta")
    moving = counted_run(scene_files, tmp_path / "b", QUICK, 32, reconcile="delta")
    # numbers that lie on the CPU whatever the device: the next view, and the step counter of the delta-ISP's Adam
    assert ordinary.waits == {"_local_scalar_dense": 1} and moving.waits == {"_local_scalar_dense": 2}
    assert sum(ordinary.kernels.values()) < 160
    assert sum(moving.kernels.values()) > 3 * sum(ordinary.kernels.values()), "the flow and its gradient"


def test_losses_are_looked_at_now_and_then(scene_files, tmp_path, gpu_way, monkeypatch):
    """And the iteration that went wrong is named all the same."""
    looks, look_at, step = [], training._Run._look_at, training._Run.step
    monkeypatch.setattr(
        training._Run,
        "_look_at",
        lambda self, recent, closely: looks.append(len(recent)) or look_at(self, recent, closely),
    )
    monkeypatch.setattr(training, "LOG_ENTRIES", 1)
    train(inputs(scene_files), Composition(QUICK), tmp_path / "run", "cpu")
    assert looks == [20, 20]

    def breaks(self):
        value, index = step(self)
        return (value * float("nan") if self.iteration == 7 else value), index

    monkeypatch.setattr(training._Run, "step", breaks)
    with pytest.raises(UserError, match="diverged at iteration 7, "):
        train(inputs(scene_files), Composition(QUICK), tmp_path / "other", "cpu")


# harmonics in one parameter


@pytest.mark.parametrize("selective", [False, True], ids=["adam", "selective"])
def test_one_optimizer_with_two_rates_is_two_optimizers(gpu_way, selective):
    """Through a duplication as densification makes it, and a state that is saved and read."""
    from gsplat.strategy.ops import duplicate

    from fujinsplat.compat.gsplat_strategy import SightAdam
    from fujinsplat.compat.optim import Adam
    from fujinsplat.splat.joined import JointAdam, JointSightAdam

    g = torch.Generator().manual_seed(0)
    start = torch.randn(40, 9, 3, generator=g)
    target = torch.randn(60, 9, 3, generator=g)
    kind = JointSightAdam if selective else JointAdam

    def alone(value, rate):
        return SightAdam(value, rate, 1e-15) if selective else Adam([value], lr=rate, eps=1e-15, fused=True)

    joined = {"sh": torch.nn.Parameter(start.clone())}
    apart = {"sh0": torch.nn.Parameter(start[:, :1].clone()), "shN": torch.nn.Parameter(start[:, 1:].clone())}
    adams = (
        {"sh": kind(joined["sh"], 0.05, 0.002, 1e-15)},
        {"sh0": alone(apart["sh0"], 0.05), "shN": alone(apart["shN"], 0.002)},
    )
    for step in range(12):
        n = len(joined["sh"])
        (joined["sh"] - target[:n]).square().sum().backward()
        (torch.cat([apart["sh0"], apart["shN"]], 1) - target[:n]).square().sum().backward()
        seen = (torch.rand(n, generator=g) > 0.4,) if selective else ()
        for adam in (*adams[0].values(), *adams[1].values()):
            adam.step(*seen)
            adam.zero_grad(set_to_none=True)
        if step == 4:
            mask = torch.arange(n) < 20
            for parameters, optimizers in ((joined, adams[0]), (apart, adams[1])):
                duplicate(params=parameters, optimizers=optimizers, state={}, mask=mask)
        if step == 8:
            fresh = kind(joined["sh"], 0.05, 0.002, 1e-15)
            fresh.load_state_dict(adams[0]["sh"].state_dict())
            adams[0]["sh"] = fresh
    assert len(joined["sh"]) == 60
    assert torch.allclose(joined["sh"], torch.cat([apart["sh0"], apart["shN"]], 1), rtol=1e-5, atol=1e-6)


def test_harmonics_are_not_copied_together(scene_files, tmp_path, gpu_way):
    """No concatenation in an iteration, whatever the active degree; what is stored is as ever."""
    early = counted_run(scene_files, tmp_path / "a", QUICK.model_copy(update={"sh_degree": 3}), 39)
    assert not early.kernels["cat"], early.kernels
    trained = train(inputs(scene_files), Composition(QUICK), tmp_path / "b", "cpu")
    assert set(trained.gaussians.parameters) == {"means", "quats", "scales", "opacities", "sh0", "shN"}
    assert trained.gaussians.parameters["shN"].shape[1] == 3


# on a card itself


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(
    "front, model, reconcile",
    [
        ("base", "gaussians", "delta"),
        ("base", "vanilla", "none"),
        ("base", "seasplat", "none"),
        ("base", "watersplatting", "none"),
        ("cleared", "gaussians", "none"),
    ],
)
def test_a_card_trains_as_the_cpu_does_and_goes_on(
    scene_files, smoky_files, tmp_path, monkeypatch, front, model, reconcile, device="cuda"
):
    from fujinsplat.rows.registries import AllSettings

    few = QUICK.model_copy(update={"iterations": 12, "checkpoint_seconds": 1e-9, "depth_from_points": 0.05})
    parts = Composition.of(AllSettings().model_copy(update={"splat": few}), front, model, reconcile)
    files = Inputs(smoky_files) if front == "cleared" else inputs(scene_files)
    ours, theirs = (log_of(train(files, parts, tmp_path / name, name)) for name in ("cpu", device))
    losses = [[entry["loss"] for entry in log] for log in (ours, theirs)]
    assert losses[1][:2] == pytest.approx(losses[0][:2], rel=1e-2) and losses[1] == pytest.approx(losses[0], rel=0.1)
    assert theirs[-1].get("gpu_memory_mb", 0) > 0
    step = training._Run.step

    def dies(self):
        if self.iteration == 6:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(training._Run, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(files, parts, tmp_path / "broken", device)
    monkeypatch.setattr(training._Run, "step", step)
    resumed = log_of(train(files, parts, tmp_path / "broken", device))
    assert [entry["loss"] for entry in resumed] == pytest.approx(losses[1], rel=0.05)


def test_the_model_in_the_docs_is_the_one_that_is_counted():
    """docs/scale.md: every line of the table of times follows from the table of counts above it."""
    text = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    rows = {}
    for name in ("densifying", "ordinary", "delta-ISP moving"):
        found = re.search(rf"^\| {name} \| ([\d,]+) \| ([\d,]+)[^|]* \| ([\d,]+) \|$", text, re.MULTILINE)
        assert found, name
        rows[name] = (*(int(number.replace(",", "")) for number in found.groups()), 0)
    for line in count_gpu.model(rows).splitlines()[2:]:
        assert line in text
