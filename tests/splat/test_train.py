"""Training on a small real scene: it learns, keeps its bounds, refuses what cannot work."""

import json
import shutil

import numpy as np
import pytest
import torch

from fujinsplat.capture import read_cameras
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_json
from fujinsplat.core.metrics import psnr
from fujinsplat.core.settings import PAPER_ITERATIONS, SplatSettings
from fujinsplat.develop.store import Developed
from fujinsplat.splat.data import TrainingScene, area_weights
from fujinsplat.splat.reconcilers.delta import DeltaISP, DeltaSettings
from fujinsplat.splat.render import render_encoded
from fujinsplat.splat.schedule import Schedule
from fujinsplat.splat.train import Composition, Inputs, train
from fujinsplat.views.store import Pictures, Views

QUICK = SplatSettings(iterations=300, sh_degree=1, densify_every=20, max_gaussians=900, bake_steps=0)


def inputs(files, **others):
    return Inputs({name: getattr(files, name) for name in ("views", "developed", "cameras", "points")} | others)


def scene_of(files, settings):
    return TrainingScene(files.views, files.developed, files.cameras, files.points, settings, "cpu")


def plain(files, folder):
    """The same scene with identity actions: its targets are the true pictures."""
    stored = Developed(files.developed)
    path = folder / "plain.safetensors"
    Developed.write(path, np.zeros_like(stored.actions), stored.stems, 7, 16, "test")
    return path


def held_psnr(files, gaussians):
    cameras = read_cameras(files.cameras, "held")
    truth = [torch.from_numpy(files.held[c.stem]).float() / 255 for c in cameras]
    return np.mean([psnr(render_encoded(gaussians, c), t) for c, t in zip(cameras, truth, strict=True)])


def test_it_learns_the_scene(scene_files, tmp_path):
    trained = train(
        inputs(scene_files, developed=plain(scene_files, tmp_path)), Composition(QUICK), tmp_path / "run", "cpu"
    )
    log = [json.loads(line) for line in trained.checkpoints.log_file.read_text().splitlines()]
    assert log[-1]["iteration"] == 300 and log[-1]["loss"] < 0.5 * log[0]["loss"]
    assert held_psnr(scene_files, trained.gaussians) > 24
    assert {"loss", "psnr", "gaussians", "iterations_per_second", "memory_mb", "view"} <= set(log[0])
    assert set(trained.summary["alpha"].values()) == {1.0} and not trained.summary["delta"]


def test_the_number_of_gaussians_is_bounded(scene_files, tmp_path):
    greedy = QUICK.model_copy(update={"max_gaussians": 260, "grad_threshold": 1e-7, "iterations": 150})
    trained = train(inputs(scene_files), Composition(greedy), tmp_path / "run", "cpu")
    log = [json.loads(line) for line in trained.checkpoints.log_file.read_text().splitlines()]
    assert 230 < max(entry["gaussians"] for entry in log) <= 260


def test_targets_within_a_tiny_memory_budget_are_the_same(scene_files, tmp_path):
    few = QUICK.model_copy(update={"iterations": 60, "memory_mb": 1})
    results = []
    for budget in (1e-6, 4000):
        scene = scene_of(scene_files, few)
        scene._budget.limit = budget * 1e6
        results.append([scene.target(i % 6, scene.actions).clone() for i in range(12)])
        assert scene._budget.held <= max(budget * 1e6, results[-1][0].nbytes)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def window(iterations: int) -> range:
    """The iterations at which the delta-ISP moves in a run of this length."""
    delta = DeltaISP(torch.zeros(2, 573), DeltaSettings(), iterations)
    moving = [iteration for iteration in range(1, iterations + 1) if delta.moving(iteration)]
    assert moving == list(delta.window) and delta.settled(moving[-1]) and not delta.settled(moving[-2])
    return delta.window


def test_delta_window_only(scene_files, tmp_path):
    """alpha rests at 0 before its window, moves within it, and rests again behind it; the mean stays zero."""
    # 1/150 of the paper's run: the window is 87 to 107 of 120
    short = QUICK.model_copy(update={"iterations": 120})
    trained = train(inputs(scene_files), Composition(short, reconcile="delta"), tmp_path / "run", "cpu")
    log = {e["iteration"]: e for e in map(json.loads, trained.checkpoints.log_file.read_text().splitlines())}
    assert window(short.iterations) == range(88, 108)
    assert log[87]["alpha_max"] == 0 and log[107]["alpha_max"] > 0
    assert log[120]["alpha_mean"] == log[107]["alpha_mean"]
    assert all(entry["delta_residual"] <= 1e-9 for entry in log.values())
    alpha = trained.summary["alpha"].values()
    assert 0 <= min(alpha) and max(alpha) <= 1 and trained.summary["residual"] <= 1e-9 and trained.summary["delta"]


def test_windows_keep_their_share():
    paper, demo = Schedule.of(SplatSettings()), Schedule.of(SplatSettings(iterations=1800))
    assert (paper.densify_from, paper.densify_until) == (500, 6000)
    assert (demo.densify_from, demo.densify_until) == (50, 600)
    assert window(PAPER_ITERATIONS) == range(13001, 16001) and window(1800) == range(1301, 1601)
    assert [paper.sh_degree(i, 3) for i in (1, 999, 1000, 2000, 3000, 9000)] == [0, 0, 1, 2, 3, 3]


