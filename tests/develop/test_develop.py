"""Developing a scene: every kind of row, from real capture folders, opening nothing it should not."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fujinsplat.controller import Controller, load, predict, save, summarise
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_json
from fujinsplat.develop import Developed, corrected
from fujinsplat.develop import command as develop_command
from fujinsplat.develop.corrections import CORRECTIONS
from fujinsplat.develop.inspect import spread
from fujinsplat.develop.sheet import contact_sheet
from fujinsplat.flow import Actions, apply
from fujinsplat.flow import save as save_actions
from fujinsplat.isp import BaseISP, develop, materialize
from fujinsplat.isp import save as save_base
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import RowSpec, compose
from fujinsplat.views import Views
from fujinsplat.views import command as views_command
from fujinsplat.views.fronts import FRONTS

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


FILES = {"source": "source", "clean": "clean", "base": "base.safetensors"}
FILES |= {"controller": "controller7.safetensors", "actions": "actions.safetensors"}


def run(command, part, scene: Path, out: Path, settings: dict | None = None, **changes) -> None:
    """The command of a front or a correction, with what the part opens; `changes` name other files, None leaves out."""
    settings = {"controller": {"input": "raw"}, **(settings or {})}
    named = {need: scene / FILES[need] for need in part.opens(AllSettings(**settings))} | changes
    inputs = [f"{name}={path}" for name, path in named.items() if path]
    command(out, part.name, inputs=inputs, settings=json.dumps(settings), device="cpu")


def make_views(front: str, scene: Path, out: Path, **changes) -> Views:
    run(views_command.make, FRONTS[front], scene, out, **changes)
    return Views(out)


def develop_scene(correction: str, scene: Path, views: Path, out: Path, **changes) -> Developed:
    run(develop_command.scene, CORRECTIONS[correction], scene, out, views=views, **changes)
    return Developed(out)


@pytest.fixture(scope="module")
def base_views(scene) -> Path:
    make_views("base", scene, scene / "views.safetensors")
    return scene / "views.safetensors"


def raw_of(scene: Path, stem: str, part: str = "source") -> np.ndarray:
    return np.load(scene / part / f"{stem}.npy").astype(np.float32) / 65535


@pytest.mark.parametrize("front", ["base", "camera", "clean"])
def test_every_front(scene, tmp_path, front):
    made = make_views(front, scene, tmp_path / "f.safetensors")
    assert made.stems == STEMS and made.front == front
    for stem in STEMS:
        if front == "base":
            expected = materialize(develop(BaseISP(0.5, (0.3, 0.0, -0.2)), raw_of(scene, stem)))
        else:
            part = {"camera": "source", "clean": "clean"}[front]
            expected = np.array(Image.open(scene / part / f"{stem}.png"))
        np.testing.assert_array_equal(made.encoded(stem), expected)


@pytest.mark.parametrize("correction", ["none", "controller", "mean", "expert"])
def test_every_correction(scene, tmp_path, base_views, correction):
    made = develop_scene(correction, scene, base_views, tmp_path / "v.safetensors")
    assert made.stems == STEMS and (made.K, made.M, made.correction) == (7, 16, correction)
    network = load(scene / "controller7.safetensors")
    predicted = [predict(network, summarise(torch.from_numpy(raw_of(scene, s)))[None])[0].numpy() for s in STEMS]
    for row, stem in enumerate(STEMS):
        if correction == "controller":
            np.testing.assert_allclose(made.action(stem), predicted[row], atol=1e-6)
        elif correction == "mean":
            np.testing.assert_allclose(made.action(stem), np.mean(predicted, axis=0), atol=1e-6)
        elif correction == "expert":
            from fujinsplat.flow import load as load_actions

            np.testing.assert_array_equal(
                made.action(stem), load_actions(scene / "actions.safetensors").of(stem).numpy()
            )
        else:
            assert correction == "none" and np.abs(made.actions[row]).max() == 0


def test_actions_have_the_size_of_the_rows_flow(scene, tmp_path, base_views):
    small = {"flow": {"K": 5}}
    for correction, given in (("none", {}), ("controller", {"controller": scene / "controller5.safetensors"})):
        made = develop_scene(correction, scene, base_views, tmp_path / correction, settings=small, **given)
        assert (made.K, made.M) == (5, 16)
    with pytest.raises(UserError, match="K = 7, M = 16; the row asks for 5"):
        develop_scene("expert", scene, base_views, tmp_path / "expert", settings=small)


def test_rgb_input_is_summarised_from_the_base_output(scene, tmp_path, base_views):
    given = {"settings": {"controller": {"input": "rgb"}}, "controller": scene / "rgb7.safetensors"}
    made = develop_scene("controller", scene, base_views, tmp_path / "v.safetensors", **given)
    encoded = develop(BaseISP(0.5, (0.3, 0.0, -0.2)), raw_of(scene, "0002"))
    expected = predict(load(scene / "rgb7.safetensors"), summarise(torch.from_numpy(encoded))[None])[0]
    np.testing.assert_allclose(made.action("0002"), expected.numpy(), atol=1e-6)


def test_a_shared_action_is_the_mean_of_the_predictions(scene, tmp_path, base_views):
    own, same = (
        develop_scene(name, scene, base_views, tmp_path / f"{name}.safetensors").actions
        for name in ("controller", "mean")
    )
    assert np.ptp(own, axis=0).max() > 1e-5 and np.ptp(same, axis=0).max() == 0
    np.testing.assert_allclose(same[0], own.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize(
    ("part", "changes", "match"),
    [
        ("controller", {"controller": "controller5.safetensors"}, "K = 5, but K = 7"),
        ("controller", {"controller": "rgb7.safetensors"}, "input = rgb, but input = raw"),
        ("controller", {"controller": None}, "needs --input controller=PATH"),
        ("controller", {"views": None}, "needs --input views=PATH"),
        ("controller", {"clean": "clean"}, "must not be given --input clean"),
        ("none", {"source": "source"}, "must not be given --input source"),
        ("controller", {"views": "nothing.safetensors"}, "does not exist"),
        ("base", {"base": "nothing.safetensors"}, "does not exist"),
        ("base", {"source": None}, "needs --input source=PATH"),
        ("camera", {"clean": "clean"}, "must not be given --input clean"),
    ],
)
def test_mistakes_write_nothing(scene, tmp_path, base_views, part, changes, match):
    given = {name: scene / file if file else None for name, file in changes.items()}
    with pytest.raises(UserError, match=match):
        if part in FRONTS:
            make_views(part, scene, tmp_path / "v.safetensors", **given)
        else:
            develop_scene(part, scene, given.pop("views", base_views), tmp_path / "v.safetensors", **given)
    assert list(tmp_path.iterdir()) == []


def test_only_oracles_open_clean_twins():
    """Whatever a row's parts, clean twins and what was fitted to them are opened by oracles alone."""
    oracles = set()
    for front, correction, input in itertools.product(FRONTS.names(), CORRECTIONS.names(), ("raw", "rgb")):
        if FRONTS[front].light and correction != "none":
            continue  # linear light takes no action: such a row is refused
        row = compose({"r": RowSpec(front=front, correction=correction)}, set())["r"]
        settings = AllSettings(controller={"input": input})
        opened = set(row.opens(settings))
        assert bool(opened & {"clean", "actions"}) == row.oracle(settings) and "held" not in opened
        if row.oracle(settings):
            oracles.add((front, correction))
    assert {(f, c) for f, c in oracles if f != "clean" and c != "expert"} == set()
    assert {("clean", "none"), ("base", "expert")} <= oracles
    assert FRONTS["camera"].opens(AllSettings()) == ("source",)


