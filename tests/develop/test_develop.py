"""Developing a scene: every kind of variant, from real capture folders, opening nothing it should not."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fujinsplat.config import Variant
from fujinsplat.controller import Controller, load, predict, save, summarise
from fujinsplat.develop import Developed, corrected, develop_scene
from fujinsplat.develop.plan import OPENS, kind_of
from fujinsplat.develop.scene import spread
from fujinsplat.develop.sheet import contact_sheet
from fujinsplat.errors import UserError
from fujinsplat.files import write_json
from fujinsplat.flow import Actions, apply
from fujinsplat.flow import save as save_actions
from fujinsplat.isp import BaseISP, develop, materialize
from fujinsplat.isp import save as save_base

STEMS = ["0001", "0002", "0003"]


def write_views(folder: Path, brightness: float) -> None:
    """Three views as the capture stage writes them."""
    folder.mkdir(parents=True)
    for number, stem in enumerate(STEMS):
        random = np.random.default_rng(number)
        raw = brightness * (0.2 + 0.8 * random.random((20, 30, 3))) * (1 + number / 4)
        np.save(folder / f"{stem}.npy", np.rint(raw * 65535).astype(np.uint16))
        Image.fromarray(random.integers(0, 255, (20, 30, 3)).astype(np.uint8)).save(folder / f"{stem}.png")
    write_json(
        folder / "views.json",
        [{"stem": stem, "white_balance": [2.0, 1.0, 1.5], "camera_matrix": None} for stem in STEMS],
    )


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    write_views(folder / "source", 0.1)
    write_views(folder / "clean", 0.2)
    save_base(BaseISP(0.5, (0.3, 0.0, -0.2)), folder / "base.safetensors")
    torch.manual_seed(0)
    for K, M in ((7, 16), (5, 16)):
        controller = Controller(K, M)
        for head in (*controller.curve_heads, controller.coupling_head):
            torch.nn.init.normal_(head.weight, std=0.05)
        save(controller, folder / f"controller{K}.safetensors", input="raw")
        save(controller, folder / f"rgb{K}.safetensors", input="rgb")
    random = torch.Generator().manual_seed(1)
    save_actions(
        folder / "actions.safetensors", Actions(0.1 * torch.randn(3, 573, generator=random), stems=STEMS[::-1])
    )
    return folder


def arguments(scene: Path, kind: str) -> dict[str, Path]:
    files = {"source": "source", "clean": "clean", "base": "base.safetensors"}
    files |= {"controller": "controller7.safetensors", "actions": "actions.safetensors"}
    return {name: scene / files[name] for name in OPENS[kind]}


def raw_of(scene: Path, stem: str, part: str = "source") -> np.ndarray:
    return np.load(scene / part / f"{stem}.npy").astype(np.float32) / 65535


@pytest.mark.parametrize("kind", list(OPENS))
def test_every_kind(scene, tmp_path, kind):
    develop_scene(kind, tmp_path / "v.safetensors", **arguments(scene, kind))
    made = Developed(tmp_path / "v.safetensors")
    assert made.stems == STEMS and (made.K, made.M, made.kind) == (7, 16, kind)
    for row, stem in enumerate(STEMS):
        if kind in ("camera", "clean"):
            expected = np.array(Image.open(scene / ("clean" if kind == "clean" else "source") / f"{stem}.png"))
        else:
            expected = materialize(develop(BaseISP(0.5, (0.3, 0.0, -0.2)), raw_of(scene, stem)))
        np.testing.assert_array_equal(made.base(stem), expected)
        if kind == "controller":
            summary = summarise(torch.from_numpy(raw_of(scene, stem)))[None]
            action = predict(load(scene / "controller7.safetensors"), summary)[0]
            np.testing.assert_allclose(made.action(stem), action.numpy(), atol=1e-6)
        elif kind == "expert":
            from fujinsplat.flow import load as load_actions

            np.testing.assert_array_equal(
                made.action(stem), load_actions(scene / "actions.safetensors").of(stem).numpy()
            )
        else:
            assert np.abs(made.actions[row]).max() == 0


def test_rgb_input_is_summarised_from_the_base_output(scene, tmp_path):
    given = {**arguments(scene, "controller"), "controller": scene / "rgb7.safetensors"}
    develop_scene("controller", tmp_path / "v.safetensors", input="rgb", **given)
    encoded = develop(BaseISP(0.5, (0.3, 0.0, -0.2)), raw_of(scene, "0002"))
    expected = predict(load(scene / "rgb7.safetensors"), summarise(torch.from_numpy(encoded))[None])[0]
    np.testing.assert_allclose(Developed(tmp_path / "v.safetensors").action("0002"), expected.numpy(), atol=1e-6)


def test_a_shared_action_is_the_mean_of_the_predictions(scene, tmp_path):
    for shared in (False, True):
        path = tmp_path / f"{shared}.safetensors"
        develop_scene("controller", path, shared=shared, **arguments(scene, "controller"))
    own, same = (Developed(tmp_path / f"{shared}.safetensors").actions for shared in (False, True))
    assert np.ptp(own, axis=0).max() > 1e-5 and np.ptp(same, axis=0).max() == 0
    np.testing.assert_allclose(same[0], own.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"controller": "controller5.safetensors"}, "K = 5, but K = 7"),
        ({"controller": "rgb7.safetensors"}, "input = rgb, but input = raw"),
        ({"controller": None}, "needs --controller"),
        ({"clean": "clean"}, "must not be given --clean"),
        ({"base": "nothing.safetensors"}, "does not exist"),
    ],
)
def test_mistakes_write_nothing(scene, tmp_path, changes, match):
    given = arguments(scene, "controller") | {k: scene / v if v else None for k, v in changes.items()}
    with pytest.raises(UserError, match=match):
        develop_scene("controller", tmp_path / "v.safetensors", **given)
    assert list(tmp_path.iterdir()) == []


def test_only_oracles_open_clean_twins():
    """Whatever a variant's fields, clean twins and what was fitted to them are opened by oracles alone."""
    for oracle in ("none", "expert", "clean"):
        for input in ("raw", "rgb", "none"):
            variant = Variant(oracle=oracle, input=input, delta=input != "none" or oracle == "expert")
            opened = set(OPENS[kind_of(variant)])
            assert bool(opened & {"clean", "actions"}) == (oracle != "none")
    assert kind_of(Variant(base="none", input="none", delta=False)) == "camera"
    assert kind_of(Variant(curves=False, couplings=False)) == "base"


