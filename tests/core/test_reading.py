"""Bad input: one sentence with the file and the remedy, before memory is taken and before an hour of training."""

import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from fujinsplat.capture import HeldViews, SourceViews, read_cameras, read_points
from fujinsplat.capture.picture import read_rgb
from fujinsplat.controller import store
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_json, write_tensors
from fujinsplat.core.reading import reading
from fujinsplat.core.runtime import pick_device
from fujinsplat.evaluate.protocol import fitted, read_picture
from fujinsplat.splat.model import Gaussians


def png(path, width: int, height: int) -> None:
    """A PNG whose header says any size; its pixels are those of none."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(30000, 30000), (2**31 - 1, 1), (60000, 60000)])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_picture_that_says_it_is_enormous(tmp_path, size):
    png(tmp_path / "x.png", *size)
    for read in (read_rgb, read_picture):
        with pytest.raises(UserError, match=r"x.png .*;"):
            read(tmp_path / "x.png")


def test_a_picture_of_one_pixel(tmp_path):
    png(tmp_path / "x.png", 1, 1)
    with pytest.raises(UserError, match="has 1x1 pixels, too few"):
        read_rgb(tmp_path / "x.png")


@pytest.mark.parametrize("count", ["1000000000000", "-1", "999999999999999999999999"])
def test_a_point_cloud_that_says_it_is_enormous(tmp_path, count):
    path = tmp_path / "points.ply"
    header = f"ply\nformat binary_little_endian 1.0\nelement vertex {count}\n"
    path.write_text(header + "property float x\nproperty float y\nproperty float z\nend_header\n" + "x" * 48)
    with pytest.raises(UserError, match=r"no readable point cloud .*export it again"):
        read_points(path)


@pytest.mark.parametrize("rows, words", [(["1e39 0 0"] * 5, "coordinates beyond"), (["0 0 0"], "holds 1 points")])
def test_points_that_no_training_can_start_from(tmp_path, rows, words):
    path = tmp_path / "points.ply"
    names = "property double x\nproperty double y\nproperty double z"
    path.write_text(
        f"ply\nformat ascii 1.0\nelement vertex {len(rows)}\n{names}\nend_header\n" + "\n".join(rows) + "\n"
    )
    with pytest.raises(UserError, match=words):
        read_points(path)


def test_a_controller_that_says_it_is_enormous(tmp_path):
    notes = {"kind": store.KIND, "input": "raw", "K": "1000000000", "M": "16"}
    write_tensors(tmp_path / "c.safetensors", {"x": np.ones(2, np.float32)}, notes)
    with pytest.raises(UserError, match="says K = 1000000000 and M = 16, which no colour flow has"):
        store.load(tmp_path / "c.safetensors")


CAMERA = {
    "stem": "0001",
    "width": 48,
    "height": 32,
    "K": np.diag([40.0, 40, 1]).tolist(),
    "viewmat": np.eye(4).tolist(),
}


@pytest.mark.parametrize(
    "change, words",
    [
        ({"K": [[float("nan"), 0, 0], [0, 1, 0], [0, 0, 1]]}, "not valid JSON|K is not finite"),
        ({"K": np.zeros((3, 3)).tolist()}, "has no inverse"),
        ({"viewmat": np.zeros((4, 4)).tolist()}, "not rigid"),
        ({"stem": "../../x"}, "no file's name"),
        ({"width": 10**9}, "more than any picture"),
        ({"width": 0}, "0x[0-9]+ pixels, which is no picture"),
        ({"height": "tall"}, "not a cameras.json"),
    ],
)
def test_cameras_that_cannot_see(tmp_path, change, words):
    (tmp_path / "cameras.json").write_text(json.dumps({"source": [{**CAMERA, **change}], "held": []}))
    with pytest.raises(UserError, match=words):
        read_cameras(tmp_path / "cameras.json")


def test_two_cameras_of_one_name(tmp_path):
    (tmp_path / "cameras.json").write_text(json.dumps({"source": [CAMERA, CAMERA], "held": [CAMERA]}))
    assert len(read_cameras(tmp_path / "cameras.json", "held")) == 1
    with pytest.raises(UserError, match="two source cameras of one name"):
        read_cameras(tmp_path / "cameras.json")


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda path: path.write_bytes(b""), "zero bytes"),
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "need 288 bytes"),
        (lambda path: np.save(path, np.ones((4, 6), np.uint16)), "instead of uint16"),
        (lambda path: np.save(path, np.ones((4, 6, 3))), "instead of uint16"),
        (lambda path: np.save(path, np.array([{}]), allow_pickle=True), "no whole array"),
    ],
    ids=["empty", "cut", "grey", "float", "pickle"],
)
def test_arrays_that_are_not_what_they_should_be(tmp_path, damage, words):
    write_json(tmp_path / "views.json", [{"stem": "0001"}])
    np.save(tmp_path / "0001.npy", np.ones((8, 6, 3), np.uint16))
    damage(tmp_path / "0001.npy")
    with pytest.raises(UserError, match=words):
        SourceViews(tmp_path).raw("0001")


def test_a_view_whose_name_leads_out_of_its_folder(tmp_path):
    write_json(tmp_path / "views.json", [{"stem": "../x"}])
    with pytest.raises(UserError, match="no file's name"):
        HeldViews(tmp_path)


def test_a_model_of_no_numbers(tmp_path):
    model = Gaussians.from_points(
        np.random.default_rng(0).normal(size=(9, 3)), np.full((9, 3), 128, np.uint8), 1, "cpu"
    )
    model.parameters["means"].data[0, 0] = torch.nan
    model.save(tmp_path / "m.safetensors", {})
    with pytest.raises(UserError, match="means holds values that are not finite; train the scene again"):
        Gaussians.load(tmp_path / "m.safetensors")


def test_a_model_of_nothing(tmp_path):
    model = Gaussians.from_points(np.eye(9)[:, :3], np.full((9, 3), 128, np.uint8), 1, "cpu")
    for parameter in model.parameters.values():
        parameter.data = parameter.data[:0]
    model.save(tmp_path / "m.safetensors", {})
    with pytest.raises(UserError, match="holds no Gaussians; train the scene again"):
        Gaussians.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize("shape", [(32, 96), (1, 1), (480, 640)])
def test_a_render_that_cannot_stand_for_its_reference(shape):
    reference = np.zeros((32, 48, 3), np.uint8)
    with pytest.raises(UserError, match="cannot stand for a reference of 48x32"):
        fitted(np.zeros((*shape, 3), np.uint8), reference)
    assert fitted(np.zeros((64, 96, 3), np.uint8), reference).shape == reference.shape


@pytest.mark.parametrize("device", ["tpu", "cuda:x", ""])
def test_a_device_that_does_not_exist_is_named(device):
    with pytest.raises(UserError, match="there is no device"):
        pick_device(device)


UNREADABLE = """
import os, sys
from pathlib import Path
from fujinsplat.capture.layout import find_scene, part_views
from fujinsplat.capture.picture import read_rgb
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import explained, write_json
from fujinsplat.synthesis.sheet import read_sheet