def test_contact_sheet_and_spread(scene, tmp_path, base_views):
    made = develop_scene("expert", scene, base_views, tmp_path / "v.safetensors")
    contact_sheet(made.path, base_views, tmp_path / "a.png", scene / "source")
    contact_sheet(made.path, base_views, tmp_path / "b.png", scene / "source", scene / "clean", most=2)
    with Image.open(tmp_path / "a.png") as three, Image.open(tmp_path / "b.png") as four:
        assert four.width > three.width and four.height < three.height
    said = spread(made.actions, 7, 16)
    mean = made.actions.mean(axis=0)
    assert said["mean_norm"] == pytest.approx(np.linalg.norm(mean), rel=1e-5)
    np.testing.assert_allclose(said["displacement_norm"], np.linalg.norm(made.actions - mean, axis=1), rtol=1e-4)
    json.dumps(said, allow_nan=False)


def test_corrected_is_the_flow_on_the_base_output(scene, tmp_path, base_views):
    made, picture = develop_scene("expert", scene, base_views, tmp_path / "v.safetensors"), Views(base_views)
    base = torch.from_numpy(picture.encoded("0001") / 255.0)
    expected = apply(base, torch.from_numpy(made.action("0001")).double()).clamp(0, 1)
    shown = corrected(picture.encoded("0001"), made.action("0001"), 7, 16)
    assert np.abs(shown / 255 - expected.numpy()).max() <= 0.5 / 255 + 1e-5
