"""Poses from nothing: found, levelled and scaled; points for poses that are given; what is said when it fails."""

import json

import numpy as np
import pytest
from PIL import Image

from fujinsplat.capture.colmap import colmap_cameras, colmap_points
from fujinsplat.capture.layout import View
from fujinsplat.capture.motion.find import find_points, find_poses, find_scene_poses
from fujinsplat.capture.motion.level import levelled, up_direction
from fujinsplat.capture.motion.retrieval import describe, nearest
from fujinsplat.capture.motion.stretch import clear, focal_35mm, stretch
from fujinsplat.core.color import decode
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings, MotionSettings


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    axis = axis / np.linalg.norm(axis)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def around(count: int, down: float = 0.3, span: float = 2 * np.pi) -> np.ndarray:
    """World-to-camera [V, 4, 4] on a circle in a world whose up is -y, looking inward and down."""
    made = []
    for number in range(count):
        angle = span * number / count
        eye = np.array([3 * np.sin(angle), -3 * down, -3 * np.cos(angle)])
        forward = -eye / np.linalg.norm(eye)
        right = np.cross([0.0, 1.0, 0.0], forward)
        right /= np.linalg.norm(right)
        viewmat = np.eye(4)
        viewmat[:3, :3] = np.stack([right, np.cross(forward, right), forward])
        viewmat[:3, 3] = -viewmat[:3, :3] @ eye
        made.append(viewmat)
    return np.stack(made)


