"""Pictures as data addresses, small enough to sit in one page."""

import base64
import io
from pathlib import Path

from fujinsplat.core.errors import UserError

SLIDER_WIDTH = 1000
STRIP_WIDTH = 360
FIGURE_WIDTH = 1800


def jpeg_url(path: Path, width: int = SLIDER_WIDTH, quality: int = 84, turns: int = 0) -> tuple[str, tuple[int, int]]:
    """A photograph as a JPEG data address of at most `width` pixels, and its size; `turns`: quarter turns
    counter-clockwise."""
    picture = _opened(path).convert("RGB")
    picture = picture.rotate(90 * turns, expand=True) if turns else picture
    if picture.width > width:
        picture = picture.resize((width, round(picture.height * width / picture.width)), resample=4)  # box: area mean
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=quality, optimize=True, progressive=True)
    return _url(stream.getvalue(), "image/jpeg"), picture.size


def png_url(path: Path, width: int = FIGURE_WIDTH) -> tuple[str, tuple[int, int]]:
    """A figure as it is, or as a smaller WebP when it is wider than `width`."""
    picture = _opened(path)
    stream = io.BytesIO()
    if picture.width > width or path.stat().st_size > 400_000:
        if picture.width > width:
            picture = picture.resize((width, round(picture.height * width / picture.width)), resample=1)
        picture.convert("RGB").save(stream, "WEBP", quality=88, method=4)
        return _url(stream.getvalue(), "image/webp"), picture.size
    return _url(path.read_bytes(), "image/png"), picture.size


def _opened(path: Path):
    from PIL import Image, UnidentifiedImageError

    try:
        picture = Image.open(path)
        picture.load()
        return picture
    except (UnidentifiedImageError, OSError) as error:
        raise UserError(f"{path} is not a readable picture ({error}); build it again") from None


def _url(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
