"""A scene in any of the known layouts and pose formats is decoded to the same views, cameras and points."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from fujinsplat.capture import HeldViews, SourceViews, read_cameras, read_points
from fujinsplat.capture.layout import scene_files
from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError

STEMS = ["0001", "0002", "0003"]


def cameras_of(capture, part="source"):
    return read_cameras(capture.out / "cameras.json", part)


def same_cameras(a, b) -> bool:
    return len(a) == len(b) and all(
        (x.stem, x.width, x.height) == (y.stem, y.width, y.height)
        and np.allclose(x.K, y.K, atol=1e-9)
        and np.allclose(x.viewmat, y.viewmat, atol=1e-9)
        for x, y in zip(a, b, strict=True)
    )


def test_views_hold_what_was_photographed(capture, scenery):
    capture.all()
    for part in ("source", "clean"):
        views = SourceViews(capture.out / part)
        assert views.stems == STEMS
        for number, stem in enumerate(STEMS, start=1):
            raw, rgb = views.raw(stem), views.rgb(stem)
            assert raw.dtype == np.float32 and rgb.dtype == np.uint8 and raw.shape == rgb.shape == (32, 48, 3)
            assert views.size(stem) == (48, 32)
            assert np.abs(raw - scenery(number))[2:-2, 2:-2].max() < 0.01
            gains = views.white_balance(stem)
            assert np.abs(encode(np.clip(raw.astype(float) * gains, 0, 1)) - rgb / 255)[2:-2, 2:-2].max() < 0.03
            assert views.camera_matrix(stem).sum(1) == pytest.approx([1, 1, 1])
    held = HeldViews(capture.out / "held")
    assert held.stems == ["0004"] and held.rgb("0004").shape == (32, 48, 3)
    assert sorted(p.name for p in (capture.out / "held").iterdir()) == ["0004.png", "views.json"]


def test_cameras_are_opencv_and_look_at_the_scene(capture):
    """A point in front of an OpenGL camera (its -z) projects to the picture's centre with positive depth."""
    capture.all()
    frames = json.loads((capture.world.home / "transforms_train.json").read_text())["frames"]
    for camera, frame in zip(cameras_of(capture), frames, strict=True):
        pose = np.array(frame["transform_matrix"])
        ahead, up = pose @ [0, 0, -2, 1], pose @ [0, 1, -2, 1]
        x, y, z, _ = camera.viewmat @ ahead
        assert (x, y, z) == pytest.approx((0, 0, 2), abs=1e-9)
        pixel = camera.K @ (camera.viewmat @ up)[:3]
        assert pixel[0] / pixel[2] == pytest.approx(24) and pixel[1] / pixel[2] == pytest.approx(16 - 40 / 2)


def test_manifest_and_points(capture):
    capture.all()
    manifest = json.loads((capture.out / "manifest.json").read_text())
    assert manifest["scene"] == "Hikari" and manifest["layout"] == "realx3d"
    assert [view["raw"] for view in manifest["views"]] == [f"Hikari/train/{stem}.dng" for stem in STEMS]
    xyz, rgb = read_points(capture.out / "points.ply")
    assert (xyz == capture.world.xyz).all() and (rgb == [10, 20, 30]).all()


def test_angle_instead_of_focal_length(capture):
    capture.all()
    before = cameras_of(capture), cameras_of(capture, "held")
    absent = dict.fromkeys(["fl_x", "fl_y", "cx", "cy", "w", "h"])
    for part, numbers in (("train", [1, 2, 3]), ("test", [4])):
        capture.world.transforms(part, numbers, camera_angle_x=2 * np.arctan(24 / 40), **absent)
    capture.all()
    assert same_cameras(cameras_of(capture), before[0]) and same_cameras(cameras_of(capture, "held"), before[1])


def test_intrinsics_per_frame_and_paths_without_extension(capture):
    capture.all()
    before = cameras_of(capture)
    frames = capture.world.frames("train", [1, 2, 3])["frames"]
    for frame in frames:
        frame |= {"file_path": frame["file_path"].removesuffix(".JPG"), "fl_x": 40.0, "fl_y": 40.0, "cx": 24, "cy": 16}
    capture.world.transforms("train", [], frames=frames, fl_x=999.0, fl_y=999.0)
    assert capture.source() == 0
    assert same_cameras(cameras_of(capture), before)


@pytest.mark.parametrize("binary", [False, True])
def test_colmap_gives_the_same_scene(capture, binary):
    capture.all()
    before = cameras_of(capture), cameras_of(capture, "held")
    capture.world.without_transforms()
    (capture.world.home / "point3d.ply").unlink()
    capture.world.colmap(binary=binary)
    capture.all()
    assert same_cameras(cameras_of(capture), before[0]) and same_cameras(cameras_of(capture, "held"), before[1])
    assert np.allclose(read_points(capture.out / "points.ply")[0], capture.world.xyz)


def test_one_transforms_file_for_all_views(capture):
    capture.all()
    before = cameras_of(capture), cameras_of(capture, "held")
    value = capture.world.frames("images", [1, 2, 3, 4])
    capture.world.without_transforms()
    (capture.world.home / "transforms.json").write_text(json.dumps(value))
    capture.all()
    assert same_cameras(cameras_of(capture), before[0]) and same_cameras(cameras_of(capture, "held"), before[1])


