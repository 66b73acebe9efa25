"""RAW decoding gives the sensor's own numbers, and the file's colour metadata in the convention the project uses."""

import struct
from pathlib import Path

import numpy as np
import pytest
import rawpy
import tifffile

from fujinsplat.capture.raw import camera_matrix, check_container, raw_size, read_raw
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings

SETTINGS = CaptureSettings()


def test_sampled_sites_keep_the_sensor_values_exactly(tmp_path, dng):
    mosaic = np.random.default_rng(0).integers(dng.black, dng.white + 1, (32, 48))
    dng.write(tmp_path / "a.dng", mosaic)
    raw = read_raw(tmp_path / "a.dng", SETTINGS)
    expected = (mosaic - dng.black) * 65535 / (dng.white - dng.black)
    assert raw.linear.dtype == np.uint16 and raw.linear.shape == (32, 48, 3)
    for row, column, channel in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
        decoded = raw.linear[row::2, column::2, channel].astype(float)
        # LibRaw does not interpolate a sampled site; the border of the picture is filled by another routine
        assert np.abs(decoded - expected[row::2, column::2])[3:-3, 3:-3].max() <= 1.0


@pytest.mark.parametrize("peak", [0.3, 0.8, 1.0])
def test_scale_is_the_sensors_and_not_the_pictures_own(tmp_path, dng, peak):
    level = round(dng.black + 0.25 * (dng.white - dng.black))
    mosaic = np.full((32, 48), level)
    mosaic[10:14, 10:14] = round(dng.black + peak * (dng.white - dng.black))
    dng.write(tmp_path / "a.dng", mosaic)
    flat = read_raw(tmp_path / "a.dng", SETTINGS).linear[22:, 22:] / 65535
    assert np.abs(flat - (level - dng.black) / (dng.white - dng.black)).max() < 1e-4


def test_black_and_white_levels_map_to_zero_and_one(tmp_path, dng):
    for level, expected in ((dng.black, 0), (dng.white, 65535), (0, 0)):
        dng.write(tmp_path / "a.dng", np.full((32, 48), level))
        assert (read_raw(tmp_path / "a.dng", SETTINGS).linear == expected).all()


def test_white_balance_is_read_and_not_applied(tmp_path, dng):
    dng.write(tmp_path / "a.dng", np.full((32, 48), 4000))
    raw = read_raw(tmp_path / "a.dng", SETTINGS)
    assert raw.white_balance == pytest.approx(dng.white_balance, rel=1e-5)
    assert np.ptp(raw.linear) == 0


def test_camera_matrix_develops_as_libraw_does(tmp_path, dng):
    colour = np.array([0.10, 0.25, 0.13])
    mosaic = dng.mosaic_of(np.broadcast_to(colour, (32, 48, 3)))
    dng.write(tmp_path / "a.dng", mosaic)
    raw = read_raw(tmp_path / "a.dng", SETTINGS)
    matrix = np.array(raw.camera_matrix)
    assert matrix.sum(1) == pytest.approx([1, 1, 1])
    ours = matrix @ (raw.linear[16, 24] / 65535 * raw.white_balance)
    with rawpy.imread(str(tmp_path / "a.dng")) as file:
        theirs = file.postprocess(
            use_camera_wb=True, output_bps=16, gamma=(1, 1), no_auto_bright=True, adjust_maximum_thr=0.0
        )[16, 24].astype(float)
    # LibRaw divides all white-balance gains by one number; the colour is what the matrix decides
    assert ours / ours.sum() == pytest.approx(theirs / theirs.sum(), abs=2e-4)


def test_table_and_dng_matrices_mean_the_same(tmp_path, dng):
    dng.write(tmp_path / "a.dng", np.full((32, 48), 4000))
    from_dng = np.array(read_raw(tmp_path / "a.dng", SETTINGS).camera_matrix)
    table = np.vstack([dng.xyz_to_camera, np.zeros(3)])
    assert np.array(camera_matrix(table, np.zeros((3, 4)))) == pytest.approx(from_dng, abs=1e-5)


def test_no_colour_matrix_is_none(tmp_path, dng):
    dng.write(tmp_path / "a.dng", np.full((32, 48), 4000), matrix=None)
    assert read_raw(tmp_path / "a.dng", SETTINGS).camera_matrix is None


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_decoded_arrays(tmp_path, kind):
    linear = np.random.default_rng(0).integers(0, 65536, (6, 8, 3)).astype(np.uint16)
    stored = linear if kind is np.uint16 else (linear / 65535).astype(np.float32)
    np.savez(tmp_path / "a.npz", linear_rgb=stored)
    raw = read_raw(tmp_path / "a.npz", SETTINGS)
    assert (raw.linear == linear).all() and raw.camera_matrix is None
    assert raw.white_balance == pytest.approx([2428 / 1024, 1, 1700 / 1024])


