"""Training: what it minimises, that it learns, and that being killed changes nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import smooth_l1_loss

from fujinsplat.controller.data import batch_at
from fujinsplat.controller.losses import function_loss, parameter_loss, reconstruction_loss
from fujinsplat.controller.network import Controller
from fujinsplat.controller.presentations import PRESENTATIONS, predict, presented
from fujinsplat.controller.training import _Trainer, train
from fujinsplat.core.color import decode
from fujinsplat.core.settings import ControllerSettings
from fujinsplat.flow import apply, probe_grid
from fujinsplat.flow.photometric import Target

from .conftest import make_observations

QUICK = ControllerSettings(steps=20, batch=8, checkpoint_seconds=1e-6)


def test_losses_are_those_of_the_paper(observations):
    """Written out block by block and pixel by pixel."""
    random = torch.Generator().manual_seed(0)
    predicted, label = 0.3 * torch.randn(3, 573, generator=random), observations.label[:3]
    blocks = [
        smooth_l1_loss(predicted[:, b * 48 : b * 48 + 48].tanh(), label[:, b * 48 : b * 48 + 48].tanh(), beta=0.05)
        for b in range(8)
    ]
    coupling = smooth_l1_loss(predicted[:, 384:].tanh(), label[:, 384:].tanh(), beta=0.05)
    expected = torch.stack(blocks).mean() + coupling
    torch.testing.assert_close(parameter_loss(predicted, label, 7, 16, 0.05), expected)

    base, target = observations.base[:3], observations.target[:3]
    developed = apply(base, predicted)
    expected = (decode(developed) - decode(target)).abs().mean() + 0.25 * (developed - target).abs().mean()
    expected = expected + 0.01 * ((developed - 1).clamp_min(0) + (-developed).clamp_min(0)).mean()
    actual = reconstruction_loss(predicted, base, Target(target), 7, 16, ControllerSettings())
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_exact_labels_have_no_loss(observations):
    assert parameter_loss(observations.label, observations.label, 7, 16, 0.05) == 0
    target = Target(observations.target)
    assert reconstruction_loss(observations.label, observations.base, target, 7, 16, ControllerSettings()) < 1e-4
    assert function_loss(observations.label, observations.label, probe_grid(), 7, 16) == 0


def test_presentations_are_the_eight_of_the_square():
    """Four rotations, each with and without a flip: all different, and the first is the picture itself."""
    summary = torch.rand(1, 3, 64, 64).expand(PRESENTATIONS, -1, -1, -1)
    shown = presented(summary, torch.arange(PRESENTATIONS))
    assert torch.equal(shown[0], summary[0])
    assert len({tuple(picture.flatten()[:200].tolist()) for picture in shown}) == PRESENTATIONS
    assert torch.equal(shown[4], shown[0].flip(2))
    for picture in shown:
        assert torch.equal(picture.flatten().sort().values, summary[0].flatten().sort().values)


def test_predictions_average_as_many_presentations_as_asked():
    controller = Controller.seeded(1)
    with torch.no_grad():
        for head in (*controller.curve_heads, controller.coupling_head):
            head.weight.normal_(generator=torch.Generator().manual_seed(0))
    summaries = torch.rand(3, 3, 64, 64)
    with torch.no_grad():
        turned = [controller(presented(summaries, torch.full((3,), turn))) for turn in range(PRESENTATIONS)]
    torch.testing.assert_close(predict(controller, summaries, 1), turned[0])
    torch.testing.assert_close(predict(controller, summaries, 2), (turned[0] + turned[1]) / 2)
    torch.testing.assert_close(predict(controller, summaries), torch.stack(turned).mean(dim=0))
    controller.notes = {"presentations": "1"}  # as a file of a controller that looks once says
    torch.testing.assert_close(predict(controller, summaries), turned[0])


def test_prediction_does_not_depend_on_how_the_camera_was_held(observations):
    controller, _ = train(observations, ControllerSettings(steps=3))
    upright = predict(controller, observations.summary[:3], batch=2)
    turned = predict(controller, torch.rot90(observations.summary[:3], 1, dims=(2, 3)).flip(2))
    torch.testing.assert_close(upright, turned, rtol=0, atol=1e-5)
    assert not torch.allclose(controller(observations.summary[:3]), upright, atol=1e-6)


def test_every_epoch_shows_everything_once():
    steps = 3 * 12 * PRESENTATIONS // 16
    seen = [batch_at(step, 16, 12, seed=7) for step in range(steps)]
    pairs = [(int(o), int(p)) for rows, turns in seen for o, p in zip(rows, turns, strict=True)]
    for epoch in range(3):
        part = pairs[epoch * 96 : (epoch + 1) * 96]
        assert len(set(part)) == 96
    assert pairs[:96] != pairs[96:192]


def test_it_learns(observations):
    """Fifty updates halve the loss of labels that the summaries tell apart."""
    _, losses = train(observations, ControllerSettings(steps=60))
    assert losses[-5:, 0].mean() < 0.5 * losses[0, 0]
    assert losses[-5:, 1].mean() < 0.7 * losses[0, 1]


@pytest.mark.parametrize("killed_at", [1, 11, 19])
def test_killed_and_resumed_it_ends_with_the_same_weights(observations, tmp_path, killed_at):
    whole, losses = train(observations, QUICK)

    class Killed(Exception):
        pass

    def kill(step):
        if step == killed_at:
            raise Killed

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        train(observations, QUICK, checkpoint=checkpoint, on_step=kill)
    resumed, again = train(observations, QUICK, checkpoint=checkpoint)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert torch.equal(losses, again)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_card_trains_as_the_cpu_does_and_goes_on(observations, tmp_path, device="cuda"):
    """Products of a card are summed in another order, so weights agree to rounding and not to bits."""

    def kill(step: int) -> None:
        if step == 11:
            raise KeyboardInterrupt

    _, ours = train(observations, QUICK)
    whole, theirs = train(observations, QUICK, device=device)
    assert torch.allclose(ours, theirs, rtol=0.02, atol=1e-4)
    with pytest.raises(KeyboardInterrupt):
        train(observations, QUICK, checkpoint=tmp_path / "checkpoint", device=device, on_step=kill)
    resumed, again = train(observations, QUICK, checkpoint=tmp_path / "checkpoint", device=device)
    assert torch.allclose(theirs, again, rtol=1e-3, atol=1e-6)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.allclose(a, b, rtol=1e-2, atol=1e-4), name


def test_a_checkpoint_of_another_run_is_not_continued(observations, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    other = QUICK.model_copy(update={"seed": 1})
    train(observations, other, checkpoint=checkpoint)
    assert checkpoint.exists()
    fresh, _ = train(observations, QUICK)
    beside, _ = train(observations, QUICK, checkpoint=checkpoint)
    assert torch.equal(fresh.trunk[0].weight, beside.trunk[0].weight)


def test_a_half_that_labels_do_not_use_stays_zero():
    """Curves only: no prediction ever moves the couplings, although the reconstruction term would."""
    data = make_observations(couplings=False)
    data.label[:, 384:] = 0
    controller, _ = train(data, ControllerSettings(steps=8))
    action = controller(data.summary)
    assert (action[:, 384:] == 0).all() and action[:, :384].abs().max() > 0


def test_objectives(observations):
    """Reconstruction alone never looks at labels; draws from actions are compared as functions."""
    blind = make_observations(label=torch.zeros(12, 573))
    a, losses = train(observations, ControllerSettings(steps=3), objective="reconstruction")
    b, _ = train(blind, ControllerSettings(steps=3), objective="reconstruction")
    assert torch.equal(a.trunk[0].weight, b.trunk[0].weight)
    assert (losses[:, 0] == 0).all() and (losses[:, 1] > 0).all()
    _, losses = train(make_observations(draws="actions"), ControllerSettings(steps=3))
    assert (losses[:, 0] == 0).all() and (losses[:, 2] > 0).all()


def test_a_killed_process_resumes(observations, tmp_path):
    """The command, killed by the system in the middle of training, ends with the file of an unbroken run."""
    import json
    import time

    import numpy as np

    from fujinsplat.core.files import write_tensors

    shard = tmp_path / "0000.safetensors"
    arrays = {name: getattr(observations, name).numpy() for name in ("base", "label")}
    arrays |= {"raw_summary": observations.summary.numpy(), "clean": observations.target.numpy()}
    arrays["raw"] = np.zeros((12, 1), np.float32)
    form = {"K": 7, "M": 16, "draws": "veil", "curves": True, "couplings": True}
    write_tensors(shard, arrays, {"format": "fujinsplat observations 1", "form": json.dumps(form)})
    command = [
        sys.executable,
        "-m",
        "fujinsplat",
        "controller",
        "train",
        str(shard),
        "--threads",
        "1",
        "--device",
        "cpu",
    ]
    command += ["--settings", "{steps: 24, checkpoint_seconds: 0.01}"]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "a.safetensors")], cwd=root, stderr=subprocess.DEVNULL
    )
    checkpoint = tmp_path / ".a.safetensors.checkpoint"
    deadline = time.monotonic() + 100
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert checkpoint.exists() and not (tmp_path / "a.safetensors").exists()
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "a.safetensors")], cwd=root, capture_output=True, text=True
    )
    assert "going on from step" in done.stderr, done.stderr
    subprocess.run([*command, "--out", str(tmp_path / "b.safetensors")], cwd=root, check=True, capture_output=True)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert not checkpoint.exists()


def test_a_checkpoint_goes_to_the_device_of_the_run(observations, tmp_path):
    """Weights, both moments, step counters and losses; "meta" stands for a GPU that this machine has not."""
    path = tmp_path / "checkpoint"

    def trainer(device: str) -> _Trainer:
        return _Trainer(Controller.seeded(1, observations.K, observations.M), observations, QUICK, "label", device)

    here = trainer("cpu")
    for step in range(3):
        here.update(step)
    here.save(path, 3)
    there = trainer("meta")
    assert there.resume(path) == 0, "a run on another kind of device is another run"
    there.key = here.key
    assert there.resume(path) == 3
    states = [there.optimiser.state[parameter] for parameter in there.parameters]
    assert all({"step", "exp_avg", "exp_avg_sq"} == set(state) for state in states)
    devices = {tensor.device.type for state in states for tensor in state.values()}
    assert devices | {there.losses.device.type} == {"meta"}
