"""What `test_card.py` runs in a process of its own, on a pretend GPU."""

import sys
from pathlib import Path

import pytest
import torch
from test_cuda_path import QUICK, inputs, log_of

from fujinsplat.capture import read_cameras
from fujinsplat.core.settings import ControllerSettings
from fujinsplat.rows.registries import AllSettings
from fujinsplat.splat import rasterize
from fujinsplat.splat import train as training
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.render import render_encoded
from fujinsplat.splat.train import Composition, train

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture(scope="module", autouse=True)
def card():
    import card

    with pytest.MonkeyPatch.context() as patch:
        card.install(patch)
        yield card


def test_what_a_gpu_refuses_is_refused(card):
    here, there = torch.ones(3), torch.ones(3, device=card.NAME)
    assert (there * torch.tensor(2.0) + there.cpu().to(card.NAME)).tolist() == [3, 3, 3]
    for mixed in (
        lambda: here + there,
        lambda: torch.cat([here, there]),
        lambda: there.index_add(0, here.long(), there),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            mixed()
    with pytest.raises((RuntimeError, TypeError), match="numpy"):
        there.numpy()
    gaussians = [torch.rand(4, n, device=card.NAME) for n in (3, 4, 3)]
    with pytest.raises((AssertionError, RuntimeError), match=r"CPU|same device"):
        rasterize(*gaussians, torch.rand(4, device=card.NAME), torch.rand(4, 1, 3), torch.eye(4), torch.eye(3), 8, 8)


@pytest.mark.parametrize(
    "model, reconcile, more",
    [("gaussians", "delta", {}), ("gaussians", "none", {"selective_adam": True}), ("watersplatting", "none", {})],
)
def test_a_training_grows_breaks_off_and_goes_on(scene_files, tmp_path, monkeypatch, card, model, reconcile, more):
    """With densification and the points' depth; the model is stored, read again on the card and drawn."""
    few = {"iterations": 12, "densify_every": 3, "grad_threshold": 1e-7, "depth_from_points": 0.05, **more}
    settings = QUICK.model_copy(update={"checkpoint_seconds": 1e-9, **few})
    parts = Composition.of(AllSettings().model_copy(update={"splat": settings}), "base", model, reconcile)
    whole = train(inputs(scene_files), parts, tmp_path / "whole", card.NAME)
    assert all(entry["loss"] == entry["loss"] for entry in log_of(whole))
    assert model != "gaussians" or len(whole.gaussians) > 200, "it has grown"
    assert card.OPERATIONS["rasterize_to_pixels_3dgs_bwd"] and whole.gaussians.parameters["means"].device.type == "card"
    step = training._Run.step

    def dies(self):
        if self.iteration == 6:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(training._Run, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(inputs(scene_files), parts, tmp_path / "broken", card.NAME)
    monkeypatch.setattr(training._Run, "step", step)
    resumed = train(inputs(scene_files), parts, tmp_path / "broken", card.NAME)
    for name, value in whole.gaussians.parameters.items():
        assert torch.equal(value.cpu(), resumed.gaussians.parameters[name].cpu()), name
    whole.gaussians.save(tmp_path / "model.safetensors", {})
    stored = Gaussians.load(tmp_path / "model.safetensors", card.NAME)
    pictures = [
        render_encoded(g, read_cameras(scene_files.cameras, "held")[0]).cpu() for g in (whole.gaussians, stored)
    ]
    assert torch.equal(*pictures) and float(pictures[0].std()) > 0.01


def test_a_controller_breaks_off_and_goes_on(tmp_path, card):
    """Step counters and moments go on beside the weights."""
    from fujinsplat.controller.data import Observations
    from fujinsplat.controller.training import train as train_controller

    g = torch.Generator().manual_seed(0)
    pictures = [torch.rand(8, *shape, generator=g) for shape in ((3, 64, 64), (16, 3), (16, 3))]
    label = 0.1 * torch.randn(8, 573, generator=g)
    data = Observations(*pictures, label, K=7, M=16, draws="veil", curves=True, couplings=True, key="test")
    quick = ControllerSettings(steps=8, batch=4, checkpoint_seconds=1e-9)
    whole, losses = train_controller(data, quick, device=card.NAME)

    def kill(step: int) -> None:
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_controller(data, quick, checkpoint=tmp_path / "checkpoint", device=card.NAME, on_step=kill)
    resumed, again = train_controller(data, quick, checkpoint=tmp_path / "checkpoint", device=card.NAME)
    assert torch.equal(losses, again) and card.OPERATIONS["_fused_adamw_"]
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
