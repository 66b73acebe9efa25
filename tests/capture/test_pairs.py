"""RAW and RGB that do not belong together are named; an in-camera lens correction is measured and undone."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fujinsplat.capture import SourceViews
from fujinsplat.capture.layout import View, find_scene, part_views
from fujinsplat.capture.motion.find import find_poses
from fujinsplat.capture.pairs import Alignment, fit, measure, moved_places, thumb, wrong_pairs
from fujinsplat.capture.resample import cubic
from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings, MotionSettings

SIZE = (180, 120)


def texture(seed: int, width: int = SIZE[0], height: int = SIZE[1]) -> np.ndarray:
    """A picture with structure everywhere, linear light [H, W, 3], behind smoke."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    grain = gaussian_filter(rng.random((height, width)), 1.5)
    grain = (grain - grain.min()) / np.ptp(grain)
    return (0.25 + 0.2 * grain)[..., None] * np.array([0.5, 1.0, 0.7])


def stored(linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(RAW uint16, the camera's RGB uint8 with a tone curve of its own)."""
    toned = np.clip(linear / linear.max(), 0, 1) ** 1.3
    return np.rint(linear * 65535).astype(np.uint16), np.rint(encode(toned) * 255).astype(np.uint8)


def thumbs(pictures) -> list:
    return [thumb(View(f"v{i}", Path(f"v{i}.jpg"), Path(f"v{i}.dng")), *pair) for i, pair in enumerate(pictures)]


def test_right_pairs_pass_whatever_the_tone_curve():
    assert wrong_pairs(thumbs(stored(texture(i)) for i in range(6))) == []


def test_swapped_neighbours_are_named_with_their_right_partners():
    pictures = [stored(texture(i)) for i in range(6)]
    pictures[2], pictures[3] = (pictures[2][0], pictures[3][1]), (pictures[3][0], pictures[2][1])
    problems = wrong_pairs(thumbs(pictures))
    assert len(problems) == 2
    assert "v2.dng and v2.jpg are not one picture" in problems[0] and "fits v3.jpg" in problems[0]


def test_a_picture_of_something_else_is_named():
    pictures = [stored(texture(i)) for i in range(6)]
    pictures[4] = pictures[4][0], stored(texture(99))[1]
    problems = wrong_pairs(thumbs(pictures))
    assert len(problems) == 1 and "v4.dng" in problems[0] and "RGB of the same shot" in problems[0]


@pytest.mark.parametrize("shared", [0.5, 0.8])
def test_a_wrong_picture_beside_look_alikes_is_no_swap(shared):
    """Neighbours show much of the same; the RGB that the RAW resembles most is its neighbour's own."""
    common = texture(0)
    pictures = [stored(shared * common + (1 - shared) * texture(1 + i)) for i in range(4)]
    pictures[2] = pictures[2][0], stored(texture(99))[1]
    problems = wrong_pairs(thumbs(pictures))
    assert len(problems) == 1 and "v2.dng and v2.jpg are not one picture" in problems[0]
    assert "rename both" not in problems[0] and "use the RGB of the same shot" in problems[0]


def test_a_capture_whose_pictures_are_all_of_something_else_is_one_sentence():
    problems = wrong_pairs(thumbs((stored(texture(i))[0], stored(texture(50 + i))[1]) for i in range(4)))
    assert len(problems) == 1 and "no RAW file and its RGB are one picture" in problems[0] and "v0.dng" in problems[0]


@pytest.mark.parametrize("share", [0.9, 0.7])
def test_a_crop_of_every_picture_is_measured_and_told(share):
    zoomed = Alignment((0.0, 0.0), share - 1, 0.0, 0.0, 0.0)
    pictures = [(stored(x)[0], stored(corrected(x, zoomed))[1]) for x in (texture(i, 96, 64) for i in range(3))]
    problems = wrong_pairs(thumbs(pictures))
    assert len(problems) == 1 and "a crop or a digital zoom" in problems[0]
    told = int(problems[0].split("about ")[1].split("%")[0])
    assert told == pytest.approx(100 * share, abs=2)


def test_pictures_without_structure_are_not_judged():
    flat = np.full((60, 90, 3), 0.3)
    assert wrong_pairs(thumbs([stored(flat)] * 3)) == []


CORRECTION = Alignment((0.002, -0.001), 0.01, -0.05, 0.0, 0.0)


def corrected(linear: np.ndarray, alignment: Alignment) -> np.ndarray:
    """What a camera's JPEG shows that moves the sensor's picture by `alignment`."""
    height, width = linear.shape[:2]
    places = moved_places(alignment, width, height)
    return cubic(linear.astype(np.float32), places, 1, width, height, np.float32(1)).astype(float)


def test_a_lens_correction_is_measured():
    linear = texture(1, 360, 240)
    raw, rgb = stored(linear)[0], stored(corrected(linear, CORRECTION))[1]
    found = fit(measure(raw, rgb), (360, 240))
    assert found.needed and found.residual < 0.1
    expected, got = (moved_places(a, 360, 240) for a in (CORRECTION, found))
    assert np.abs(expected - got)[30:-30, 30:-30].max() < 0.25
    still = fit(measure(*stored(linear)), (360, 240))
    assert not still.needed and still.largest < 0.1


def test_moving_there_and_back():
    there = moved_places(CORRECTION, 90, 60)
    back = moved_places(CORRECTION, 90, 60, inverse=True)
    x, y = 70, 45
    u, v = back[y, x]
    around = there[int(v - 0.5) : int(v - 0.5) + 2, int(u - 0.5) : int(u - 0.5) + 2].mean((0, 1))
    assert around == pytest.approx([x + 0.5, y + 0.5], abs=0.6)


@pytest.fixture
def textured(world, dng):
    """The tiny scene with textured pictures of a size at which shifts can be measured."""
    width, height = 240, 160
    for number in (1, 2, 3):
        linear = texture(number, width, height)
        dng.write(world.home / "train" / f"{number:04d}.dng", dng.mosaic_of(linear))
        dng.write_jpg(world.home / "train" / f"{number:04d}.JPG", linear)
    return world


def test_the_stage_refuses_swapped_files(textured, capture):
    train = textured.home / "train"
    (train / "0001.JPG").rename(train / "x.JPG")
    (train / "0002.JPG").rename(train / "0001.JPG")
    (train / "x.JPG").rename(train / "0002.JPG")
    assert capture.source() == 2
    assert "2 problems" in capture.errors and "the RAW fits" in capture.errors and "0002.JPG" in capture.errors
    assert capture.written() == []


def test_wrong_pairs_and_damaged_files_are_told_before_poses_are_sought(textured, tmp_path):
    train = textured.home / "train"
    (train / "0001.JPG").rename(train / "x.JPG")
    (train / "0002.JPG").rename(train / "0001.JPG")
    (train / "x.JPG").rename(train / "0002.JPG")
    broken = (train / "0003.dng").read_bytes()
    (train / "0003.dng").write_bytes(broken[: len(broken) // 2])
    views = part_views(find_scene(textured.home.parent, textured.home.name), "source")
    with pytest.raises(UserError) as told:
        find_poses(views, tmp_path / "poses", MotionSettings(), CaptureSettings())
    not_one = [f"{stem}.JPG are not one picture" for stem in ("0001", "0002")]
    for words in ("3 problems", "0003.dng is truncated", *not_one):
        assert words in str(told.value)
    assert not (tmp_path / "poses").exists()


def test_the_stage_aligns_what_the_camera_corrected(textured, capture, dng):
    for number in (1, 2, 3):
        moved = corrected(texture(number, 240, 160), CORRECTION)
        dng.write_jpg(textured.home / "train" / f"{number:04d}.JPG", moved)
    assert capture.source() == 0, capture.errors
    assert "corrects its lens in the RGB" in capture.errors
    views = SourceViews(capture.out / "source")
    shown = encode(np.clip(views.raw("0002").astype(float) * views.white_balance("0002"), 0, 1))
    inner = (slice(20, -20), slice(20, -20))
    with_alignment = np.abs(shown - views.rgb("0002") / 255)[inner].mean()
    manifest = json.loads((capture.out / "manifest.json").read_text())
    assert manifest["alignment"]["onto"] == "rgb" and manifest["alignment"]["largest"] > 0.5
    assert capture.source("--settings", '{"check_pairs": false}') == 0
    views = SourceViews(capture.out / "source")
    shown = encode(np.clip(views.raw("0002").astype(float) * views.white_balance("0002"), 0, 1))
    assert with_alignment < 0.6 * np.abs(shown - views.rgb("0002") / 255)[inner].mean()


def test_the_alignment_is_that_of_the_pictures_as_the_poses_know_them(textured, capture, dng):
    """Portraits stored lying, with upright poses: a shift to the right on the sensor is one downwards."""
    exif = Image.Exif()
    exif[274] = 6
    for number in (1, 2, 3):
        linear, path = texture(number, 240, 160), textured.home / "train" / f"{number:04d}"
        dng.write(path.with_suffix(".dng"), dng.mosaic_of(linear), orientation=6)
        moved = corrected(linear, Alignment((0.02, 0.0), 0.0, 0.0, 0.0, 0.0))
        dng.write_jpg(path.with_suffix(".JPG"), moved, exif=exif)
    textured.transforms("train", [1, 2, 3], w=160, h=240, cx=80, cy=120)
    assert capture.source() == 0, capture.errors
    found = json.loads((capture.out / "manifest.json").read_text())["alignment"]
    assert found["shift"] == pytest.approx([0.0, 0.02], abs=0.003)


def test_raw_alone_renders_its_own_rgb(world, capture):
    for path in (world.home / "train").glob("*.JPG"):
        path.unlink()
    assert capture.source() == 0, capture.errors
    assert "no camera RGB: LibRaw's rendering is used (3 views)" in capture.errors
    views = SourceViews(capture.out / "source")
    raw, rgb = views.raw("0001"), views.rgb("0001")
    assert raw.shape == rgb.shape and np.corrcoef(raw[..., 1].ravel(), rgb[..., 1].ravel())[0, 1] > 0.9


def test_rgb_alone_stands_in_for_the_raw(world, capture):
    for path in (world.home / "train").glob("*.dng"):
        path.unlink()
    assert capture.source() == 0, capture.errors
    assert "decoded sRGB light is used" in capture.errors
    views = SourceViews(capture.out / "source")
    assert np.abs(encode(views.raw("0001").astype(float)) * 255 - views.rgb("0001")).max() < 0.6
    assert views.white_balance("0001").tolist() == [1, 1, 1] and (views.camera_matrix("0001") == np.eye(3)).all()


def test_the_working_size_is_a_setting(world, capture):
    assert capture.source("--settings", '{"max_side": 24}') == 0, capture.errors
    assert (capture.clean("--settings", '{"max_side": 24}'), capture.held()) == (0, 0), capture.errors
    for part in ("source", "clean", "held"):
        with Image.open(next((capture.out / part).glob("*.png"))) as image:
            assert image.size == (24, 16)


def test_a_picture_lying_on_its_side_is_turned_when_the_poses_are_upright(world, capture, dng, scenery):
    """Cameras store a portrait as the sensor has it, with a tag; other programs hand COLMAP the upright picture."""
    exif = Image.Exif()
    exif[274] = 6
    for number in (1, 2, 3):
        path = world.home / "train" / f"{number:04d}.JPG"
        with Image.open(path) as image:
            image.save(path, quality=97, exif=exif)
        dng.write(world.home / "train" / f"{number:04d}.dng", dng.mosaic_of(scenery(number)), orientation=6)
    world.transforms("train", [1, 2, 3], w=32, h=48, cx=16, cy=24)
    assert capture.source() == 0, capture.errors
    raw = SourceViews(capture.out / "source").raw("0001")
    assert raw.shape == (48, 32, 3)
    assert np.abs(raw - np.rot90(scenery(1), 3))[2:-2, 2:-2].max() < 0.01


def test_an_upright_portrait_beside_a_lying_raw_goes_back_to_the_sensors_grid(dng, tmp_path, scenery):
    """Programs turn JPEG portraits upright; the RAW stays as the sensor lay, and so do the other views."""
    from fujinsplat.capture.frame import read_frame

    dng.write(tmp_path / "a.dng", dng.mosaic_of(scenery(1)), orientation=6)
    dng.write_jpg(tmp_path / "a.JPG", np.rot90(scenery(1), 3))
    frame = read_frame(View("a", tmp_path / "a.JPG", tmp_path / "a.dng"), CaptureSettings())
    assert frame.size == (48, 32) and frame.turns == 3
    assert np.abs(frame.raw_linear / 65535 - scenery(1))[2:-2, 2:-2].max() < 0.01
    shown = encode(np.clip(scenery(1) * dng.white_balance, 0, 1))
    assert np.abs(frame.rgb_encoded / 255 - shown).max() < 0.03
    upright = read_frame(View("a", tmp_path / "a.JPG", tmp_path / "a.dng"), CaptureSettings(), shape=(32, 48))
    assert upright.size == (32, 48) and upright.turns == 0


def test_an_upright_portrait_without_raw_lies_down_beside_the_landscapes(tmp_path, scenery, dng):
    from fujinsplat.capture.frame import read_frame

    dng.write_jpg(tmp_path / "a.JPG", np.rot90(scenery(1)))
    view = View("a", tmp_path / "a.JPG", None)
    lying = read_frame(view, CaptureSettings())
    assert lying.size == (48, 32) and lying.turns == 1
    upright = read_frame(view, CaptureSettings(), shape=(32, 48))
    assert upright.size == (32, 48) and upright.turns == 0
    assert np.array_equal(np.rot90(lying.rgb_encoded), upright.rgb_encoded)


def test_every_damaged_file_is_named_at_once(world, capture):
    for number in (1, 3):
        path = world.home / "train" / f"{number:04d}.dng"
        path.write_bytes(path.read_bytes()[:1500])
    assert capture.source() == 2
    assert "2 problems" in capture.errors and all(f"{n:04d}.dng is truncated" in capture.errors for n in (1, 3))


def test_views_of_nearly_one_size_are_cut_to_one(world, capture, dng, scenery):
    from fujinsplat.capture import read_cameras

    linear = scenery(2, 50, 34)
    dng.write(world.home / "train" / "0002.dng", dng.mosaic_of(linear))
    dng.write_jpg(world.home / "train" / "0002.JPG", linear)
    frames = world.frames("train", [1, 2, 3])["frames"]
    frames[1] |= {"w": 50, "h": 34, "cx": 25.0, "cy": 17.0}
    world.transforms("train", [], frames=frames)
    for kind, writer in (("dng", dng.write), ("JPG", dng.write_jpg)):
        writer(world.home / "val" / f"0002.{kind}", dng.mosaic_of(linear) if kind == "dng" else linear)
    assert (capture.source(), capture.clean()) == (0, 0), capture.errors
    cameras = {camera.stem: camera for camera in read_cameras(capture.out / "cameras.json")}
    assert {(c.width, c.height) for c in cameras.values()} == {(48, 32)}
    assert cameras["0002"].K[:2, 2].tolist() == [24.0, 16.0] and cameras["0002"].cut == (1, 1, 50, 34)
    for part in ("source", "clean"):
        raw = SourceViews(capture.out / part).raw("0002")
        assert np.abs(raw - linear[1:-1, 1:-1])[2:-2, 2:-2].max() < 0.01
