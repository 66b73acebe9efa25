"""What a user can get wrong with captures ends in one sentence, and nothing is written."""

import numpy as np
import pytest

from fujinsplat.core.errors import UserError
from fujinsplat.demo import sensor
from fujinsplat.synthesis.captures import sample
from fujinsplat.synthesis.sheet import read_sheet, shard

from .conftest import write_captures


@pytest.fixture
def folder(tmp_path):
    return write_captures(tmp_path / "external", 2)


def refused(folder, settings, match):
    out = folder.parent / "out" / "0000.safetensors"
    with pytest.raises(UserError, match=match):
        sample(read_sheet(folder), out, settings)
    assert not out.exists()


def test_a_black_capture(folder, settings):
    sensor.write_dng(folder / "capture1.dng", np.full((64, 96), sensor.BLACK, np.uint16))
    refused(folder, settings, r"capture1\.dng.*green")


@pytest.mark.parametrize(
    ("depth", "match"),
    [
        (np.zeros((4, 5)), "positive"),
        (np.full((4, 5), 2.0), "constant"),
        (np.full((4, 5), np.nan), "positive and finite"),
        (np.zeros((0, 5)), "positive"),
    ],
)
def test_useless_depth(folder, settings, depth, match):
    np.save(folder / "capture1.depth.npy", depth)
    refused(folder, settings, rf"capture1\.depth\.npy.*{match}")


def test_missing_and_damaged_files(folder, settings):
    (folder / "capture1.depth.npy").write_bytes(b"not an array")
    refused(folder, settings, "no readable depth map")
    (folder / "capture1.depth.npy").unlink()
    refused(folder, settings, "depth: network")
    (folder / "capture0.dng").unlink()
    refused(folder, settings, r"capture0\.dng does not exist")


def test_bad_sheets(folder):
    sheet = folder / "captures.csv"
    sheet.write_text("name,path,split\na,a.dng,train\na,b.dng,train\n")
    with pytest.raises(UserError, match="occurs twice"):
        read_sheet(folder)
    sheet.write_text("name,path,split\na,,train\n")
    with pytest.raises(UserError, match="line 2: path is missing"):
        read_sheet(folder)
    sheet.write_text("name,path,split\na,a.dng,test\n")
    with pytest.raises(UserError, match="no capture with split"):
        read_sheet(folder)
    sheet.unlink()
    with pytest.raises(UserError, match="acquire"):
        read_sheet(folder)


def test_there_is_no_such_shard(folder):
    with pytest.raises(UserError, match="no shard 0007"):
        shard(read_sheet(folder), 4, "0007")