def test_decoded_arrays_with_their_own_white_balance(tmp_path):
    np.savez(tmp_path / "a.npz", linear_rgb=np.zeros((4, 4, 3), np.uint16), white_balance=np.array([4.0, 2.0, 3.0]))
    assert read_raw(tmp_path / "a.npz", SETTINGS).white_balance == [2.0, 1.0, 1.5]


@pytest.mark.parametrize(
    "arrays",
    [
        {"other": np.zeros((4, 4, 3), np.uint16)},
        {"linear_rgb": np.zeros((4, 4), np.uint16)},
        {"linear_rgb": np.full((4, 4, 3), np.nan)},
        {"linear_rgb": np.zeros((4, 4, 3), np.int32)},
    ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=r"a\.npz.*download it again"):
        read_raw(tmp_path / "a.npz", SETTINGS)


def lossless_jpeg(mosaic: np.ndarray) -> bytes:
    """Counts `[H, W]` as cameras compress them: each as its difference to the left one, lengths in five bits."""
    counts = mosaic.astype(int)
    differences = np.diff(counts, axis=1, prepend=np.concatenate([[1 << 13], counts[:-1, 0]])[:, None])
    bits = []
    for d in differences.ravel().tolist():
        length = abs(d).bit_length()
        bits.append(f"{length:05b}" + (f"{d if d > 0 else d + (1 << length) - 1:0{length}b}" if length else ""))
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    data = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")

    def segment(mark: int, body: bytes) -> bytes:
        return struct.pack(">HH", mark, len(body) + 2) + body

    table = bytes([0, 0, 0, 0, 0, 17, *[0] * 11, *range(17)])
    frame = struct.pack(">BHHB3B", 14, *mosaic.shape, 1, 1, 0x11, 0)
    head = segment(0xFFC4, table) + segment(0xFFC3, frame) + segment(0xFFDA, bytes([1, 1, 0, 1, 0, 0]))
    return b"\xff\xd8" + head + data + b"\xff\xd9"


def compress(path: Path, mosaic: np.ndarray) -> int:
    """Make an uncompressed DNG a compressed one; returns where its data begin."""
    with tifffile.TiffFile(path) as file:
        places = {tag.code: (tag.valueoffset, "<I" if tag.dtype == 4 else "<H") for tag in file.pages[0].tags}
    whole = bytearray(path.read_bytes())
    start, data = len(whole), lossless_jpeg(mosaic)
    for code, value in ((259, 7), (273, start), (279, len(data))):
        struct.pack_into(places[code][1], whole, places[code][0], value)
    path.write_bytes(whole + data)
    return start


def test_damage_that_libraw_reports_is_one_sentence(tmp_path, dng):
    mosaic = np.random.default_rng(0).integers(dng.black, dng.white + 1, (32, 48))
    path = tmp_path / "a.dng"
    dng.write(path, mosaic)
    whole = read_raw(path, SETTINGS).linear
    start = compress(path, mosaic)
    assert (read_raw(path, SETTINGS).linear == whole).all(), "the same picture, compressed"
    sound = path.read_bytes()
    refused = 0
    for place in range(start + 60, len(sound) - 2, 97):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x40]) + sound[place + 1 :])
        try:
            read_raw(path, SETTINGS)
        except UserError as error:
            refused += 1
            assert str(error).startswith(f"{path} is truncated or damaged (LibRaw: Data error")
    assert refused > 3


@pytest.mark.parametrize("bit", [14, 15])
def test_values_beyond_the_sensors_bits_are_damage(tmp_path, dng, bit):
    mosaic = np.full((32, 48), dng.white)
    mosaic[5, 7] ^= 1 << bit
    dng.write(tmp_path / "a.dng", mosaic)
    with pytest.raises(UserError, match=r"a\.dng is damaged: 1 of its values have more than the 14 bits"):
        read_raw(tmp_path / "a.dng", SETTINGS)


@pytest.mark.parametrize("suffix", [".nef", ".cr2", ".arw"])
@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite"])
def test_a_grey_tiff_that_names_a_maker_is_no_raw_file(tmp_path, suffix, photometric):
    path = tmp_path / f"scan{suffix}"
    maker = (271, "s", 6, "NIKON", True)
    tifffile.imwrite(path, np.zeros((32, 48), np.uint16), photometric=photometric, extratags=[maker], metadata=None)
    with pytest.raises(UserError, match=f"scan{suffix} is a plain TIFF and no RAW file .*use the camera's own file"):
        raw_size(path)
    # a maker's own file has the shot's data beside it, or pictures within
    written = path.read_bytes()
    software, exif = struct.pack("<HH", 305, 2), struct.pack("<HH", 34665, 2)
    assert written.count(software) == 1
    path.write_bytes(written.replace(software, exif))
    check_container(path)
    with tifffile.TiffWriter(path) as file:
        for within in (1, 0):
            file.write(np.zeros((32, 48), np.uint16), photometric=photometric, extratags=[maker], subifds=within)
    check_container(path)
