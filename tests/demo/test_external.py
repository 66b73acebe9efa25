"""External captures: smoke-free RAW with metric depth, varied, listed in a sheet."""

import csv

import numpy as np
import pytest
import rawpy


@pytest.fixture(scope="module")
def sheet(external):
    with (external / "captures.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_sheet_lists_every_capture_with_its_depth(external, sheet, small):
    assert len(sheet) == small.external and list(sheet[0]) == ["name", "path", "split"]
    names = [row["name"] for row in sheet]
    assert len(set(names)) == len(names)
    for row in sheet:
        assert (external / row["path"]).is_file()
        depth = np.load(external / f"{row['name']}.depth.npy")
        assert depth.dtype == np.float32 and depth.shape == (small.height, small.width)
        assert np.isfinite(depth).all() and depth.min() > 0.05 and depth.max() < 20
        with rawpy.imread(str(external / row["path"])) as file:
            assert file.raw_image_visible.shape == depth.shape
    assert len(list(external.iterdir())) == 2 * len(sheet) + 1


def test_captures_vary_in_content_and_exposure(external, sheet):
    medians = []
    for row in sheet:
        with rawpy.imread(str(external / row["path"])) as file:
            medians.append(np.median(file.raw_image_visible.astype(float) - 512) / (16383 - 512))
    assert max(medians) > 1.8 * min(medians)
    spans = [np.subtract(*np.log(np.percentile(np.load(external / f"{r['name']}.depth.npy"), (90, 10)))) for r in sheet]
    assert min(spans) > 0 and max(spans) > 1.3 * min(spans)


def test_depth_lies_on_the_raw_grid(external, sheet):
    """Where depth jumps, the picture changes more than elsewhere: the two are registered."""
    ratios = []
    for row in sheet:
        depth = np.log(np.load(external / f"{row['name']}.depth.npy"))
        with rawpy.imread(str(external / row["path"])) as file:
            green = file.raw_image_visible.astype(float)[::2, 1::2] - 512
        change = np.abs(np.diff(np.log(np.maximum(green, 4)), axis=1))
        jump = np.abs(np.diff(depth[::2, 1::2], axis=1)) > 0.15
        if jump.sum() > 20:
            ratios.append(change[jump].mean() / change[~jump].mean())
    assert ratios and np.median(ratios) > 1.5