def tipped(viewmats: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """The same cameras in a world turned by `rotation`."""
    out = viewmats.copy()
    out[:, :3, :3] = viewmats[:, :3, :3] @ rotation.T
    return out


def test_up_is_found_although_the_cameras_look_down():
    rotation = turned(np.array([1.0, 2.0, 0.5]), 1.1)
    up = up_direction(tipped(around(12, down=0.8), rotation), np.zeros(12))
    assert up @ (rotation @ [0, -1, 0]) > np.cos(np.radians(0.5))


def test_up_of_portraits_comes_from_their_orientation_tag():
    """A camera turned by a quarter stores its picture lying down; the tag says so."""
    viewmats = around(8)
    quarter = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turns = np.array([0, 1, 1, 1] * 2)
    for number in np.flatnonzero(turns):
        # the stored picture must be turned once counter-clockwise: its right edge is up
        viewmats[number, :3] = quarter.T @ viewmats[number, :3]
    assert up_direction(viewmats, turns)[1] < -0.999
    assert up_direction(viewmats, np.zeros(8))[1] > -0.999


@pytest.mark.parametrize("span", [0.8, 2 * np.pi])
@pytest.mark.parametrize("share", [0.2, 0.4])
@pytest.mark.parametrize("down", [0.0, 0.8])
def test_up_is_the_majoritys_where_portraits_have_lost_their_tag(span, share, down):
    rotation, rng = turned(np.array([1.0, 2.0, 0.5]), 1.1), np.random.default_rng(7)
    viewmats = tipped(around(20, down, span), rotation)
    rolled, axis = viewmats.copy(), np.array([0.0, 0.0, 1.0])
    for number, viewmat in enumerate(viewmats):
        quarters = rng.choice([-1, 1, 1]) if number < share * 20 else 0
        rolled[number, :3] = turned(axis, quarters * np.pi / 2 + rng.normal(0, 0.02)) @ viewmat[:3]  # a degree off
    assert up_direction(rolled) @ up_direction(viewmats) > np.cos(np.radians(1.5))


def test_a_levelled_scene_stands_upright_in_the_middle_at_a_usable_size():
    rotation = turned(np.array([0.3, 1.0, -0.4]), 2.0)
    viewmats = tipped(around(10, span=1.5), rotation)
    points = np.random.default_rng(0).normal(0, 0.3, (200, 3)) @ rotation.T
    poses = {str(i): viewmat for i, viewmat in enumerate(viewmats)}
    motion = levelled(poses, points, {}).scaled_to(3.0)
    moved = motion.scale * points @ motion.rotation.T + motion.translation
    assert np.allclose(motion.rotation @ motion.rotation.T, np.eye(3)) and np.linalg.det(motion.rotation) > 0
    assert np.abs(np.median(moved, axis=0)).max() < 0.06
    eyes = np.stack([np.linalg.inv(viewmat)[:3, 3] for viewmat in viewmats])
    eyes = motion.scale * eyes @ motion.rotation.T + motion.translation
    assert np.median(np.linalg.norm(moved[None] - eyes[:, None], axis=-1)) == pytest.approx(3.0)
    assert (eyes[:, 1] < 0).all() and np.ptp(eyes[:, 1]) < 0.2, "cameras at one height, above the middle (y is down)"


def test_stretching_undoes_a_veil():
    rng = np.random.default_rng(1)
    scene = rng.random((40, 60, 3)) * [0.5, 0.4, 0.6]
    veiled = 0.2 * scene + 0.5
    difference = np.abs(stretch(scene).astype(int) - stretch(veiled).astype(int))
    assert difference.mean() < 2
    assert np.ptp(decode(stretch(veiled) / 255.0)) > 0.99


def test_clearing_evens_out_smoke_that_thickens():
    rng = np.random.default_rng(2)
    scene = rng.random((80, 120, 3)) * 0.5
    passes = np.linspace(0.9, 0.15, 120)[None, :, None]
    veiled = scene * passes + 0.6 * (1 - passes)

    def contrast(picture):
        left, right = picture[:, :40].astype(float).std(), picture[:, -40:].astype(float).std()
        return right / left

    assert contrast(clear(veiled)) > 1.5 * contrast(stretch(veiled))


def test_look_alikes_are_found_without_a_vocabulary():
    rng = np.random.default_rng(3)
    places = [rng.normal(0, 1, (300, 16)).astype(np.float32) for _ in range(4)]
    views = [place[rng.permutation(300)[:200]] + rng.normal(0, 0.05, (200, 16)) for place in places for _ in range(3)]
    close = nearest(describe([view.astype(np.float32) for view in views], rng), 2)
    assert all({i // 3 for i in others} == {number // 3} for number, others in enumerate(close))


def test_focal_length_from_the_photograph(tmp_path):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[41989] = 28
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    Image.new("RGB", (8, 8)).save(tmp_path / "b.jpg")
    assert focal_35mm(View("a", tmp_path / "a.jpg", None)) == 28
    assert focal_35mm(View("b", tmp_path / "b.jpg", None)) == 0 == focal_35mm(View("c", None, tmp_path / "c.dng"))


WALL = MotionSettings(side=320, features=1500, exhaustive=200)


@pytest.fixture(scope="module")
def corner(tmp_path_factory):
    """Smoky pictures of two textured walls that meet in a corner, through a pinhole: views, world-to-camera, K."""
    from scipy.ndimage import gaussian_filter, map_coordinates

    folder = tmp_path_factory.mktemp("corner")
    rng = np.random.default_rng(5)
    grain = gaussian_filter(rng.random((600, 900)), 1.2) + gaussian_filter(rng.random((600, 900)), 4) * 3
    grain = (grain - grain.min()) / np.ptp(grain)
    width, height, focal = 320, 214, 300.0
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    rays = np.stack([(x - width / 2) / focal, (y - height / 2) / focal, np.ones_like(x)], -1)
    views, viewmats = [], []
    for number in range(8):
        angle = np.radians(-21 + 6 * number)
        eye = np.array([2.2 * np.sin(angle), 0.25 * np.cos(2.1 * number), -2.2 * np.cos(angle)])
        forward = np.array([0, 0, 0.3]) - eye
        forward /= np.linalg.norm(forward)
        right = np.cross([0, 1.0, 0], forward)
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        world = rays @ rotation
        hits = []
        for side in (-1, 1):  # walls: z = 1 - |x|, met from the left and from the right
            normal, offset = np.array([side, 0.0, 1.0]), 1.0
            distance = (offset - normal @ eye) / (world @ normal)
            point = eye + distance[..., None] * world
            valid = (distance > 0) & (side * point[..., 0] >= 0)
            hits.append((np.where(valid, distance, np.inf), point))
        nearer = hits[0][0] < hits[1][0]
        point = np.where(nearer[..., None], hits[0][1], hits[1][1])
        u, v = 450 + 220 * point[..., 0] * np.sqrt(2), 300 + 220 * point[..., 1]
        light = map_coordinates(grain, [v, u], order=1, mode="mirror")
        picture = np.clip(0.35 * light + 0.5, 0, 1)[..., None] * [1.0, 0.98, 0.95]
        picture = picture + rng.normal(0, 0.004, picture.shape)
        path = folder / f"v{number}.png"
        Image.fromarray(np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)).save(path)
        views.append(View(f"v{number}", path, None))
        viewmat = np.eye(4)
        viewmat[:3, :3], viewmat[:3, 3] = rotation, -rotation @ eye
        viewmats.append(viewmat)
    K = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])
    return views, viewmats, K


