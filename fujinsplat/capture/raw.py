"""RAW decoding: what the sensor measured, in camera-linear RGB without white balance.

LibRaw subtracts the black level, scales the sensor's fixed range (black to white level) to 16 bits and demosaics; unit
multipliers, no brightening, no gamma, no colour conversion. LibRaw would also stretch each file to its own brightest
pixel (`adjust_maximum_thr`); that is off, because one scale must hold for all views of a scene and for clean twins.
Pixels stay as stored: the orientation tag is reported, never applied here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from fujinsplat.capture.layout import DECODED_SUFFIXES
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings

# linear sRGB (D65) to XYZ
SRGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# LibRaw's flip codes as quarter turns counter-clockwise
QUARTER_TURNS = {0: 0, 3: 2, 5: 1, 6: 3}
# cameras expose below the sensor's white level and brighten when they render; so does LibRaw's rendering here
RENDERING_GAIN = 2.0


@dataclass(frozen=True)
class Raw:
    """`linear` uint16 [H, W, 3] camera RGB over 65535; `white_balance` [3] with G = 1; `camera_matrix` [3, 3] or None:
    white-balanced camera RGB to linear sRGB, rows sum to 1. `turns`: quarter turns counter-clockwise that would bring
    the pixels upright. `crop` (left, top, width, height): the part the camera itself develops, if the file says so."""

    linear: np.ndarray
    white_balance: list[float]
    camera_matrix: list[list[float]] | None
    turns: int = 0
    crop: tuple[int, int, int, int] | None = None
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        return self.linear.shape[1], self.linear.shape[0]


def read_raw(path: Path, settings: CaptureSettings, half: bool = False) -> Raw:
    """Decode one RAW file, or one array of the release layout. `half`: one pixel for each 2x2 cell of the mosaic, which
    needs no demosaicing."""
    if path.suffix.lower() in DECODED_SUFFIXES:
        return _read_array(path, settings)
    import rawpy

    with raw_file(path) as file:
        if file.num_colors != 3:
            raise UserError(f"{path}: the sensor has {file.num_colors} colours; only RGB sensors are supported")
        white_balance, notes = _white_balance(file, path)
        matrix = camera_matrix(file.rgb_xyz_matrix, file.color_matrix)
        turns, crop = QUARTER_TURNS.get(file.sizes.flip, 0), _crop(file.sizes)
        if path.suffix.lower() == ".dng":
            _check_range(file, path)
        linear = file.postprocess(
            demosaic_algorithm=getattr(rawpy.DemosaicAlgorithm, settings.demosaic),
            half_size=half,
            user_wb=[1.0, 1.0, 1.0, 1.0],
            output_color=rawpy.ColorSpace.raw,
            output_bps=16,
            gamma=(1, 1),
            no_auto_bright=True,
            adjust_maximum_thr=0.0,
            highlight_mode=rawpy.HighlightMode.Clip,
            user_flip=0,
        )
    if linear.ndim != 3 or linear.shape[2] != 3:
        raise UserError(f"{path} decodes to {linear.shape} instead of three colours; only RGB sensors are supported")
    if half and crop is not None:
        left, top, wide, high = crop
        crop = left // 2, top // 2, wide // 2, high // 2
    return Raw(linear, white_balance, matrix, turns, crop, notes)


@contextmanager
def raw_file(path: Path) -> Iterator:
    """LibRaw's open file; what goes wrong with it, then or later, is one sentence."""
    import rawpy

    check_container(path)
    try:
        with rawpy.imread(str(path)) as file:
            yield file
    except rawpy.LibRawFileUnsupportedError:
        raise UserError(
            f"{path} is not a RAW file that LibRaw {_libraw()} can read; convert it to DNG, or update rawpy"
        ) from None
    except rawpy.LibRawNotImplementedError:
        raise UserError(
            f"{path} uses a RAW variant that LibRaw {_libraw()} lacks; convert it to uncompressed DNG"
        ) from None
    except (rawpy.LibRawError, OSError) as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise UserError(f"{path} is truncated or damaged (LibRaw: {reason}); copy it from the camera again") from None