def test_contact_sheet_and_spread(scene, tmp_path):
    develop_scene("expert", tmp_path / "v.safetensors", **arguments(scene, "expert"))
    contact_sheet(tmp_path / "v.safetensors", tmp_path / "a.png", scene / "source")
    contact_sheet(tmp_path / "v.safetensors", tmp_path / "b.png", scene / "source", scene / "clean", most=2)
    with Image.open(tmp_path / "a.png") as three, Image.open(tmp_path / "b.png") as four:
        assert four.width > three.width and four.height < three.height
    made = Developed(tmp_path / "v.safetensors")
    said = spread(made.actions, 7, 16)
    mean = made.actions.mean(axis=0)
    assert said["mean_norm"] == pytest.approx(np.linalg.norm(mean), rel=1e-5)
    np.testing.assert_allclose(said["displacement_norm"], np.linalg.norm(made.actions - mean, axis=1), rtol=1e-4)
    json.dumps(said, allow_nan=False)


def test_corrected_is_the_flow_on_the_base_output(scene, tmp_path):
    develop_scene("expert", tmp_path / "v.safetensors", **arguments(scene, "expert"))
    made = Developed(tmp_path / "v.safetensors")
    base = torch.from_numpy(made.base("0001") / 255.0)
    expected = apply(base, torch.from_numpy(made.action("0001")).double()).clamp(0, 1)
    shown = corrected(made.base("0001"), made.action("0001"), 7, 16)
    assert np.abs(shown / 255 - expected.numpy()).max() <= 0.5 / 255 + 1e-5
