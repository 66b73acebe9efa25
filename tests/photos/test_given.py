"""Poses that are there already are taken as they are, under the views' own names."""

import json

import numpy as np
import pycolmap
import pytest

from fujinsplat.capture.colmap import colmap_cameras, colmap_points
from fujinsplat.capture.layout import View
from fujinsplat.capture.points import write_points
from fujinsplat.core.errors import UserError
from fujinsplat.photos.given import cameras_of, given_poses, write_given

NAMES = [f"DSC {n}.JPG" for n in range(6)]


@pytest.fixture
def views(tmp_path):
    return [View(f"DSC_{n}", tmp_path / name, None) for n, name in enumerate(NAMES)]


@pytest.fixture
def model():
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig, options.num_points3D = 1, 1, 6, 40
    options.camera_model_id, options.camera_params = pycolmap.CameraModelId.OPENCV, [1280, 1290, 512, 384, 0.1, 0, 0, 0]
    made = pycolmap.synthesize_dataset(options)
    for number, name in zip(sorted(made.images), NAMES, strict=True):
        made.images[number].name = f"card/{name}"
    return made


def same(ours, theirs) -> bool:
    images = {
        image.name.split("/")[-1].removesuffix(".JPG").replace(" ", "_"): image for image in theirs.images.values()
    }
    return len(ours) == len(images) and all(
        np.allclose(ours[stem.casefold()].viewmat[:3], image.cam_from_world().matrix(), atol=1e-9)
        and np.allclose(ours[stem.casefold()].lens.params, image.camera.params)
        for stem, image in images.items()
    )


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("place", ["", "sparse", "sparse/0", "sparse/3", "colmap/sparse/1", "0"])
def test_colmap_models_wherever_they_lie(tmp_path, views, model, place, binary):
    folder = tmp_path / "poses" / place
    folder.mkdir(parents=True)
    (model.write_binary if binary else model.write_text)(str(folder))
    given = given_poses(tmp_path / "poses", (10, 10), True)
    write_given(given, views, tmp_path / "out")
    assert same(colmap_cameras(tmp_path / "out"), model)
    assert len(colmap_points(tmp_path / "out")[0]) == 40


def test_the_largest_of_several_models(tmp_path, views, model):
    stub = pycolmap.Reconstruction(model)
    for frame in list(stub.reg_frame_ids())[2:]:
        stub.deregister_frame(frame)
    for number, kept in (("0", stub), ("1", model)):
        folder = tmp_path / "sparse" / number
        folder.mkdir(parents=True)
        kept.write_binary(str(folder))
    given = given_poses(tmp_path, (10, 10), True)
    assert given.source.name == "1" and len(given.cameras) == 6


def test_nerfstudio_with_its_points_and_views_without_a_pose(tmp_path, views):
    pose = np.eye(4)
    frames = [{"file_path": f"images/{name}", "transform_matrix": pose.tolist()} for name in NAMES[:4]]
    for n, frame in enumerate(frames):
        frame["transform_matrix"][0][3] = float(n)
    value = {"fl_x": 50.0, "fl_y": 50.0, "cx": 30, "cy": 20, "w": 60, "h": 40, "k1": 0.1, "camera_model": "OPENCV"}
    value |= {"frames": frames, "ply_file_path": "sparse_pc.ply"}
    (tmp_path / "transforms.json").write_text(json.dumps(value))
    write_points(tmp_path / "sparse_pc.ply", np.zeros((7, 3), np.float32), np.zeros((7, 3), np.uint8))
    given = given_poses(tmp_path, (1, 1), True)
    write_given(given, views, tmp_path / "out")
    cameras = colmap_cameras(tmp_path / "out")
    assert set(cameras) == {f"dsc_{n}" for n in range(4)} == {stem.casefold() for stem in cameras_of(given, views)}
    assert cameras["dsc_2"].lens.model == "OPENCV" and cameras["dsc_2"].viewmat[0, 3] == pytest.approx(-2)
    assert np.allclose(cameras["dsc_2"].viewmat[:3, :3], np.diag([1, -1, -1]))
    assert len(colmap_points(tmp_path / "out")[0]) == 7


def test_poses_of_other_pictures_and_no_poses(tmp_path, views, model):
    with pytest.raises(UserError, match="and no COLMAP model"):
        given_poses(tmp_path, (1, 1), True)
    assert given_poses(tmp_path, (1, 1), False) is None
    model.write_binary(str(tmp_path))
    others = [View(f"v{n}", tmp_path / f"v{n}.jpg", None) for n in range(3)]
    with pytest.raises(UserError, match=r"has poses for DSC 0.*but the photographs are called v0.jpg"):
        write_given(given_poses(tmp_path, (1, 1), True), others, tmp_path / "out")


def card_of(folder, count: int = 3) -> list[View]:
    """Two folders of one card, whose numbers begin again."""
    return [
        View(f"{home}_IMG_{n}", folder / "DCIM" / home / f"IMG_{n}.JPG", None)
        for home in ("100CANON", "101CANON")
        for n in range(count)
    ]


def transforms_of(folder, names: list[str]):
    """A transforms.json whose frame n stands at x = n."""
    frames = []
    for n, name in enumerate(names):
        pose = np.eye(4)
        pose[0, 3] = n
        frames.append({"file_path": name, "transform_matrix": pose.tolist()})
    value = {"fl_x": 50.0, "w": 60, "h": 40, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(value))
    return given_poses(folder, (60, 40), True)


@pytest.mark.parametrize("front", ["DCIM/", "./", "C:\\card\\DCIM\\"])
@pytest.mark.parametrize("chosen", [[0, 1, 2, 3, 4, 5], [3, 4, 5], [5, 0, 4]])
def test_names_that_begin_again_in_another_folder(tmp_path, front, chosen):
    views = card_of(tmp_path)
    names = [f"{front}{views[i].rgb.parent.name}/{views[i].rgb.name}" for i in chosen]
    write_given(transforms_of(tmp_path, names), views, tmp_path / "out")
    cameras = colmap_cameras(tmp_path / "out")
    assert set(cameras) == {views[i].stem.casefold() for i in chosen}
    for n, i in enumerate(chosen):
        assert cameras[views[i].stem.casefold()].viewmat[0, 3] == pytest.approx(-n)


def test_poses_that_could_be_of_two_photographs(tmp_path):
    with pytest.raises(UserError, match=r"pose for images/IMG_0.JPG, which could be .*100CANON.* or .*101CANON"):
        write_given(transforms_of(tmp_path, ["images/IMG_0.JPG"]), card_of(tmp_path), tmp_path / "out")
    twice = transforms_of(tmp_path, ["100CANON/IMG_0.JPG", "100CANON/img_0.png", "100CANON/IMG_1.JPG"])
    with pytest.raises(UserError, match=r"two poses for one photograph \(100CANON/IMG_0.JPG and 100CANON/img_0.png\)"):
        write_given(twice, card_of(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