def test_positions_slow_down_over_the_run_or_over_the_original_horizon():
    ours, paper = SplatSettings(), SplatSettings.paper()
    rate = lambda s, i: Schedule.of(s).position_rate(i, s)  # noqa: E731
    assert rate(ours, 1) == rate(paper, 1) == pytest.approx(1.6e-4)
    assert rate(ours, 18000) == pytest.approx(1.6e-6)
    assert rate(paper, 18000) == pytest.approx(1.0e-5, rel=0.02) and rate(paper, 30000) == pytest.approx(1.6e-6)
    short = paper.model_copy(update={"iterations": 1800})  # the horizon keeps its share of the run
    assert rate(short, 1800) == pytest.approx(rate(paper, 18000), rel=0.01)


def test_large_pictures_are_reduced_in_linear_light(scene_files):
    half = SplatSettings(max_width=30)
    scene = scene_of(scene_files, half)
    whole = scene_of(scene_files, SplatSettings())
    from fujinsplat.core.color import decode, encode

    small, large = scene.target(0, scene.actions), whole.target(0, whole.actions)
    assert small.shape == (22, 30, 3) and large.shape == (44, 60, 3)
    expected = encode(decode(large).reshape(22, 2, 30, 2, 3).mean((1, 3)))
    assert torch.allclose(small, expected, atol=1e-5)
    assert torch.allclose(scene.views[0].K[:2], whole.views[0].K[:2] / 2)
    assert torch.allclose(area_weights(7, 3, "cpu").sum(1), torch.ones(3))


def test_divergence_names_iteration_view_and_checkpoint(scene_files, tmp_path):
    wild = QUICK.model_copy(update={"lr_means": 1e38, "lr_means_final": 1e38})
    with pytest.raises(UserError, match=r"diverged at iteration \d+, view '000\d'.*checkpoint"):
        train(inputs(scene_files), Composition(wild), tmp_path / "run", "cpu")


def test_one_view_is_refused(scene_files, tmp_path):
    stored = Developed(scene_files.developed)
    path = tmp_path / "one.safetensors"
    Developed.write(path, stored.actions[:1], ["0000"], 7, 16, "test")
    with pytest.raises(UserError, match="at least two"):
        train(inputs(scene_files, developed=path), Composition(QUICK), tmp_path / "run", "cpu")


def test_a_view_without_a_camera_is_refused(scene_files, tmp_path):
    cameras = json.loads(scene_files.cameras.read_text())
    cameras["source"] = cameras["source"][1:]
    write_json(tmp_path / "cameras.json", cameras)
    broken = inputs(scene_files, cameras=tmp_path / "cameras.json")
    with pytest.raises(UserError, match="no camera for view '0000'"):
        train(broken, Composition(QUICK), tmp_path / "run", "cpu")


def test_a_view_without_a_picture_is_refused(scene_files, tmp_path):
    stored = Views(scene_files.views)
    path = tmp_path / "views.safetensors"
    Views.write(path, Pictures({stem: stored.encoded(stem) for stem in stored.stems[1:]}), "test")
    with pytest.raises(UserError, match="no picture of view '0000'"):
        train(inputs(scene_files, views=path), Composition(QUICK), tmp_path / "run", "cpu")


def test_no_points_are_refused(scene_files, tmp_path):
    text = "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    (tmp_path / "points.ply").write_text(text)
    broken = inputs(scene_files, points=tmp_path / "points.ply")
    with pytest.raises(UserError, match="points"):
        train(broken, Composition(QUICK), tmp_path / "run", "cpu")


def test_one_point_is_no_scene(scene_files, tmp_path):
    text = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    (tmp_path / "points.ply").write_text(text + "0 0 3\n")
    lonely = inputs(scene_files, points=tmp_path / "points.ply")
    with pytest.raises(UserError, match=r"points\.ply holds 1 points, and training needs 4"):
        train(lonely, Composition(QUICK), tmp_path / "run", "cpu")


def test_a_checkpoint_of_other_settings_is_not_resumed(scene_files, tmp_path, capsys):
    few = QUICK.model_copy(update={"iterations": 40})
    train(inputs(scene_files), Composition(few), tmp_path / "run", "cpu")
    other = Composition(few.model_copy(update={"seed": 1}))
    again = train(inputs(scene_files), other, tmp_path / "run", "cpu")
    assert "other inputs or settings" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "run")
    fresh = train(inputs(scene_files), other, tmp_path / "run", "cpu")
    assert torch.equal(again.gaussians.parameters["means"], fresh.gaussians.parameters["means"])


def test_a_damaged_checkpoint_costs_time_only(scene_files, tmp_path, capsys):
    few = QUICK.model_copy(update={"iterations": 20})
    whole = train(inputs(scene_files), Composition(few), tmp_path / "run", "cpu")
    state = tmp_path / "run" / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    again = train(inputs(scene_files), Composition(few), tmp_path / "run", "cpu")
    assert "cannot be read" in capsys.readouterr().err
    assert torch.equal(again.gaussians.parameters["sh0"], whole.gaussians.parameters["sh0"])
