"""Portraits lie in the workflow as the sensor did, and leave it upright: pictures, cameras, films."""

import numpy as np
import pytest
from PIL import Image

from fujinsplat.capture.cameras import Camera, read_cameras
from fujinsplat.capture.points import write_points
from fujinsplat.core.files import write_json
from fujinsplat.develop.store import Developed
from fujinsplat.export.dataset import write_dataset
from fujinsplat.export.turntable import facing, turntable_path
from fujinsplat.views.store import Pictures, Views

K = np.array([[50.0, 0, 31], [0, 52.0, 22], [0, 0, 1]])
UP = np.array([0.0, -1.0, 0.0])


def camera(turns: int) -> Camera:
    """64x40 as stored; `turns` quarters counter-clockwise bring it upright."""
    roll = np.eye(4)
    angle = turns * np.pi / 2
    roll[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    standing = facing(np.array([0.2, -0.4, -3.0]), np.zeros(3), UP)
    return Camera("a", 64, 40, K, roll @ standing, turns=turns)


def seen(camera: Camera, point: np.ndarray) -> np.ndarray:
    x = camera.K @ (camera.viewmat @ [*point, 1.0])[:3]
    return x[:2] / x[2]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_the_upright_camera_sees_the_turned_picture(turns):
    stored, point = camera(turns), np.array([0.31, -0.12, 0.4])
    upright = stored.upright()
    x, y = seen(stored, point)
    picture = np.zeros((40, 64))
    picture[int(y), int(x)] = 1
    row, column = np.argwhere(np.rot90(picture, turns))[0]
    assert (upright.height, upright.width) == np.rot90(picture, turns).shape
    assert np.abs(seen(upright, point) - [column + 0.5, row + 0.5]).max() <= 0.5 + 1e-9
    assert -np.linalg.inv(upright.viewmat)[:3, 1] @ UP > 0.95, "its up is the world's"


@pytest.mark.parametrize("turns", [0, 3])
def test_the_dataset_and_the_film_stand_upright(tmp_path, turns):
    cameras = [camera(turns)]
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 255, (40, 64, 3)).astype(np.uint8)
    Views.write(tmp_path / "views", Pictures({"a": shown}), "base")
    Developed.write(tmp_path / "developed", np.zeros((1, 573), np.float32), ["a"], 7, 16, "none")
    write_json(tmp_path / "cameras.json", {"source": [c.to_json() for c in cameras], "held": []})
    write_points(tmp_path / "points.ply", np.eye(4, 3, dtype=np.float32), np.zeros((4, 3), np.uint8))
    assert read_cameras(tmp_path / "cameras.json")[0].turns == turns
    paths = (tmp_path / name for name in ("views", "developed", "cameras.json", "points.ply"))
    write_dataset(*paths, tmp_path / "out", lambda _, encoded: encoded)
    with Image.open(tmp_path / "out" / "images" / "a.png") as image:
        assert np.array_equal(np.asarray(image), np.rot90(shown, turns))
    with Image.open(tmp_path / "out" / "linear" / "a.tif") as image:
        assert image.size == ((64, 40) if turns == 0 else (40, 64))
    import pycolmap

    (image,) = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0")).images.values()
    assert np.allclose(image.cam_from_world().matrix(), cameras[0].upright().viewmat[:3])
    for frame in turntable_path([*cameras, *cameras], 4):
        assert -np.linalg.inv(frame.viewmat)[:3, 1] @ UP > 0.95
