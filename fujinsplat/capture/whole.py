"""Whether a file ends where its own structure says, without decoding it: copies from a card that broke off do not.

A suspicion, not a verdict: makers' files state their lengths in ways of their own, so a decoder has the last word.
"""

import re
from pathlib import Path

# in a JPEG's picture data, a marker is 0xff and neither a stuffed zero, nor a restart, nor a fill byte
MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
END = 0xD9
RAF_PARTS = 84  # in a Fuji RAW file: places and lengths of preview, header and picture, four bytes each


def cut_short(path: Path) -> bool:
    """Whether a JPEG, PNG, Fuji, Canon CR3 or TIFF-like RAW file seems to end early; False for other kinds."""
    with path.open("rb") as stream:
        head = stream.read(RAF_PARTS + 24)
    if head.startswith(b"\xff\xd8"):
        return not _jpeg_ends(path.read_bytes())
    if head.startswith(b"\x89PNG"):
        return not _png_ends(path)
    if head.startswith(b"FUJIFILM"):
        numbers = [int.from_bytes(head[i : i + 4], "big") for i in range(RAF_PARTS, RAF_PARTS + 24, 4)]
        return max(place + length for place, length in zip(numbers[::2], numbers[1::2], strict=True)) > _size(path)
    if head[4:8] == b"ftyp":
        return not _boxes_end(path)
    return head[:4] in (b"II*\0", b"MM\0*") and _tiff_beyond(path)


def _size(path: Path) -> int:
    return path.stat().st_size


def _boxes_end(path: Path) -> bool:
    """Whether the boxes of a CR3 file fill it: each begins with its length, 1 for a longer number, 0 for the rest."""
    size, place = _size(path), 0
    with path.open("rb") as stream:
        while place + 8 <= size:
            stream.seek(place)
            head = stream.read(16)
            length = int.from_bytes(head[:4], "big")
            if length == 0:
                return True
            length = int.from_bytes(head[8:16], "big") if length == 1 else length
            if length < 8:
                return True  # no box: the decoder says what is wrong
            place += length
    return place <= size


def _jpeg_ends(data: bytes) -> bool:
    """Whether the first picture of a JPEG reaches its end marker; what follows it (a film, a second picture) does not
    count."""
    place = 2
    while (found := MARKER.search(data, place)) is not None:
        if found[1][0] == END:
            return True
        length = int.from_bytes(data[found.end() : found.end() + 2], "big")
        place = found.end() + max(length, 2)  # a segment says how long it is; picture data after a scan does not
    return False


def _png_ends(path: Path) -> bool:
    size = _size(path)
    with path.open("rb") as stream:
        place = 8
        while place + 12 <= size:
            stream.seek(place)
            head = stream.read(8)
            place += 12 + int.from_bytes(head[:4], "big")
            if head[4:] == b"IEND":
                return place <= size
    return False


def _tiff_beyond(path: Path) -> bool:
    """Whether a picture of a TIFF-like file lies beyond the file's end."""
    import logging

    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    size = _size(path)
    try:
        with tifffile.TiffFile(path) as file:
            pages = [
                page for series in (file.pages, *(p.pages for p in file.pages if p.pages)) for page in series or ()
            ]
            ends = [a + b for page in pages for a, b in zip(page.dataoffsets, page.databytecounts, strict=False)]
    except Exception:  # a structure that is broken itself: the decoder says what is wrong
        return True
    return max(ends, default=0) > size
