"""The whole way on a demo scene: its smoky DNG and JPEG alone, through a bent lens, under scrambled names, one command.

    FUJINSPLAT_TEST_PHOTOS=1 .venv/bin/pytest tests/photos/test_whole.py -s       (about ten minutes on two cores)

The suite runs the same on a smaller world (test_command.py).
"""

import os
import subprocess
import sys

import pytest
import yaml

from fujinsplat.capture import read_cameras
from fujinsplat.capture.layout import find_scene
from fujinsplat.capture.poses import read_poses
from fujinsplat.core.settings import DemoSettings
from fujinsplat.photos.run import CHECKOUT, Request, run

from .card import make_card, true_scene
from .score import errors, found_and_true, held_psnr, lay_on, moved

SCENE, ROW = "Kogarashi", "smoke"


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
    model = f"results/photos/gaussians/{{}}/{ROW}.linear.safetensors"
    with_found = held_psnr(tmp_path / "out" / model.format("card"), [moved(c, motion) for c in held], pictures)
    with_true = held_psnr(tmp_path / "true" / model.format(SCENE), held, pictures)
    turn, away = errors(true, found)
    print(f"{len(found)} views, {turn:.2f} degrees, {away:.2%}; held {with_found:.2f} dB, true {with_true:.2f} dB")
    assert len(found) == len(names) and with_found > with_true - 1.0
