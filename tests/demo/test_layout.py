"""A scene folder is what RealX3D's layout promises: twins, held views, poses and points that agree."""

import json

import numpy as np
import pycolmap
import pytest
from PIL import Image
from plyfile import PlyData

from fujinsplat.core.settings import DemoSettings


@pytest.fixture(scope="module")
def frames(scene):
    """Per split: stem -> world-to-camera with OpenCV axes, and the intrinsics."""
    out = {}
    for part in ("train", "val", "test"):
        given = json.loads((scene / f"transforms_{part}.json").read_text())
        poses = {}
        for frame in given["frames"]:
            matrix = np.array(frame["transform_matrix"]) @ np.diag([1.0, -1.0, -1.0, 1.0])
            poses[frame["file_path"].split("/")[1].removesuffix(".JPG")] = np.linalg.inv(matrix)
        out[part] = (poses, given)
    return out


@pytest.fixture(scope="module")
def points(scene):
    table = PlyData.read(scene / "point3d.ply")["vertex"]
    assert [p.name for p in table.properties] == ["x", "y", "z", "red", "green", "blue"]
    return np.stack([table[k] for k in "xyz"], 1).astype(float)


def project(pose, given, xyz):
    local = xyz @ pose[:3, :3].T + pose[:3, 3]
    uv = local[:, :2] / local[:, 2:] * given["fl_x"] + (given["cx"], given["cy"])
    inside = (local[:, 2] > 0) & (uv > 0).all(1) & (uv < (given["w"], given["h"])).all(1)
    return uv, inside


def test_every_view_has_raw_and_picture(scene, small):
    source = [f"{k:04d}" for k in range(1, small.source_views + 1)]
    held = [f"{k:04d}" for k in range(small.source_views + 1, small.source_views + small.held_views + 1)]
    for part, stems in (("train", source), ("val", source), ("test", held)):
        assert sorted(p.name for p in (scene / part).iterdir()) == sorted(
            f"{s}.{e}" for s in stems for e in ("dng", "JPG")
        )
        for stem in stems:
            with Image.open(scene / part / f"{stem}.JPG") as picture:
                assert (picture.size, picture.mode) == ((small.width, small.height), "RGB")


def test_twins_share_poses_and_all_poses_are_rigid(frames, small):
    train, val, test = (frames[p][0] for p in ("train", "val", "test"))
    assert train.keys() == val.keys() and not train.keys() & test.keys()
    assert all(np.array_equal(train[s], val[s]) for s in train)
    for pose in (*train.values(), *test.values()):
        assert np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3)) and np.linalg.det(pose[:3, :3]) > 0.99
    given = frames["train"][1]
    assert (given["w"], given["h"]) == (small.width, small.height)
    assert given["camera_angle_x"] == pytest.approx(2 * np.arctan(given["w"] / 2 / given["fl_x"]))


def test_colmap_model_agrees_with_transforms_and_points(scene, frames, points):
    model = pycolmap.Reconstruction(scene / "sparse" / "0")
    camera = model.cameras[1]
    given = frames["train"][1]
    assert camera.model == pycolmap.CameraModelId.PINHOLE
    assert np.allclose(camera.params, [given["fl_x"], given["fl_y"], given["cx"], given["cy"]])
    seen = 0
    for image in model.images.values():
        part, stem = image.name.removesuffix(".JPG").split("/")
        assert np.allclose(image.cam_from_world().matrix(), frames[part][0][stem][:3], atol=1e-9)
        seen += image.num_points3D > 0
    assert model.num_images() == len(frames["train"][0]) + len(frames["test"][0])
    assert seen == len(frames["train"][0]), "only source views carry observations"
    assert model.compute_mean_track_length() >= 2 and model.compute_mean_reprojection_error() < 1.5
    known = {tuple(p) for p in points.astype(np.float32).tolist()}
    assert {tuple(p.xyz.astype(np.float32).tolist()) for p in model.points3D.values()} <= known


def test_points_are_covered_by_two_source_views_and_lie_on_what_is_seen(scene, frames, points, small):
    from fujinsplat.demo.render import PAD, look
    from fujinsplat.demo.world import stage

    assert len(points) == round(small.points * 1.03)
    poses, given = frames["train"]
    views = np.zeros(len(points), int)
    for pose in poses.values():
        views += project(pose, given, points)[1]
    assert (views >= 2).all()

    # against the world itself: most points within a few percent of the surface in some view, a few nowhere near
    world, source, _ = stage("Minami", small)
    error = np.full(len(points), np.inf)
    for camera, pose in zip(source, poses.values(), strict=True):
        depth = look(world, camera)[1][PAD:-PAD:2, PAD:-PAD:2]
        uv, inside = project(pose, given, points)
        z = (points @ pose[:3, :3].T + pose[:3, 3])[:, 2]
        at = uv[inside].astype(int)
        error[inside] = np.minimum(error[inside], np.abs(z[inside] / depth[at[:, 1], at[:, 0]] - 1))
    assert np.median(error) < 0.02
    assert 0.002 < np.mean(error > 0.1) < 0.08


def test_held_views_look_at_what_source_views_cover(frames, points):
    train, test = frames["train"], frames["test"]
    for pose in test[0].values():
        share = project(pose, test[1], points)[1].mean()
        assert share > 0.4
        centre = -pose[:3, :3].T @ pose[:3, 3]
        others = np.array([-p[:3, :3].T @ p[:3, 3] for p in train[0].values()])
        assert (
            others[:, 0].min() < centre[0] < others[:, 0].max() and np.linalg.norm(others - centre, axis=1).min() > 0.01
        )


def test_colour_chart_is_in_every_held_view():
    """The ray caster's own answer, at the default settings: nothing hides the chart's middle."""
    from fujinsplat.demo.geometry import MATERIAL, trace
    from fujinsplat.demo.materials import KIND
    from fujinsplat.demo.weather import SCENES
    from fujinsplat.demo.world import stage

    for name in SCENES:
        world, _, held = stage(name, DemoSettings())
        index = next(k for k, p in enumerate(world.prims) if world.materials[int(p[MATERIAL]), 0] == KIND["chart"])
        middle = world.prims[index, :3]
        for camera in held:
            local = (middle - camera.position) @ camera.rotation
            uv = local[:2] / local[2] * camera.focal
            assert (np.abs(uv) < (110, 70)).all(), f"{name}: the chart is outside the picture"
            away = middle - camera.position
            distance = np.linalg.norm(away)
            hit, t = trace(*world.arrays[:4], *camera.position, *(away / distance), 1e9, False)
            assert hit == index or t > 0.97 * distance, f"{name}: something hides the chart's middle"
