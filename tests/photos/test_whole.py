"""The whole way on a demo scene: its smoky DNG and JPEG alone, through a bent lens, under scrambled names, one command.

    FUJINSPLAT_TEST_PHOTOS=1 .venv/bin/pytest tests/photos/test_whole.py -s       (some minutes on two cores)

The suite runs the same on a smaller world (test_command.py).
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import yaml
from PIL import Image

from fujinsplat.capture import read_cameras
from fujinsplat.capture.cameras import Camera
from fujinsplat.capture.layout import find_scene
from fujinsplat.capture.poses import read_poses
from fujinsplat.core.settings import DemoSettings
from fujinsplat.photos.follow import CHECKOUT
from fujinsplat.photos.run import Request, run

from .card import make_card, true_scene
from .score import errors, found_and_true, held_psnr, lay_on, moved

SCENE, ROW = "Kogarashi", "smoke"
TWO = ("out", "card"), ("true", SCENE)  # folders, and what the scene is called there


@pytest.mark.skipif(not os.environ.get("FUJINSPLAT_TEST_PHOTOS"), reason="minutes; FUJINSPLAT_TEST_PHOTOS=1 runs it")
def test_held_views_are_as_good_as_with_the_true_poses(tmp_path):
    from fujinsplat.demo import write_scene

    write_scene(tmp_path / "demo", SCENE, DemoSettings(), 2)
    names = make_card(tmp_path / "demo", SCENE, tmp_path / "card")
    run(Request(tmp_path / "card", tmp_path / "out", preset="quick", row=ROW))

    true_scene(tmp_path / "demo", SCENE, tmp_path / "true")
    config = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())
    config["datasets"]["photos"]["scenes"] = [SCENE]
    (tmp_path / "true" / "config.yaml").write_text(yaml.safe_dump(config))
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(CHECKOUT / "Snakefile"), "--cores", "all"]
    target = f"results/photos/gaussians/{SCENE}/{ROW}.ply"
    subprocess.run([*words, target], check=True, cwd=tmp_path / "true", env={**os.environ, "PYTHONPATH": str(CHECKOUT)})

    poses = read_poses(find_scene(tmp_path / "demo", SCENE), (240, 160))
    cameras = read_cameras(tmp_path / "out/results/photos/capture/card/cameras.json")
    true, found = found_and_true(cameras, tmp_path / "out/data/card", names, poses.source)
    motion, held, pictures = lay_on(true, found), list(poses.held.values()), tmp_path / "demo" / SCENE / "test"
    turn, away = errors(true, found)
    print(f"{len(found)} views, {turn:.2f} degrees, {away:.2%}")
    assert len(found) == len(names)
    made = f"results/photos/gaussians/{{}}/{ROW}."
    trained = [tmp_path / folder / f"{made.format(s)}linear.safetensors" for folder, s in TWO]
    handed_out = [tmp_path / "out" / "scene.ply", tmp_path / "true" / f"{made.format(SCENE)}ply"]
    for ours, theirs in (trained, handed_out):
        with_found = held_psnr(ours, [moved(camera, motion) for camera in held], pictures)
        with_true = held_psnr(theirs, held, pictures)
        print(f"{ours.name}: held {with_found:.2f} dB, true {with_true:.2f} dB")
        assert with_found > with_true - 1.0, ours


def test_a_ply_is_scored_as_a_viewer_shows_it(tmp_path):
    from fujinsplat.splat.export import viewer_render
    from fujinsplat.splat.ply import read_ply, write_ply
    from fujinsplat.splat.render import render_encoded
    from tests.splat.conftest import world

    model = world(200)
    write_ply(tmp_path / "scene.ply", model)
    model.save(tmp_path / "model.safetensors", {})
    camera = Camera("a", 48, 32, np.array([[40.0, 0, 24], [0, 40, 16], [0, 0, 1]]), np.eye(4))
    shown = {
        "scene.ply": viewer_render(read_ply(tmp_path / "scene.ply"), camera),
        "model.safetensors": render_encoded(model, camera),
    }
    for name, picture in shown.items():
        eight_bit = (picture.detach().numpy() * 255 + 0.5).astype(np.uint8)
        Image.fromarray(eight_bit).save(tmp_path / "a.JPG", "PNG")  # without loss
        scores = {other: held_psnr(tmp_path / other, [camera], tmp_path) for other in shown}
        assert scores.pop(name) > 45 and max(scores.values()) < 30
