"""A view is one grid of linear RAW and camera RGB, whatever files it consists of and at whatever size it is wanted."""

import numpy as np
import pytest
import tifffile
from PIL import Image

from fujinsplat.capture.frame import read_frame
from fujinsplat.capture.layout import View
from fujinsplat.capture.raw import preview
from fujinsplat.core.color import encode
from fujinsplat.core.settings import CaptureSettings

SETTINGS = CaptureSettings()


def shown(linear: np.ndarray, white_balance) -> np.ndarray:
    return np.rint(encode(np.clip(linear * white_balance, 0, 1)) * 255).astype(np.uint8)


def write_dng_with_preview(path, mosaic: np.ndarray, rgb: np.ndarray, dng) -> None:
    """As cameras write them: the rendering first, the mosaic in a folder of its own."""

    def rationals(values) -> list[int]:
        return [part for value in np.ravel(values) for part in (round(float(value) * 10**6), 10**6)]

    top = [
        (50706, "B", 4, bytes([1, 4, 0, 0]), True),
        (50707, "B", 4, bytes([1, 1, 0, 0]), True),
        (50708, "s", 0, "Fujin test camera", True),
        (50721, "2i", 9, rationals(dng.xyz_to_camera), True),
        (50728, "2I", 3, rationals(1 / np.array(dng.white_balance)), True),
        (50778, "H", 1, 21, True),
    ]
    below = [
        (33421, "H", 2, (2, 2), True),
        (33422, "B", 4, bytes([0, 1, 1, 2]), True),
        (50713, "H", 2, (1, 1), True),
        (50714, "H", 1, dng.black, True),
        (50717, "H", 1, dng.white, True),
    ]
    with tifffile.TiffWriter(path) as file:
        file.write(rgb, photometric="rgb", subfiletype=1, subifds=1, metadata=None, extratags=top)
        file.write(mosaic.astype(np.uint16), photometric=32803, subfiletype=0, metadata=None, extratags=below)


def test_the_preview_in_a_raw_file_is_the_cameras_rendering(tmp_path, dng, scenery):
    path = tmp_path / "a.dng"
    large, small = scenery(1, 192, 128), scenery(1, 96, 64)
    write_dng_with_preview(path, dng.mosaic_of(large), shown(small, dng.white_balance), dng)
    assert (preview(path) == shown(small, dng.white_balance)).all()
    frame = read_frame(View("a", None, path), SETTINGS)
    assert frame.size == (96, 64) and "embedded preview" in frame.notes[0]
    assert np.abs(frame.raw_linear / 65535 - small)[2:-2, 2:-2].max() < 0.01


def test_a_preview_the_size_of_a_stamp_is_not_used(tmp_path, dng, scenery):
    path = tmp_path / "a.dng"
    stamp = shown(scenery(1, 48, 32), dng.white_balance)
    write_dng_with_preview(path, dng.mosaic_of(scenery(1, 192, 128)), stamp, dng)
    frame = read_frame(View("a", None, path), SETTINGS)
    assert frame.size == (192, 128) and "LibRaw's rendering" in frame.notes[0]
    # at a working size that the preview has, it is good enough
    assert "embedded preview" in read_frame(View("a", None, path), SETTINGS, max_side=48).notes[0]


@pytest.mark.parametrize("max_side", [None, 120, 96, 60])
def test_any_working_size_shows_the_same_frame(tmp_path, dng, scenery, max_side):
    """Half of the mosaic is decoded where that suffices; a border of the sensor is cut either way."""
    frame_linear = scenery(1, 192, 128)
    sensor = np.pad(frame_linear, ((2, 2), (3, 3), (0, 0)), mode="edge")
    dng.write(tmp_path / "a.dng", dng.mosaic_of(sensor))
    dng.write_jpg(tmp_path / "a.JPG", frame_linear)
    frame = read_frame(View("a", tmp_path / "a.JPG", tmp_path / "a.dng"), SETTINGS, max_side=max_side)
    width, height = frame.size
    assert width == min(192, max_side or 192) and frame.raw_linear.shape == frame.rgb_encoded.shape
    expected = scenery(1, width, height)
    assert np.abs(frame.raw_linear / 65535 - expected)[2:-2, 2:-2].max() < 0.015
    assert np.abs(frame.rgb_encoded.astype(int) - shown(expected, dng.white_balance)).max() <= 6


def test_the_raw_may_keep_its_finer_grid(tmp_path, dng, scenery):
    """For finding features: a small JPEG beside a large RAW does not cost its resolution."""
    dng.write(tmp_path / "a.dng", dng.mosaic_of(scenery(1, 192, 128)))
    dng.write_jpg(tmp_path / "a.JPG", scenery(1, 48, 32))
    view = View("a", tmp_path / "a.JPG", tmp_path / "a.dng")
    assert read_frame(view, SETTINGS).raw_linear.shape == (32, 48, 3)
    assert read_frame(view, SETTINGS, for_raw=True).raw_linear.shape == (128, 192, 3)


@pytest.mark.parametrize("max_side", [None, 96, 60])
def test_a_clean_twin_is_decoded_as_its_source_view_is(tmp_path, dng, scenery, max_side):
    """The same shot twice: whichever way of demosaicing a size asks for, pairs are compared pixel by pixel."""
    mosaic = dng.mosaic_of(scenery(1, 192, 128)) + np.random.default_rng(0).integers(0, 300, (128, 192))
    dng.write(tmp_path / "a.dng", mosaic)
    Image.fromarray(shown(scenery(1, 96, 64), dng.white_balance)).save(tmp_path / "a.png")
    view = View("a", tmp_path / "a.png", tmp_path / "a.dng")
    source = read_frame(view, SETTINGS, None, max_side)
    twin = read_frame(view, SETTINGS, source.size, max_side)
    assert (twin.raw_linear == source.raw_linear).all() and (twin.rgb_encoded == source.rgb_encoded).all()