def test_poses_from_nothing(corner, tmp_path):
    views, viewmats, K = corner
    stray = tmp_path / "stray.png"
    noise = np.random.default_rng(9).integers(0, 255, (214, 320, 3)).astype(np.uint8)
    Image.fromarray(noise).save(stray)
    about = find_poses([*views, View("stray", stray, None)], tmp_path / "poses", WALL, CaptureSettings(), 2)
    assert about["registered"] == 8 and about["dropped"] == ["stray"] and not about["of_raw"]
    assert json.loads((tmp_path / "poses" / "poses.json").read_text()) == about
    cameras = colmap_cameras(tmp_path / "poses")
    assert sorted(cameras) == [view.stem for view in views]
    # relative turns do not depend on the world's frame
    for a, b in ((0, 7), (2, 5)):
        found = cameras[f"v{b}"].viewmat[:3, :3] @ cameras[f"v{a}"].viewmat[:3, :3].T
        true = viewmats[b][:3, :3] @ viewmats[a][:3, :3].T
        assert np.degrees(np.arccos(np.clip((np.trace(found @ true.T) - 1) / 2, -1, 1))) < 1.0
    assert cameras["v0"].K[0, 0] == pytest.approx(K[0, 0], rel=0.06)
    ups = np.stack([-np.linalg.inv(camera.viewmat)[:3, 1] for camera in cameras.values()])
    assert ups.mean(0)[1] < -0.95, "the scene stands upright"


def test_the_same_pictures_give_the_same_poses_on_any_number_of_threads(corner, tmp_path):
    views, *_ = corner
    attempts = (("a", 1), ("b", 4))
    first, again = (find_poses(views[:5], tmp_path / name, WALL, CaptureSettings(), n) for name, n in attempts)
    assert first == again and first["registered"] == 5
    assert all(
        (tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in ("cameras.bin", "images.bin")
    )


@pytest.mark.parametrize("count, words", [(1, "holds one view"), (2, "holds 2 views")])
def test_too_few_views_are_refused_before_anything_is_sought(corner, tmp_path, count, words):
    (tmp_path / "trip" / "train").mkdir(parents=True)
    for view in corner[0][:count]:
        for file in view.files:
            (tmp_path / "trip" / "train" / file.name).symlink_to(file)
    with pytest.raises(UserError, match=f"train {words}, and structure from motion needs at least 3; add photographs"):
        find_scene_poses(tmp_path, "trip", tmp_path / "poses", WALL, CaptureSettings())
    assert not (tmp_path / "poses").exists()


def test_neighbours_and_look_alikes_instead_of_every_pair(corner, tmp_path):
    views, *_ = corner
    few = WALL.model_copy(update={"exhaustive": 4, "neighbours": 2, "alike": 3})
    assert find_poses(views, tmp_path / "poses", few, CaptureSettings(), 2)["registered"] == 8


def test_points_for_given_poses_stay_in_their_frame(corner, tmp_path):
    from fujinsplat.capture.cameras import Camera

    views, viewmats, K = corner
    cameras = [Camera(v.stem, 320, 214, K, m) for v, m in zip(views, viewmats, strict=True)]
    about = find_points(views, cameras, tmp_path / "points", WALL, CaptureSettings(), 2)
    xyz, _ = colmap_points(tmp_path / "points")
    assert about["given"] and about["points"] == len(xyz) > 100
    away = np.abs(np.abs(xyz[:, 0]) + xyz[:, 2] - 1.0)
    assert np.median(away) < 0.02, "points lie on the walls"


@pytest.mark.parametrize("stored", ["upright", "tagged"])
def test_points_for_given_poses_of_portraits(corner, tmp_path, stored):
    """The poses speak of upright pictures, whether the files hold them so or lying with a tag."""
    from dataclasses import replace

    from fujinsplat.capture.cameras import Camera

    standing, cameras = [], []
    for view, viewmat in zip(corner[0], corner[1], strict=True):
        cameras.append(replace(Camera(view.stem, 320, 214, corner[2], viewmat), turns=1).upright())
        path, exif = tmp_path / f"{view.stem}.jpg", Image.Exif()
        exif[274] = 8  # to be turned once counter-clockwise
        with Image.open(view.rgb) as image:
            picture = image.transpose(Image.Transpose.ROTATE_90) if stored == "upright" else image
            picture.save(path, quality=97, **({} if stored == "upright" else {"exif": exif}))
        standing.append(View(view.stem, path, None))
    about = find_points(standing, cameras, tmp_path / "points", WALL, CaptureSettings(), 2)
    xyz, _ = colmap_points(tmp_path / "points")
    assert {camera["size"] for camera in about["cameras"]} == {"214x320"} and set(about["turns"].values()) == {0}
    assert len(xyz) > 100 and np.median(np.abs(np.abs(xyz[:, 0]) + xyz[:, 2] - 1.0)) < 0.02
    assert about["error"] < 0.8


def test_pictures_that_share_nothing(tmp_path):
    rng, views = np.random.default_rng(0), []
    for number in range(4):
        path = tmp_path / f"{number}.png"
        Image.fromarray(rng.integers(0, 255, (60, 90, 3)).astype(np.uint8)).save(path)
        views.append(View(str(number), path, None))
    with pytest.raises(
        UserError, match=r"a place for 0 of 4 views, and at least 3 are needed.*give poses with --poses"
    ):
        find_poses(views, tmp_path / "poses", WALL, CaptureSettings(), 1)
    assert not (tmp_path / "poses").exists()
