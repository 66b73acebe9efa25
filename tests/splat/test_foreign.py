"""Other people's programs: what they are given, what they must give back, and how it goes on from there."""

import json
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from fujinsplat.capture import read_cameras
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.command import app
from fujinsplat.splat.foreign import transforms
from fujinsplat.splat.job import Outputs, run
from fujinsplat.splat.models import MODELS
from fujinsplat.splat.train import Composition, Inputs
from fujinsplat.views.store import Views

# gives back the training pictures inverted, and grey ones, as both kinds of renders
PROGRAM = """
import sys, pathlib
from PIL import Image, ImageOps
given, made = map(pathlib.Path, sys.argv[1:])
for path in sorted(given.glob("*/*.png")):
    picture = Image.open(path)
    assert picture.mode == "RGBA" and picture.getchannel("A").getextrema() == (255, 255)
    picture = picture.convert("RGB")
    ImageOps.invert(picture).save(made / "clean" / path.name)
    picture.save(made / "medium" / path.name)
"""


@pytest.fixture
def outputs(tmp_path) -> Outputs:
    return Outputs(*(tmp_path / name for name in ("a.ply", "a.safetensors", "a.jsonl", "a.json")))


def build(files, outputs, tmp_path, program: str):
    (tmp_path / "program.py").write_text(program)
    command = f"{sys.executable} {tmp_path / 'program.py'} {{input}} {{output}}"
    own = (("foreign", MODELS["foreign"].Settings(command=command)),)
    paths = {name: getattr(files, name) for name in ("views", "developed", "cameras")}
    run(
        Inputs(paths),
        outputs,
        Composition(SplatSettings(), "camera", "foreign", own=own),
        tmp_path / "checkpoints",
        "cpu",
    )


def test_renders_come_back_as_a_row(scene_files, outputs, tmp_path):
    build(scene_files, outputs, tmp_path, PROGRAM)
    for medium in (False, True):
        out = tmp_path / f"renders{medium}"
        arguments = ["render", f"--model={outputs.model}", f"--cameras={scene_files.cameras}", f"--out={out}"]
        arguments += ["--views=source", *(["--medium"] if medium else [])]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        views = Views(scene_files.views)
        for stem in views.stems:
            expected = views.encoded(stem) if medium else 255 - views.encoded(stem)
            assert (np.asarray(Image.open(out / f"{stem}.png")) == expected).all()
    assert json.loads(outputs.log.read_text())["gaussians"] == 0


def test_held_pictures_do_not_leave(scene_files, outputs, tmp_path):
    build(scene_files, outputs, tmp_path, PROGRAM)
    from fujinsplat.splat.foreign import stored_pictures

    held = [camera.stem for camera in read_cameras(scene_files.cameras, "held")]
    for stem in held:
        assert (stored_pictures(outputs.model, "medium")[stem] == 127).all()


def test_poses_are_opengl_and_undone_by_their_inverse(scene_files):
    cameras = read_cameras(scene_files.cameras, "source")
    written = transforms("train", cameras)
    for camera, frame in zip(cameras, written["frames"], strict=True):
        pose = np.array(frame["transform_matrix"])
        forward = pose[:3, :3] @ [0, 0, -1]  # an OpenGL camera looks along -z
        np.testing.assert_allclose(forward, camera.viewmat[2, :3], atol=1e-9)
        np.testing.assert_allclose(pose[:3, 3], -camera.viewmat[:3, :3].T @ camera.viewmat[:3, 3], atol=1e-9)
    assert np.tan(written["camera_angle_x"] / 2) == pytest.approx(cameras[0].width / 2 / cameras[0].K[0, 0])


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("raise SystemExit('CUDA is missing')", "failed with code 1: CUDA is missing"),
        (PROGRAM + "\nnext((made / 'medium').iterdir()).unlink()", "no picture of"),
    ],
)
def test_a_program_that_goes_wrong_is_one_sentence(scene_files, outputs, tmp_path, program, sentence):
    with pytest.raises(UserError, match=sentence):
        build(scene_files, outputs, tmp_path, program)
    assert not outputs.model.exists()


def test_a_command_with_an_open_quote_is_one_sentence(scene_files, outputs, tmp_path):
    own = (("foreign", MODELS["foreign"].Settings(command="render '{input} {output}")),)
    inputs = Inputs({name: getattr(scene_files, name) for name in ("views", "developed", "cameras")})
    composition = Composition(SplatSettings(), "camera", "foreign", own=own)
    with pytest.raises(UserError, match="No closing quotation"):
        run(inputs, outputs, composition, tmp_path / "checkpoints", "cpu")
    assert not outputs.model.exists()