def _check_range(file, path: Path) -> None:
    """LibRaw itself reports damage where a value cannot be unpacked; values that lie plainly in the file pass it by."""
    bits = int(file.white_level).bit_length()
    beyond = int((file.raw_image >> bits != 0).sum()) if file.raw_image is not None and bits < 16 else 0
    if beyond:
        raise UserError(
            f"{path} is damaged: {beyond} of its values have more than the {bits} bits that its white level says; "
            "copy it from the camera again"
        )


def check_container(path: Path) -> None:
    """A plain TIFF that was given a RAW file's name: LibRaw would take its grey values for a mosaic of colours.

    Every DNG carries its version. Every maker's RAW file that is a TIFF inside names its maker, and where it begins
    with a grey picture, it has the mosaic beside it (SubIFDs) or the shot's data (Exif).
    """
    with path.open("rb") as stream:
        head = stream.read(4)
    if head not in (b"II*\0", b"MM\0*"):
        return
    import logging

    import tifffile

    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what is wrong is said once, below or by LibRaw
    try:
        with tifffile.TiffFile(path) as file:
            first = file.pages.first.tags
            tags, photometric = {tag.code for tag in first}, first.valueof(262)
    except Exception:  # a damaged file: LibRaw says what is wrong with it
        return
    wanted = 50706 if path.suffix.lower() == ".dng" else 271
    grey = photometric in (0, 1) and not tags & {330, 34665}  # SubIFDs, Exif
    if tags and (wanted not in tags or (wanted == 271 and grey)):
        kind = "DNG version" if wanted == 50706 else "data of the shot" if wanted in tags else "camera maker"
        raise UserError(
            f"{path} is a plain TIFF and no RAW file (it states no {kind}); use the camera's own file, "
            "or convert that to DNG"
        )


def raw_size(path: Path) -> tuple[int, int]:
    """(width, height) of the decoded picture, from the header; arrays of the release layout are opened."""
    if path.suffix.lower() in DECODED_SUFFIXES:
        return _read_array(path, CaptureSettings()).size
    with raw_file(path) as file:
        return file.sizes.width, file.sizes.height


def check_raw(path: Path) -> None:
    """Opened and unpacked by LibRaw, or one sentence."""
    with raw_file(path) as file:
        file.unpack()


def preview(path: Path) -> np.ndarray | None:
    """The camera's own rendering that the RAW file carries: uint8 [h, w, 3] sRGB, pixels as stored, or None."""
    import rawpy
    from PIL import Image

    with raw_file(path) as file:
        try:
            thumb = file.extract_thumb()
        except (rawpy.LibRawNoThumbnailError, rawpy.LibRawUnsupportedThumbnailError):
            return None
    if thumb.format == rawpy.ThumbFormat.BITMAP:
        return np.ascontiguousarray(thumb.data[..., :3])
    try:
        with Image.open(BytesIO(thumb.data)) as image:
            return np.array(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError):
        return None


def rendering(path: Path, half: bool = False) -> np.ndarray:
    """LibRaw's plain rendering: the camera's white balance and matrix, the sRGB curve, one exposure for all views of a
    scene; uint8 [H, W, 3], pixels as stored."""
    import rawpy

    with raw_file(path) as file:
        return file.postprocess(
            half_size=half,
            use_camera_wb=True,
            output_color=rawpy.ColorSpace.sRGB,
            output_bps=8,
            gamma=(2.4, 12.92),
            no_auto_bright=True,
            adjust_maximum_thr=0.0,
            bright=RENDERING_GAIN,
            user_flip=0,
        )


def _libraw() -> str:
    import rawpy

    return ".".join(str(n) for n in rawpy.libraw_version)


