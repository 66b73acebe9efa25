"""Every mistake in the input ends with one sentence that names the file and the remedy, code 2, and nothing written."""

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
import tifffile
from PIL import Image

from fujinsplat.capture.decode import SourceOutputs, capture_source
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings


@pytest.fixture
def refused(capture):
    """Runs a part that must fail, and checks the sentence and that no output appeared."""

    def check(*fragments: str, part: str = "source") -> None:
        before = capture.written()
        assert getattr(capture, part)() == 2, capture.errors
        message = [line for line in capture.errors.splitlines() if line.startswith("fujinsplat: ")]
        assert len(message) == 1 and "Traceback" not in capture.errors
        told = capture.errors[capture.errors.index(message[0]) :]  # several problems follow one another, a line each
        for fragment in fragments:
            assert fragment in told, told
        assert capture.written() == before
        assert not [p for p in capture.out.parent.rglob("*") if p.name.endswith((".part", ".old"))]

    return check


# RAW files


@pytest.mark.parametrize("share", [0.9, 0.5, 0.05])
def test_truncated_raw(world, refused, share):
    path = world.home / "train" / "0002.dng"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    refused("train/0002.dng", "truncated or damaged", "again")


def test_unsupported_raw(world, refused):
    (world.home / "train" / "0002.dng").write_bytes(b"this is no RAW file at all " * 100)
    refused("train/0002.dng", "LibRaw", "convert it to DNG")


def test_raw_and_rgb_of_different_aspect(world, refused, scenery, dng):
    dng.write(world.home / "train" / "0002.dng", dng.mosaic_of(scenery(2, 48, 40)))
    refused("train/0002.dng (48x40)", "train/0002.JPG (48x32)", "differ in aspect", "same shot")


def test_clean_twin_of_another_shape(world, capture, refused, scenery, dng):
    assert capture.source() == 0
    dng.write(world.home / "val" / "0002.dng", dng.mosaic_of(scenery(2, 32, 32)))
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(world.home / "val" / "0002.JPG")
    refused("val/0002.dng", "48x32 of the source view", part="clean")


# files that are missing, empty or double


def test_raw_without_rgb(world, refused):
    (world.home / "train" / "0002.JPG").unlink()
    refused("train/0002.dng has no camera RGB", "add it or remove")


def test_rgb_without_raw(world, refused):
    (world.home / "train" / "0002.dng").unlink()
    refused("train/0002.JPG has no RAW file", "add it or remove")


def test_missing_clean_twin(world, capture, refused):
    assert capture.source() == 0
    for path in (world.home / "val").glob("0003.*"):
        path.unlink()
    refused("source view 0003", "no clean twin in", "val", "clean_twins: false", part="clean")


def test_clean_picture_without_source_view(world, capture, refused):
    assert capture.source() == 0
    world.view("val", 9)
    refused("val/0009.JPG is the twin of no source view", "remove it", part="clean")


@pytest.mark.parametrize("part, folder", [("source", "train"), ("clean", "val"), ("held", "test")])
def test_missing_and_empty_folders(world, capture, refused, part, folder):
    if part != "source":
        assert capture.source() == 0
    shutil.rmtree(world.home / folder)
    refused(f"Hikari/{folder} does not exist", ";", part=part)
    (world.home / folder).mkdir()
    refused(f"Hikari/{folder} holds no pictures", ";", part=part)


@pytest.mark.parametrize("name", ["0002.jpg", "0002.jpeg", "0002.png", "0002.DNG", "0002.arw"])
def test_two_files_for_one_view(world, refused, name):
    original = world.home / "train" / ("0002.dng" if name.lower().endswith(("dng", "arw")) else "0002.JPG")
    shutil.copy(original, world.home / "train" / name)
    refused(str(original), f"train/{name}", "differ only in case or extension", "rename")


def test_stems_that_differ_only_in_case(world, refused):
    for kind in ("dng", "JPG"):
        for stem in ("shot", "SHOT"):
            shutil.copy(world.home / "train" / f"0001.{kind}", world.home / "train" / f"{stem}.{kind}")
    refused("train/SHOT.", "train/shot.", "differ only in case", "rename")


@pytest.mark.parametrize("name", ["train/0002.dng", "train/0002.JPG", "point3d.ply"])
def test_zero_byte_files(world, refused, name):
    (world.home / name).write_bytes(b"")
    refused(f"{name} is empty (zero bytes)", "again")