def test_reduced_rgb_beside_full_raw(capture, scenery):
    """RealX3D's case: the RAW comes to the JPG's grid, intrinsics follow, log and manifest say so."""
    for folder in ("train", "val", "test"):
        for path in (capture.world.home / folder).glob("*.JPG"):
            with Image.open(path) as image:
                small = image.resize((24, 16), Image.Resampling.BOX)
            small.save(path, quality=97)
    assert capture.source() == 0
    note = "linear RAW area-resized from 48x32 to 24x16"
    assert f"{note} (3 views)" in capture.errors
    assert note in json.loads((capture.out / "manifest.json").read_text())["views"][0]["notes"]
    assert (capture.clean(), capture.held()) == (0, 0)
    for camera in cameras_of(capture) + cameras_of(capture, "held"):
        assert (camera.width, camera.height) == (24, 16)
        assert camera.K.tolist() == [[20, 0, 12], [0, 20, 8], [0, 0, 1]]
    assert SourceViews(capture.out / "clean").raw("0001").shape == (16, 24, 3)
    assert HeldViews(capture.out / "held").size("0004") == (24, 16)


def test_release_layout(capture):
    capture.all()
    expected = SourceViews(capture.out / "source")
    arrays = {stem: np.load(capture.out / "source" / f"{stem}.npy") for stem in STEMS}
    home, root = capture.world.home, capture.world.root
    for stem in STEMS:
        folder = root / "raw" / "smoke" / "Hikari" / "train"
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / f"{stem}.npz", linear_rgb=arrays[stem])
        (home / "train" / f"{stem}.dng").unlink()
    (root / "rgb" / "smoke").mkdir(parents=True)
    shutil.rmtree(home / "val")
    home.rename(root / "rgb" / "smoke" / "Hikari")
    rgb = {stem: expected.rgb(stem) for stem in STEMS}
    assert capture.source() == 0 and capture.held() == 0, capture.errors
    views = SourceViews(capture.out / "source")
    for stem in STEMS:
        assert (views.rgb(stem) == rgb[stem]).all() and views.camera_matrix(stem) is None
        assert (views.raw(stem) == arrays[stem].astype(np.float32) / np.float32(65535)).all()


def test_subfolders_links_and_extensions_of_any_case(capture):
    train = capture.world.home / "train"
    capture.all()
    before = {stem: SourceViews(capture.out / "source").raw(stem) for stem in STEMS}
    for stem in STEMS:
        for old, new in ((f"{stem}.dng", f"raw/{stem}.DNG"), (f"{stem}.JPG", f"rgb/{stem}.jpg")):
            (train / new).parent.mkdir(exist_ok=True)
            (train / old).rename(train / new)
    (train / "raw").rename(capture.world.home / "elsewhere")
    (train / "raw").symlink_to(capture.world.home / "elsewhere", target_is_directory=True)
    (train / "notes.txt").write_text("not a picture")
    (train / ".hidden.JPG").write_bytes(b"")
    assert capture.source() == 0, capture.errors
    after = SourceViews(capture.out / "source")
    assert all((after.raw(stem) == before[stem]).all() for stem in STEMS)


def test_scene_of_ones_own_needs_neither_clean_nor_held_pictures(capture):
    home = capture.world.home
    for name in ("val", "test"):
        shutil.rmtree(home / name)
        (home / f"transforms_{name}.json").unlink()
    assert capture.source() == 0
    assert cameras_of(capture, "held") == [] and len(cameras_of(capture)) == 3


def test_the_same_input_gives_the_same_bytes_on_any_number_of_threads(capture):
    def contents():
        return {p: p.read_bytes() for p in sorted(capture.out.rglob("*")) if p.is_file()}

    assert capture.source("--threads", 1) == 0
    first = contents()
    assert capture.source("--threads", 3) == 0
    assert contents() == first and len(first) == 10


def test_files_of_each_part_for_the_workflow(world):
    names = {
        part: [p.removeprefix(f"{world.home}/") for p in scene_files(world.root, "Hikari", (part,))]
        for part in ("source", "clean", "held", "poses", "points")
    }
    assert names["source"] == [f"train/{stem}.{kind}" for stem in STEMS for kind in ("dng", "JPG")]
    assert names["clean"] == [f"val/{stem}.{kind}" for stem in STEMS for kind in ("dng", "JPG")]
    assert names["held"] == ["test/0004.JPG"]
    assert names["poses"] == ["transforms_train.json", "transforms_test.json"] and names["points"] == ["point3d.ply"]
    with pytest.raises(UserError, match=r"does not exist .it holds Hikari"):
        scene_files(world.root, "Hikary", ("source",))
    with pytest.raises(UserError, match="nowhere does not exist"):
        scene_files(world.root / "nowhere", "Hikari", ("source",))


def test_listing_files_imports_nothing_heavy():
    code = "import sys, fujinsplat.capture.layout; print({'numpy', 'torch', 'rawpy', 'PIL'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