def _white_balance(file, path: Path) -> tuple[list[float], tuple[str, ...]]:
    """The as-shot multipliers over green's; daylight ones when the file has none."""
    for values, note in (
        (file.camera_whitebalance, ()),
        (file.daylight_whitebalance, ("no as-shot white balance in the file: daylight values used",)),
    ):
        gains = np.asarray(values, np.float64)[:3]
        if np.isfinite(gains).all() and (gains > 0).all():
            return (gains / gains[1]).tolist(), note
    raise UserError(
        f"{path} carries no white balance; convert it to DNG with the camera's metadata, or export it again"
    )


def camera_matrix(rgb_xyz: np.ndarray, color: np.ndarray) -> list[list[float]] | None:
    """White-balanced camera RGB to linear sRGB (column convention, rows sum to 1), as LibRaw itself develops.

    `rgb_xyz` [4, 3] is LibRaw's table value for the model (XYZ to camera); its product with sRGB-to-XYZ maps linear
    sRGB to camera RGB, rows normalised so that white is (1, 1, 1) in both, then inverted. A DNG has its own matrices
    instead: there `rgb_xyz` is zero and `color` [3, 4] is already that inverse.
    """
    rgb_xyz, color = np.asarray(rgb_xyz, np.float64)[:3, :3], np.asarray(color, np.float64)[:3, :3]
    if np.abs(rgb_xyz).sum() > 0:
        camera_from_srgb = rgb_xyz @ SRGB_TO_XYZ
        camera_from_srgb = camera_from_srgb / camera_from_srgb.sum(1, keepdims=True)
        if abs(np.linalg.det(camera_from_srgb)) < 1e-6:
            return None
        matrix = np.linalg.inv(camera_from_srgb)
    else:
        matrix = color
    rows = matrix.sum(1, keepdims=True)
    if not np.isfinite(matrix).all() or (rows <= 0.1).any() or np.linalg.det(matrix) <= 0:
        return None
    return (matrix / rows).tolist()


def _crop(sizes) -> tuple[int, int, int, int] | None:
    """The camera's own crop within the decoded area; files state it relative to the whole sensor."""
    if not sizes.crop_width or not sizes.crop_height:
        return None
    left, top = sizes.crop_left_margin - sizes.left_margin, sizes.crop_top_margin - sizes.top_margin
    if left < 0 or top < 0 or left + sizes.crop_width > sizes.width or top + sizes.crop_height > sizes.height:
        return None
    return left, top, sizes.crop_width, sizes.crop_height


def _read_array(path: Path, settings: CaptureSettings) -> Raw:
    """The release layout's `.npz`: `linear_rgb` [H, W, 3], uint16 or float in [0, 1], demosaiced, no white balance."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            linear = arrays["linear_rgb"]
            given = np.asarray(arrays["white_balance"], np.float64).ravel()[:3] if "white_balance" in arrays else None
    except KeyError:
        raise UserError(f"{path} has no array called linear_rgb; download it again") from None
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for a damaged archive
        raise UserError(f"{path} is truncated or damaged ({error}); download it again") from None
    if linear.ndim != 3 or linear.shape[2] != 3:
        raise UserError(f"{path}: linear_rgb has shape {linear.shape} instead of [H, W, 3]; download it again")
    if np.issubdtype(linear.dtype, np.floating):
        if not np.isfinite(linear).all():
            raise UserError(f"{path}: linear_rgb holds non-finite numbers; download it again")
        linear = np.rint(np.clip(linear, 0.0, 1.0) * 65535.0).astype(np.uint16)
    if linear.dtype != np.uint16:
        raise UserError(f"{path}: linear_rgb is {linear.dtype} instead of uint16 or float; download it again")
    if given is not None and given.size == 3 and np.isfinite(given).all() and (given > 0).all():
        return Raw(linear, (given / given[1]).tolist(), None)
    return Raw(linear, list(settings.white_balance), None, notes=("white balance from the settings",))