train = Path("data/Hayate/train")
tries = {
    str(train / "1.png"): lambda path: read_rgb(Path(path)),
    str(train): lambda path: part_views(find_scene("data", "Hayate"), "source"),
    "data/Hayate": lambda path: part_views(find_scene("data", "Hayate"), "source"),
    "data/captures.csv": lambda path: read_sheet("data"),
}
for path, read in tries.items():
    mode = os.stat(path).st_mode
    os.chmod(path, 0)
    try:
        read(path)
    except UserError as error:
        print(error)
    except OSError as error:
        print(explained(error))
    os.chmod(path, mode)
os.chmod(train, 0o555)
try:
    write_json(train / "x.json", {})
except UserError as error:
    print(error)
"""


@pytest.mark.skipif(not os.geteuid() and not shutil.which("setpriv"), reason="root may read everything")
def test_unreadable_files_and_folders_are_named_as_unreadable(tmp_path):
    train = tmp_path / "data/Hayate/train"
    train.mkdir(parents=True)
    png(train / "1.png", 9, 9)
    (tmp_path / "data/captures.csv").write_text("name,path,split")
    plain = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [*plain, sys.executable, "-c", UNREADABLE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    *unread, unwritten = done.stdout.splitlines()
    assert len(unread) == 4, done.stderr
    assert all("cannot be read: permission denied; give yourself the right to read it" in line for line in unread)
    assert unwritten.endswith("x.json: permission denied; choose a results folder that you may write to")


def test_what_may_not_be_read_is_said_to_be_so(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(UserError, match=r"x cannot be read: permission denied; give yourself"):
        with reading(tmp_path / "x", "thing", "make it again"):
            raise PermissionError(13, "Permission denied", str(tmp_path / "x"))
    if os.geteuid():
        (tmp_path / "x").chmod(0)
        with pytest.raises(UserError, match="permission denied"):
            read_picture(tmp_path / "x")