def test_zero_byte_poses(world, refused):
    (world.home / "transforms_train.json").write_bytes(b"")
    refused("transforms_train.json is not valid JSON", "restore")


# camera RGB


def sixteen_bit_png(path: Path, channels: int) -> None:
    """48x32, 16 bits per channel, written byte by byte because Pillow cannot write the RGB kind."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 48, 32, 16, {1: 0, 3: 2}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + bytes(48 * channels * 2) for _ in range(32))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("mode, word", [("CMYK", "CMYK"), ("L", "grey")])
def test_jpeg_that_is_not_rgb(world, refused, mode, word):
    path = world.home / "train" / "0002.JPG"
    Image.new(mode, (48, 32)).save(path)
    refused("train/0002.JPG", f"is {word} instead of 8-bit RGB", "export it")


def test_jpeg_of_sixteen_bits_grey(world, refused):
    """A JPEG whose frame header says 16 bits per sample, one component."""
    path = world.home / "train" / "0002.JPG"
    Image.new("L", (48, 32)).save(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"\xff\xc0") + 4] = 16
    path.write_bytes(data)
    refused("train/0002.JPG", "8 bits per channel", "export it")


@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bit_png(world, refused, channels):
    (world.home / "train" / "0002.JPG").unlink()
    sixteen_bit_png(world.home / "train" / "0002.png", channels)
    refused("train/0002.png", "16-bit", "8-bit RGB")


@pytest.mark.parametrize("part, folder, stem", [("source", "train", "0002"), ("held", "test", "0004")])
def test_truncated_jpeg(world, capture, refused, part, folder, stem):
    if part == "held":
        assert capture.source() == 0
    path = world.home / folder / f"{stem}.JPG"
    path.write_bytes(path.read_bytes()[:-150])
    refused(f"{folder}/{stem}.JPG is truncated", "copy it again", part=part)


def test_jpeg_with_orientation_tag_is_used_as_stored(world, capture):
    exif = Image.Exif()
    exif[274] = 6
    path = world.home / "train" / "0002.JPG"
    with Image.open(path) as image:
        image.save(path, quality=97, exif=exif)
    assert capture.source() == 0
    assert "EXIF orientation 6" in capture.errors
    with Image.open(capture.out / "source" / "0002.png") as image:
        assert image.size == (48, 32)


# poses


def frames_with(world, number: int, change) -> None:
    frames = world.frames("train", [1, 2, 3])["frames"]
    pose = np.array(frames[number]["transform_matrix"])
    frames[number]["transform_matrix"] = change(pose).tolist()
    world.transforms("train", [], frames=frames)


def test_pose_without_picture(world, refused):
    world.transforms("train", [1, 2, 3, 7])
    refused("transforms_train.json has a pose for 0007", "train has no such picture", "remove the pose")


def test_picture_without_pose(world, refused):
    world.transforms("train", [1, 3])
    refused("train has 0002", "transforms_train.json has no pose for it", "add its pose")


def test_held_pose_without_picture_and_picture_without_pose(world, capture, refused):
    world.transforms("test", [4, 5])
    assert capture.source() == 0
    refused("has a pose for 0005", "test has no such picture", part="held")
    world.view("test", 5, raw=False)
    world.view("test", 6, raw=False)
    refused("test has 0006", "no pose for it", part="held")


def test_held_picture_of_another_shape(world, capture, refused):
    assert capture.source() == 0
    Image.new("RGB", (32, 32)).save(world.home / "test" / "0004.JPG")
    refused("test/0004.JPG has 32x32", "48x32", part="held")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_non_finite_pose(world, refused, number):
    frames_with(world, 1, lambda pose: np.where(pose == pose[0, 3], number, pose))
    refused("transforms_train.json, frame 0002", "non-finite", "export the poses again")


@pytest.mark.parametrize(
    "change",
    [
        lambda pose: pose @ np.diag([1.1, 1.1, 1.1, 1]),
        lambda pose: pose @ np.diag([1, 1, -1, 1]),
        lambda pose: pose + np.eye(4)[:, [1, 0, 2, 3]] * 0.01,
        lambda pose: np.vstack([pose[:3], [0, 0, 0.5, 1]]),
    ],
    ids=["scaled", "mirrored", "sheared", "projective"],
)
def test_non_rigid_pose(world, refused, change):
    frames_with(world, 1, change)
    refused("transforms_train.json, frame 0002", "not rigid", "export the poses again")


def test_pose_of_another_shape(world, refused):
    frames_with(world, 1, lambda pose: pose[:3, :3])
    refused("transforms_train.json, frame 0002", "(3, 3) instead of 4x4")


def test_the_same_frame_twice(world, refused):
    world.transforms("train", [1, 2, 3, 2])
    refused("transforms_train.json, frame 0002 stands there twice", "remove one")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"fl_x": None, "fl_y": None}, "neither fl_x nor camera_angle_x"),
        ({"fl_x": -3.0}, "not a positive number"),
        ({"fl_x": "wide"}, "fl_x is 'wide' instead of a number"),
        ({"fl_x": None, "camera_angle_x": 60.0}, "instead of radians"),
        ({"k4": 0.01}, "say camera_model FULL_OPENCV"),
        ({"cx": 500.0}, "principal point (500, 16) lies outside"),
        ({"w": 48, "h": 48}, "use the pictures that the poses were made from"),
        ({"w": 1e400}, "no picture size"),
        ({"frames": []}, "no list of frames"),
        ({"frames": [{"file_path": "0001"}]}, "lacks file_path or transform_matrix"),
    ],
)
def test_impossible_intrinsics(world, refused, change, words):
    world.transforms("train", [1, 2, 3], **change)
    refused("transforms_train.json", words)


def test_no_poses_at_all(world, refused):
    world.without_transforms()
    refused("Hikari has no transforms_train.json and no COLMAP model", ";")


# COLMAP


def test_unknown_camera_model(world, refused):
    world.without_transforms()
    world.colmap("MIRROR", "40 40 24 16")
    refused("sparse/0, image 0001.JPG", "camera model MIRROR is unknown", "SIMPLE_RADIAL or OPENCV")


def test_distortion_of_zero_is_no_distortion(world, capture):
    world.without_transforms()
    world.colmap("SIMPLE_RADIAL", "40 24 16 0")
    assert capture.source() == 0, capture.errors


def test_colmap_image_without_picture(world, refused):
    world.without_transforms()
    world.colmap(names=["0001.JPG", "0002.JPG", "0003.JPG", "0004.JPG", "0009.JPG"])
    refused("sparse/0 has a pose for 0009", "neither train/ nor test/", "remove the pose")


def test_picture_that_colmap_did_not_register_is_left_out_by_name(world, capture):
    world.without_transforms()
    world.colmap(names=["0001.JPG", "0002.JPG"])
    assert capture.source() == 0, capture.errors
    assert "0003 is left out" in capture.errors and "sparse/0 has no pose for it" in capture.errors
    assert json.loads((capture.out / "manifest.json").read_text())["dropped"].keys() == {"0003"}
    assert capture.clean() == 0, capture.errors


def test_too_few_registered_views(world, refused):
    world.without_transforms()
    world.colmap(names=["0001.JPG"])
    refused("sparse/0 has poses for 1 of the 3 views", "at least 50%", "more overlap", "0002, 0003")


def test_one_view_is_no_scene(world, refused):
    for number in (2, 3):
        for kind in ("dng", "JPG"):
            (world.home / "train" / f"{number:04d}.{kind}").unlink()
    refused("train holds one view", "at least two", "add photographs")


def test_a_grey_picture_with_the_name_of_a_raw_file(world, refused):
    tifffile.imwrite(world.home / "train" / "0002.dng", np.full((32, 48), 9000, np.uint16))
    refused("train/0002.dng is a plain TIFF and no RAW file", "the camera's own file")


def test_every_problem_is_told_at_once(world, capture):
    (world.home / "train" / "0001.JPG").unlink()
    (world.home / "train" / "0002.dng").unlink()
    (world.home / "train" / "0003.dng").write_bytes(b"")
    assert capture.source() == 2
    for words in ("3 problems", "0001.dng has no camera RGB", "0002.JPG has no RAW", "0003.dng is empty"):
        assert words in capture.errors


@pytest.mark.parametrize("share", [0, 0.6])
@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
def test_damaged_colmap_model(world, refused, name, share):
    world.without_transforms()
    (world.home / "point3d.ply").unlink()
    path = world.colmap(binary=True) / f"{name}.bin"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    refused(f"sparse/0/{name}.bin", "again")


def test_name_in_both_parts_of_a_colmap_model(world, refused):
    world.without_transforms()
    world.colmap()
    world.view("test", 2, raw=False)
    refused("0002 is the name of a source view and of a held view", "rename one")


# points


def test_empty_point_cloud(world, refused, write_ply):
    write_ply(world.home / "point3d.ply", np.zeros((0, 3)))
    refused("point3d.ply holds no points", "structure from motion again")


@pytest.mark.parametrize("text", [False, True])
def test_non_finite_points(world, refused, write_ply, text):
    xyz = world.xyz.copy()
    xyz[3, 1] = np.nan
    write_ply(world.home / "point3d.ply", xyz, text=text)
    refused("point3d.ply: 1 of 20 points have non-finite coordinates", "remove them")


def test_truncated_point_cloud(world, refused):
    path = world.home / "point3d.ply"
    path.write_bytes(path.read_bytes()[:-30])
    refused("point3d.ply is no readable point cloud", "export it again")


def test_point_cloud_that_is_no_ply(world, refused):
    (world.home / "point3d.ply").write_text("x y z\n1 2 3\n")
    refused("point3d.ply is no readable point cloud", "export it again")


def test_no_points_at_all(world, refused):
    (world.home / "point3d.ply").unlink()
    refused("Hikari has no point3d.ply", "add")


def test_points_without_colours_are_grey(world, capture, write_ply):
    from fujinsplat.capture import read_points

    write_ply(world.home / "point3d.ply", world.xyz, text=True, colours=False)
    assert capture.source() == 0
    assert (read_points(capture.out / "points.ply")[1] == 128).all()


# places


def test_unknown_scene_and_root(world, capture):
    assert capture.run("source", world.root, "Hikary", "--out", capture.out) == 2
    assert "Hikary does not exist (it holds Hikari); correct the scene's name" in capture.errors
    assert capture.run("source", world.root / "nowhere", "Hikari", "--out", capture.out) == 2
    assert "nowhere does not exist; download the dataset or correct its root" in capture.errors
    assert capture.run("source", world.root, "Hikari") == 2
    assert "--out" in capture.errors


def test_results_below_a_regular_file(world, capture, tmp_path):
    (tmp_path / "file").write_text("in the way")
    capture.out = tmp_path / "file" / "capture"
    assert capture.source() == 2
    assert "cannot write" in capture.errors and "not a directory; correct the path" in capture.errors
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that refuses even root")
def test_results_where_nobody_may_write(world, capture):
    capture.out = Path("/proc/fujinsplat")
    assert capture.source() == 2
    assert "cannot write /proc/fujinsplat" in capture.errors and "choose a writable results folder" in capture.errors


def test_a_disk_that_fills_up_leaves_nothing(world, tmp_path):
    """A real limit on the size of written files, in a process of its own: decoding works, writing fails half-way."""
    code = (
        "import resource, signal, sys; from fujinsplat.cli import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000));"
        "sys.argv = ['fujinsplat', 'capture', 'source', *sys.argv[1:]]; main()"
    )
    out = tmp_path / "results"
    result = subprocess.run(
        [sys.executable, "-c", code, world.root, "Hikari", "--out", out, "--threads", "2"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2, result.stderr
    assert "cannot write" in result.stderr and "Traceback" not in result.stderr
    assert not any(out.rglob("*"))


def test_a_failure_leaves_the_earlier_result_alone(world, capture):
    assert capture.source() == 0
    before = {path: path.read_bytes() for path in capture.out.rglob("*") if path.is_file()}
    (world.home / "train" / "0003.dng").write_bytes(b"spoiled")
    assert capture.source() == 2
    assert {path: path.read_bytes() for path in capture.out.rglob("*") if path.is_file()} == before


def test_the_library_raises_what_the_command_prints(world, tmp_path):
    (world.home / "train" / "0002.dng").unlink()
    outputs = SourceOutputs(*(tmp_path / name for name in ("source", "cameras.json", "points.ply", "manifest.json")))
    with pytest.raises(UserError, match="no RAW file"):
        capture_source(world.root, world.scene, outputs, CaptureSettings())
    assert not os.path.exists(outputs.cameras) and json.loads((world.home / "transforms_val.json").read_text())
