"""Pictures through a lens become a pinhole's, RAW and RGB alike, wherever the lens is written."""

import json

import numpy as np
import pycolmap
import pytest

from fujinsplat.capture import HeldViews, SourceViews, read_cameras
from fujinsplat.capture.lens import Lens, colmap_camera, straighten_raw, straighten_rgb
from fujinsplat.core.color import decode, encode

WIDTH, HEIGHT = 120, 80
LENSES = {
    "SIMPLE_RADIAL": (100.0, 60.0, 40.0, -0.12),
    "RADIAL": (100.0, 61.0, 39.0, -0.1, 0.03),
    "OPENCV": (100.0, 102.0, 60.0, 40.0, -0.1, 0.02, 0.004, -0.003),
    "FULL_OPENCV": (100.0, 100.0, 60.0, 40.0, -0.1, 0.02, 0.001, 0.0, 0.01, 0.0, 0.0, 0.0),
    "OPENCV_FISHEYE": (80.0, 80.0, 60.0, 40.0, 0.02, -0.01, 0.0, 0.0),
    "SIMPLE_RADIAL_FISHEYE": (80.0, 60.0, 40.0, 0.03),
}


def scenery(rays: np.ndarray) -> np.ndarray:
    """A smooth world: linear light [..., 3] by direction [..., 2]."""
    x, y = rays[..., 0], rays[..., 1]
    level = 0.4 + 0.2 * np.sin(5 * x + 1) * np.cos(4 * y) + 0.15 * x * y
    return np.stack([level, 0.8 * level + 0.1 * y, 0.6 * level + 0.1 * np.sin(3 * x)], -1)


def pixels(width: int, height: int) -> np.ndarray:
    return np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), -1)


def seen_through(lens: Lens) -> np.ndarray:
    rays = colmap_camera(lens).cam_from_img(pixels(lens.width, lens.height).reshape(-1, 2))
    return scenery(rays).reshape(lens.height, lens.width, 3)


def seen_straight(width: int, height: int, K: np.ndarray) -> np.ndarray:
    return scenery((pixels(width, height) - K[:2, 2]) / K[[0, 1], [0, 1]])


@pytest.mark.parametrize("model", LENSES)
def test_straight_pictures_show_what_a_pinhole_sees(model):
    lens = Lens(model, WIDTH, HEIGHT, LENSES[model])
    photograph = seen_through(lens)
    width, height, K = lens.pinhole()
    expected = seen_straight(width, height, K)
    raw = straighten_raw(lens, np.rint(photograph * 65535).astype(np.uint16))
    rgb = straighten_rgb(lens, np.rint(encode(photograph) * 255).astype(np.uint8))
    assert raw.shape == rgb.shape == (height, width, 3)
    # a pixel at the border may look just outside the photograph
    assert np.abs(raw / 65535 - expected)[1:-1, 1:-1].max() < 2e-3
    assert np.abs(decode(rgb / 255) - expected)[1:-1, 1:-1].max() < 8e-3
    bent = np.abs(photograph[: min(height, HEIGHT), : min(width, WIDTH)] - expected[:HEIGHT, :WIDTH]).max()
    assert bent > 0.02, "the lens bends too little for this test to see it"


def test_agrees_with_colmaps_own_undistortion(tmp_path):
    lens = Lens("SIMPLE_RADIAL", WIDTH, HEIGHT, LENSES["SIMPLE_RADIAL"])
    rgb = np.rint(encode(seen_through(lens)) * 255).astype(np.uint8)
    theirs, camera = pycolmap.undistort_image(
        pycolmap.UndistortCameraOptions(), pycolmap.Bitmap.from_array(rgb), colmap_camera(lens)
    )
    ours = straighten_rgb(lens, rgb)
    assert (camera.width, camera.height) == lens.pinhole()[:2]
    assert np.abs(np.asarray(theirs.to_array(), int) - ours).mean() < 0.5


def test_a_lens_scales_with_its_picture():
    lens = Lens("OPENCV", WIDTH, HEIGHT, LENSES["OPENCV"])
    width, height, K = lens.scaled(2 * WIDTH, 2 * HEIGHT).pinhole()
    small = lens.pinhole()
    assert np.allclose(K[:2, :2], 2 * small[2][:2, :2], rtol=0.01)
    assert (width, height) == pytest.approx((2 * small[0], 2 * small[1]), abs=4)


def test_a_large_picture_is_straightened_as_a_small_one():
    """The map of large pictures is interpolated between fewer places; that must not be seen."""
    lens = Lens("SIMPLE_RADIAL", WIDTH, HEIGHT, LENSES["SIMPLE_RADIAL"]).scaled(12 * WIDTH, 12 * HEIGHT)
    width, height, K = lens.pinhole()
    raw = straighten_raw(lens, np.rint(seen_through(lens) * 65535).astype(np.uint16))
    assert np.abs(raw / 65535 - seen_straight(width, height, K))[1:-1, 1:-1].max() < 1e-3


@pytest.fixture
def bent_world(world, dng):
    """The tiny scene photographed through a lens: source, clean and held views."""
    lens = Lens("SIMPLE_RADIAL", 48, 32, (40.0, 24.0, 16.0, -0.15))
    photograph = 0.5 * seen_through(lens)
    for folder, numbers in (("train", (1, 2, 3)), ("val", (1, 2, 3)), ("test", (4,))):
        for number in numbers:
            dng.write_jpg(world.home / folder / f"{number:04d}.JPG", photograph)
            if folder != "test":
                dng.write(world.home / folder / f"{number:04d}.dng", dng.mosaic_of(photograph))
    return world, lens


@pytest.mark.parametrize("written", ["colmap", "transforms"])
def test_every_part_of_a_scene_is_straightened(bent_world, capture, written, dng):
    world, lens = bent_world
    if written == "colmap":
        world.without_transforms()
        world.colmap("SIMPLE_RADIAL", " ".join(map(str, lens.params)))
    else:
        for folder, numbers in (("train", [1, 2, 3]), ("test", [4])):
            world.transforms(folder, numbers, k1=-0.15)
    capture.all()
    width, height, K = lens.pinhole()
    expected = 0.5 * seen_straight(width, height, K)
    for part in ("source", "held"):
        for camera in read_cameras(capture.out / "cameras.json", part):
            assert (camera.width, camera.height) == (width, height) and np.allclose(camera.K, K)
    inner = (slice(3, -3), slice(3, -3))
    for part in ("source", "clean"):
        views = SourceViews(capture.out / part)
        assert np.abs(views.raw("0002") - expected)[inner].max() < 0.015
        assert np.abs(views.rgb("0002") / 255 - encode(np.clip(expected * dng.white_balance, 0, 1)))[inner].max() < 0.05
    held = HeldViews(capture.out / "held").rgb("0004")
    assert np.abs(held / 255 - encode(np.clip(expected * dng.white_balance, 0, 1)))[inner].max() < 0.03
    notes = json.loads((capture.out / "manifest.json").read_text())["views"][0]["notes"]
    assert any("lens straightened" in note for note in notes)
