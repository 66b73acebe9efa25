"""Files that end early are told from whole ones by their structure; decoders are asked elsewhere."""

from pathlib import Path

import pytest

from fujinsplat.capture.whole import cut_short


def fuji() -> bytes:
    """The places and lengths of preview, header and picture, and as many bytes."""
    numbers = (148, 40, 188, 12, 200, 100)
    head = b"FUJIFILMCCD-RAW ".ljust(84, b"\0") + b"".join(number.to_bytes(4, "big") for number in numbers)
    return head.ljust(300, b"x")


def boxes() -> bytes:
    """A short box, one with a long number, and one to the end of the file."""
    first = (24).to_bytes(4, "big") + b"ftypcrx " + bytes(12)
    long = (1).to_bytes(4, "big") + b"moov" + (40).to_bytes(8, "big") + bytes(24)
    return first + long + (60).to_bytes(4, "big") + b"mdat" + bytes(52)


@pytest.mark.parametrize("whole", [fuji, boxes])
def test_a_raw_file_of_no_tiff_kind_that_is_cut_anywhere(tmp_path, whole):
    path, data = Path(tmp_path / "x.raw"), whole()
    path.write_bytes(data)
    assert not cut_short(path)
    path.write_bytes(data + b"more")
    assert not cut_short(path), "something behind it"
    for length in (len(data) - 1, len(data) // 2):
        path.write_bytes(data[:length])
        assert cut_short(path), length


def test_kinds_that_nobody_knows_are_left_to_the_decoder(tmp_path):
    for data in (b"", b"x", b"IIRO".ljust(200, b"\0"), b"\0\0\0\4ftypcrx "):
        (tmp_path / "x.raw").write_bytes(data)
        assert not cut_short(tmp_path / "x.raw")
