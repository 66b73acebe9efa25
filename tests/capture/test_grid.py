"""RAW and camera RGB come onto one grid without shifting or inventing anything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fujinsplat.capture.grid import AspectError, area_resize, on_one_grid, resize_rgb
from fujinsplat.capture.raw import Raw
from fujinsplat.core.color import encode


def raw_of(linear: np.ndarray, **more) -> Raw:
    return Raw(np.rint(linear * 65535).astype(np.uint16), [2.0, 1.0, 1.5], None, **more)


def rgb_of(linear: np.ndarray) -> np.ndarray:
    return np.rint(encode(np.clip(linear, 0, 1)) * 255).astype(np.uint8)


@given(
    old=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    shrink=st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)),
    seed=st.integers(0, 9),
)
def test_area_resize_keeps_mean_and_constants(old, shrink, seed):
    height, width = (max(1, int(side * share)) for side, share in zip(old, shrink, strict=True))
    image = np.random.default_rng(seed).random((*old, 3))
    small = area_resize(image, width, height)
    assert small.shape == (height, width, 3)
    assert small.mean((0, 1)) == pytest.approx(image.mean((0, 1)), abs=1e-5)
    assert area_resize(np.full((*old, 3), 0.7), width, height) == pytest.approx(0.7, abs=1e-6)
    assert small.min() >= image.min() - 1e-6 and small.max() <= image.max() + 1e-6


def test_area_resize_is_the_block_mean_for_whole_factors():
    image = np.random.default_rng(0).random((12, 20, 3))
    blocks = image.reshape(4, 3, 5, 4, 3).mean((1, 3))
    assert area_resize(image, 5, 4) == pytest.approx(blocks, abs=1e-6)


def test_equal_sizes_are_untouched(scenery):
    raw, rgb = raw_of(scenery(1)), rgb_of(scenery(1))
    pair = on_one_grid(raw, rgb)
    assert (pair.raw_linear == raw.linear).all() and (pair.rgb_encoded == rgb).all() and pair.notes == ()


def test_larger_raw_goes_to_the_rgb_grid(scenery):
    large = scenery(1, 192, 128)
    pair = on_one_grid(raw_of(large), rgb_of(area_resize(large, 48, 32)))
    assert pair.raw_linear.shape == (32, 48, 3)
    assert pair.raw_linear / 65535 == pytest.approx(area_resize(large, 48, 32), abs=2e-5)
    assert pair.notes == ("linear RAW area-resized from 192x128 to 48x32",)


def test_larger_rgb_goes_to_the_raw_grid_in_linear_light(scenery):
    large = scenery(1, 96, 64)
    small = area_resize(large, 48, 32)
    pair = on_one_grid(raw_of(small), rgb_of(large))
    assert (pair.raw_linear == raw_of(small).linear).all()
    assert np.abs(pair.rgb_encoded.astype(int) - rgb_of(small)).max() <= 1
    assert "camera RGB area-resized from 96x64 to 48x32" in pair.notes


def test_resizing_averages_light_and_not_code_values():
    checker = np.indices((8, 8)).sum(0)[..., None] % 2 * np.full(3, 255)
    grey = resize_rgb(checker.astype(np.uint8), (4, 4))
    assert (grey == np.rint(encode(0.5) * 255)).all()


@pytest.mark.parametrize("factor", [1, 4])
def test_a_small_border_is_cut_and_does_not_shift_the_picture(scenery, factor):
    """LibRaw's area is 6 and 4 pixels larger than the camera's frame: after the cut the two agree pixel for pixel."""
    width, height = 48 * factor, 32 * factor
    frame = scenery(1, width, height)
    sensor = np.pad(frame, ((2, 2), (3, 3), (0, 0)))
    small = area_resize(frame, 48, 32)
    pair = on_one_grid(raw_of(sensor), rgb_of(small))
    assert pair.raw_linear / 65535 == pytest.approx(small, abs=2e-5)
    assert "border of 6x4" in pair.notes[0]


def test_the_files_own_crop_decides_where_to_cut(scenery):
    frame = scenery(1)
    sensor = np.pad(frame, ((0, 4), (6, 0), (0, 0)))
    pair = on_one_grid(raw_of(sensor, crop=(6, 0, 48, 32)), rgb_of(frame))
    assert pair.raw_linear / 65535 == pytest.approx(frame, abs=2e-5)


@pytest.mark.parametrize("turns", [1, 3])
def test_upright_rgb_turns_the_raw(scenery, turns):
    upright = np.rot90(scenery(1), turns)
    pair = on_one_grid(raw_of(scenery(1), turns=turns), rgb_of(upright))
    assert pair.raw_linear / 65535 == pytest.approx(upright, abs=2e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_half_turn_is_decided_by_the_picture(scenery, turned):
    shown = np.rot90(scenery(1), 2) if turned else scenery(1)
    pair = on_one_grid(raw_of(scenery(1), turns=2), rgb_of(shown))
    assert pair.raw_linear / 65535 == pytest.approx(shown, abs=2e-5)


def test_another_aspect_is_refused(scenery):
    with pytest.raises(AspectError):
        on_one_grid(raw_of(scenery(1, 48, 32)), rgb_of(scenery(1, 48, 36)))
    with pytest.raises(AspectError):
        on_one_grid(raw_of(scenery(1, 32, 48)), rgb_of(scenery(1, 48, 32)))
