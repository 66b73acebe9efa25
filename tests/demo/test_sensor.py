"""RAW files: what is written is what LibRaw reads, and the sensor behaves like one."""

import numpy as np
import pytest
import rawpy

from fujinsplat.demo import sensor


def test_dng_round_trip_is_bit_exact(tmp_path):
    rng = np.random.default_rng(5)
    mosaic = rng.integers(0, sensor.WHITE + 1, (64, 96), dtype=np.uint16)
    mosaic[0, :4] = 0, sensor.BLACK, sensor.WHITE, sensor.WHITE - 1
    sensor.write_dng(tmp_path / "a.dng", mosaic)
    with rawpy.imread(str(tmp_path / "a.dng")) as file:
        assert np.array_equal(file.raw_image_visible, mosaic)
        assert file.white_level == sensor.WHITE and set(file.black_level_per_channel) == {sensor.BLACK}
        assert file.color_desc == b"RGBG"
        assert [file.raw_color(0, 0), file.raw_color(1, 1)] == [0, 2] and {
            file.raw_color(0, 1),
            file.raw_color(1, 0),
        } <= {1, 3}


def test_metadata_carries_white_balance_and_matrix(tmp_path):
    sensor.write_dng(tmp_path / "a.dng", np.full((32, 32), 900, np.uint16))
    with rawpy.imread(str(tmp_path / "a.dng")) as file:
        balance = np.array(file.camera_whitebalance[:3])
        matrix = np.array(file.color_matrix)[:, :3]
    assert balance / balance[1] == pytest.approx([2428 / 1024, 1.0, 1700 / 1024], rel=1e-4)
    assert matrix == pytest.approx(sensor.CAMERA_TO_SRGB, abs=1e-3)
    assert matrix.sum(1) == pytest.approx([1, 1, 1], abs=1e-3)


def test_a_neutral_surface_reads_the_as_shot_neutral():
    grey = sensor.camera_rgb(np.full((1, 3), 0.5))
    assert (grey * sensor.WHITE_BALANCE)[0] == pytest.approx([0.5, 0.5, 0.5])


def test_noise_is_photon_and_read_noise_and_light_saturates():
    rng = np.random.default_rng(1)
    for level in (0.002, 0.05, 0.5):
        flat = sensor.expose(np.full((400, 400, 3), level), rng).astype(float) - sensor.BLACK
        electrons = flat * sensor.FULL_WELL / (sensor.WHITE - sensor.BLACK)
        assert electrons.mean() == pytest.approx(level * sensor.FULL_WELL, rel=0.01)
        rounding = (sensor.FULL_WELL / (sensor.WHITE - sensor.BLACK)) ** 2 / 12
        assert electrons.var() == pytest.approx(level * sensor.FULL_WELL + sensor.READ_NOISE**2 + rounding, rel=0.03)
    assert (sensor.expose(np.full((8, 8, 3), 1.7), rng) == sensor.WHITE).all()


def test_mosaic_is_rggb():
    light = np.zeros((4, 4, 3))
    for channel, level in enumerate((0.2, 0.5, 0.8)):
        light[..., channel] = level
    counts = sensor.expose(light, np.random.default_rng(0)) / sensor.WHITE
    assert counts[0, 0] == pytest.approx(0.23, abs=0.03) and counts[1, 1] == pytest.approx(0.8, abs=0.03)
    assert counts[0, 1] == pytest.approx(0.5, abs=0.03) and counts[1, 0] == pytest.approx(0.5, abs=0.03)


def test_clean_exposure_and_brighter_rendering(scene, decode):
    """RAW reads dark; the camera's picture of the same light is about three times as bright."""
    from PIL import Image

    from fujinsplat.core.color import decode as linearise
    from fujinsplat.core.color import luminance

    raw = [np.median(luminance(decode(p))) for p in sorted((scene / "val").glob("*.dng"))]
    pictures = [np.asarray(Image.open(p)) / 255 for p in sorted((scene / "val").glob("*.JPG"))]
    rendered = [np.median(luminance(linearise(p))) for p in pictures]
    assert 0.035 < np.median(raw) < 0.075
    assert 0.1 < np.median(rendered) < 0.28 and np.median(rendered) > 2 * np.median(raw)
