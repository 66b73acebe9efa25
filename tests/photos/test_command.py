"""As a new user would: a folder copied from a camera card, one command, a scene to look at.

The photographs are all there is: no poses, no twins, a bent lens, scrambled names. What comes out is compared with the
same row on the same photographs with their true poses, lens and points.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from fujinsplat.capture import read_cameras
from fujinsplat.capture.cameras import Camera
from fujinsplat.photos.follow import CHECKOUT

from .corner import Corner, held_views, sweep, write_card, write_scene
from .score import errors, lay_on, moved, names_in

TINY = {
    "motion": {"side": 360, "features": 1500},
    "isp": {"warmup_steps": 10, "joint_steps": 40, "pixels": 2048, "patches": 4, "patch_size": 16},
    "splat": {
        "iterations": 120,
        "bake_steps": 10,
        "max_gaussians": 4000,
        "lr_means": 0.0016,
        "lr_means_final": 0.000016,
        "lr_scales": 0.02,
        "lr_sh0": 0.02,
        "lr_shn": 0.001,
    },
    "report": {"viewer": False},
}
ROW = "smoke"
VIEWS = 8


def command(*arguments, cwd: Path) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    environment["PYTHONPATH"] = str(CHECKOUT)
    words = [sys.executable, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=1500, check=False)


@pytest.fixture(scope="module")
def trip(tmp_path_factory):
    """(folder, the world, true poses, names on the card, what the command said)."""
    folder = tmp_path_factory.mktemp("trip")
    world, viewmats = Corner.make(3), sweep(VIEWS)
    names = write_card(folder / "my card", world, viewmats)
    (folder / "my card" / "phone.heic").write_bytes(b"heic")
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    done = command(
        *("-m", "fujinsplat", "photos", "my card", "--out", "out", "--quick", "--row", ROW, "--cores", "2", "--tiff"),
        *("--settings", "tiny.yaml"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, world, viewmats, names, done.stderr


def true_cameras(viewmats) -> list[Camera]:
    return [Camera(str(n), 1, 1, np.eye(3), viewmat) for n, viewmat in enumerate(viewmats)]


def found_cameras(folder: Path, names: dict[str, int]) -> tuple[list[Camera], list[int]]:
    """The command's cameras, and which view each is."""
    cameras = read_cameras(folder / "out/results/photos/capture/my_card/cameras.json")
    numbers = {name.casefold(): number for name, number in names.items()}
    own = names_in(folder / "out/data/my_card")
    return cameras, [numbers[own[camera.stem].casefold()] for camera in cameras]


def test_what_comes_out(trip):
    folder, _, _, _, said = trip
    out = folder / "out"
    for name in ("scene.ply", "report.html", "turntable.gif", "config.yaml", "cleared/transforms.json"):
        assert (out / name).stat().st_size > 0
    assert len(list((out / "cleared" / "images").glob("*.png"))) == VIEWS
    assert len(list((out / "cleared" / "linear").glob("*.tif"))) == VIEWS
    assert "8 pairs of RAW and RGB" in said and "the same by hand: " in said and "--size changes it" in said
    assert "phone.heic is HEIC: convert" in said
    page = (out / "report.html").read_text()
    assert "phone.heic is HEIC" in page and "Before and after" in page and "passes on average" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "<table" not in page
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert config["datasets"]["photos"]["scenes"] == ["my_card"] and set(config["variants"]) == {ROW}


def test_the_dataset_is_one_that_others_read(trip):
    import pycolmap

    folder = trip[0]
    cleared = folder / "out" / "cleared"
    model = pycolmap.Reconstruction(str(cleared / "sparse" / "0"))
    frames = {Path(f["file_path"]).stem: f for f in json.loads((cleared / "transforms.json").read_text())["frames"]}
    assert model.num_reg_images() == VIEWS == len(frames) and model.num_points3D() > 50
    for image in model.images.values():
        with Image.open(cleared / "images" / image.name) as picture:
            assert picture.size == (image.camera.width, image.camera.height)
        frame = frames[Path(image.name).stem]
        pose = np.array(frame["transform_matrix"]) @ np.diag([1, -1, -1, 1])
        assert np.allclose(np.linalg.inv(pose)[:3], image.cam_from_world().matrix(), atol=1e-6)
        assert frame["fl_x"] == pytest.approx(image.camera.params[0])


def test_poses_lens_and_level(trip):
    folder, _, viewmats, names, _ = trip
    cameras, numbers = found_cameras(folder, names)
    assert sorted(numbers) == list(range(VIEWS))
    turn, away = errors([true_cameras(viewmats)[n] for n in numbers], cameras)
    assert turn < 0.5 and away < 0.01
    lens = json.loads((folder / "out/results/photos/capture/my_card/poses/poses.json").read_text())["cameras"][0]
    assert lens["model"] == "SIMPLE_RADIAL" and lens["params"][3] == pytest.approx(-0.08, abs=0.03)
    ups = np.stack([-np.linalg.inv(camera.viewmat)[:3, 1] for camera in cameras])
    assert ups.mean(0)[1] < -0.97


def test_again_runs_nothing_and_a_new_photograph_runs_again(trip):
    folder = trip[0]
    again = ("-m", "fujinsplat", "photos", "my card", "--out", "out", "--quick", "--row", ROW, "--tiff", "--plan")
    done = command(*again, "--settings", "tiny.yaml", cwd=folder)
    line = done.stderr.split("the same by hand: ")[1].splitlines()[0]
    import shlex

    words = shlex.split(line)[1:]
    words.insert(2, "--dry-run")
    assert "Nothing to be done" in command(*words, cwd=folder).stdout


def held_psnr(model: Path, held, motion=None) -> float:
    from fujinsplat.splat.model import Gaussians
    from fujinsplat.splat.render import render_encoded

    gaussians, values = Gaussians.load(model, "cpu"), []
    for camera, picture in held:
        rendered = render_encoded(gaussians, moved(camera, motion) if motion else camera).numpy()
        values.append(-10 * np.log10(((rendered - picture) ** 2).mean()))
    return float(np.mean(values))


def test_held_views_are_as_good_as_with_the_true_poses(trip):
    folder, world, viewmats, names, _ = trip
    config = yaml.safe_load((folder / "out" / "config.yaml").read_text())
    true = folder / "true"
    write_scene(true / "data" / "my_card", world, viewmats)
    (true / "config.yaml").write_text(yaml.safe_dump(config))
    target = f"results/photos/gaussians/my_card/{ROW}.ply"
    done = command("-m", "snakemake", "--snakefile", CHECKOUT / "Snakefile", "--cores", "2", target, cwd=true)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    cameras, numbers = found_cameras(folder, names)
    motion = lay_on([true_cameras(viewmats)[n] for n in numbers], cameras)
    model = f"results/photos/gaussians/my_card/{ROW}.linear.safetensors"
    held = held_views(world)
    with_true, with_found = held_psnr(true / model, held), held_psnr(folder / "out" / model, held, motion)
    assert with_found > with_true - 1.0, (with_found, with_true)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nowhere"], "nowhere does not exist; name the folder"),
        (["my card", "--row", "smok"], "has no such row; did you mean 'smoke'?"),
        (["my card", "--row", "fujinsplat"], "the row fujinsplat needs more than photographs"),
        (["my card", "--quick", "--full"], "contradict each other"),
        (["my card", "--poses", "my card"], "holds no transforms.json and no COLMAP model"),
    ],
)
def test_mistakes_are_one_sentence(trip, arguments, words, tmp_path):
    done = command("-m", "fujinsplat", "photos", *arguments, "--out", tmp_path / "new", cwd=trip[0])
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
