"""scene.ply stands upright in a viewer, in whatever frame the poses were given, and shows what it showed before."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from plyfile import PlyData
from scipy.spatial.transform import Rotation

from fujinsplat.capture import Camera
from fujinsplat.export.scene import write_scene
from fujinsplat.splat.export import viewer_render
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.ply import read_ply, write_ply
from fujinsplat.splat.turned import turned
from tests.splat.conftest import world

CAMERA = Camera("a", 48, 32, np.array([[40.0, 0, 24], [0, 40, 16], [0, 0, 1]]), np.eye(4))


def moved(camera: Camera, rotation: np.ndarray) -> Camera:
    """The camera after the world turned."""
    viewmat = camera.viewmat.copy()
    viewmat[:3, :3] = viewmat[:3, :3] @ rotation.T
    return replace(camera, viewmat=viewmat)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_cameras_that_turn_with_the_gaussians_see_what_they_saw(degree):
    model = world(200)
    coloured = 0.3 * torch.randn(200, (degree + 1) ** 2 - 1, 3, generator=torch.Generator().manual_seed(1))
    model = Gaussians({**model.parameters, "shN": coloured})
    rotation = Rotation.from_rotvec([0.4, -1.1, 2.0]).as_matrix()
    before = viewer_render(model, CAMERA).detach().numpy()
    after = viewer_render(turned(model, rotation), moved(CAMERA, rotation)).detach().numpy()
    assert before.std() > 0.05 and np.abs(after - before).max() < 2e-4


def test_a_scene_whose_up_is_z_comes_out_upright_and_says_how(tmp_path):
    model, z_up = world(200), Rotation.from_euler("x", 90, degrees=True).as_matrix()
    cameras = [moved(replace(CAMERA, stem=str(n)), z_up) for n in range(3)]
    write_ply(tmp_path / "given.ply", turned(model, z_up))
    (tmp_path / "cameras.json").write_text(json.dumps({"source": [c.to_json() for c in cameras], "held": []}))
    assert write_scene(tmp_path / "given.ply", tmp_path / "cameras.json", tmp_path / "scene.ply") == pytest.approx(90)
    assert np.allclose(
        read_ply(tmp_path / "scene.ply").parameters["means"].detach(), model.parameters["means"].detach(), atol=1e-5
    )
    (comment,) = PlyData.read(tmp_path / "scene.ply").comments
    rows = np.array(comment.split("rows: ")[1].split(), float).reshape(3, 3)
    assert np.allclose(rows @ z_up, np.eye(3), atol=1e-6)


def test_a_scene_that_is_upright_stays_as_it_is(tmp_path):
    write_ply(tmp_path / "given.ply", world(50))
    (tmp_path / "cameras.json").write_text(json.dumps({"source": [CAMERA.to_json()], "held": []}))
    assert write_scene(tmp_path / "given.ply", tmp_path / "cameras.json", tmp_path / "scene.ply") == 0
    assert (tmp_path / "scene.ply").read_bytes() == (tmp_path / "given.ply").read_bytes()
