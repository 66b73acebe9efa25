"""One view as the later stages know it: linear RAW and camera RGB on one grid, whatever files it consists of.

- RAW and camera RGB: the usual case.
- RAW alone: the camera's own rendering comes from the file's embedded preview where that is large enough, or else
  from LibRaw, with one exposure for all views.
- camera RGB alone: its decoded sRGB light stands in for the RAW; white balance and matrix are the identity.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fujinsplat.capture.cameras import same_aspect
from fujinsplat.capture.grid import AspectError, limited, on_one_grid, resize_rgb
from fujinsplat.capture.layout import DECODED_SUFFIXES, View
from fujinsplat.capture.picture import read_rgb, rgb_size
from fujinsplat.capture.raw import Raw, preview, raw_size, read_raw, rendering
from fujinsplat.core.color import decode
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import CaptureSettings

# EXIF orientations that are turns, as quarter turns counter-clockwise that bring the stored pixels upright
EXIF_TURNS = {1: 0, 3: 2, 6: 3, 8: 1}
DISPLAY_LIGHT = "no RAW file: the camera RGB's decoded sRGB light is used in its place"


@dataclass(frozen=True)
class Frame:
    """`raw_linear` uint16 [H, W, 3] and `rgb_encoded` uint8 [H, W, 3] on one grid; `turns`: quarter turns
    counter-clockwise that bring the pixels upright. Sizes are (width, height) of the files' own pictures."""

    raw_linear: np.ndarray
    rgb_encoded: np.ndarray
    white_balance: list[float]
    camera_matrix: list[list[float]] | None
    raw_size: tuple[int, int]
    rgb_size: tuple[int, int]
    turns: int
    notes: tuple[str, ...]

    @property
    def size(self) -> tuple[int, int]:
        return self.rgb_encoded.shape[1], self.rgb_encoded.shape[0]


def stored_size(view: View) -> tuple[int, int]:
    """(width, height) from the header of a view's RGB, or of its RAW where it has no RGB."""
    if view.rgb is not None:
        return rgb_size(view.rgb)
    assert view.raw is not None
    return raw_size(view.raw)


def read_frame(
    view: View,
    settings: CaptureSettings,
    size: tuple[int, int] | None = None,
    max_side: int | None = None,
    shape: tuple[int, int] | None = None,
    for_raw: bool = False,
) -> Frame:
    """One view on one grid: its own, its longer side at most `max_side`; or `size`, the source view's grid, for a clean
    twin. `shape`: what the poses say the picture's (width, height) are; pixels that only fit it when turned upright, as
    their orientation tag says, are turned. `for_raw`: the RAW on its own finer grid, the RGB as it is."""
    if view.raw is None:
        frame = _display_light(view, size, max_side, size or shape)
    else:
        frame = _from_raw(view, view.raw, settings, size, max_side, for_raw, size or shape)
    wanted = shape or size
    width, height = frame.size
    fits = wanted is None or same_aspect(frame.size, wanted)
    if wanted is not None and not fits and frame.turns % 2 and same_aspect((height, width), wanted):
        raw, rgb = (np.ascontiguousarray(np.rot90(x, frame.turns)) for x in (frame.raw_linear, frame.rgb_encoded))
        note = ("turned upright as the orientation tag says: the poses speak of the upright picture",)
        return replace(frame, raw_linear=raw, rgb_encoded=rgb, turns=0, notes=frame.notes + note)
    return frame


def _from_raw(view: View, path: Path, settings: CaptureSettings, size, max_side, for_raw: bool, shape) -> Frame:
    full = raw_size(path)
    array = path.suffix.lower() in DECODED_SUFFIXES
    target = max(size) if size else max_side
    # half the mosaic's width still holds every pixel of the grid that is wanted; a twin is decoded as its source is
    half = not array and max_side is not None and max(full) // 2 >= max_side
    raw = read_raw(path, settings, half)
    notes = raw.notes
    if view.rgb is not None:
        rgb, orientation = read_rgb(view.rgb)
    else:
        rgb, orientation, how = _rendered(path, raw, full, target, half)
        notes += (how,)
    rgb_was = rgb.shape[1], rgb.shape[0]
    lying = _stands(raw, rgb_was) and (shape is None or same_aspect(shape, full))
    if lying:  # portraits and landscapes of one camera share one grid: the sensor's
        rgb = np.ascontiguousarray(np.rot90(rgb, -raw.turns))
        notes += ("camera RGB turned back to how the sensor lay",)
        rgb_was = rgb_was[::-1]
    if half and rgb_was[0] > raw.size[0]:  # the borders of the two are compared pixel by pixel
        rgb = resize_rgb(rgb, (rgb_was[0] // 2, rgb_was[1] // 2))
    try:
        pair = on_one_grid(raw, rgb, size, max_side, for_raw)
    except AspectError:
        raise UserError(_aspect_sentence(view, full, rgb_was, size)) from None
    notes += pair.notes
    # an upright RGB made the grid upright; otherwise the RAW's tag speaks where the RGB has none
    upright = any("turned upright" in note for note in pair.notes)
    turns = 0 if upright else EXIF_TURNS.get(orientation or 1, 0) or (raw.turns if view.rgb is None or lying else 0)
    if orientation not in (1, None):
        notes += (f"EXIF orientation {orientation} of the RGB not applied: pixels are used as stored",)
    return Frame(pair.raw_linear, pair.rgb_encoded, raw.white_balance, raw.camera_matrix, full, rgb_was, turns, notes)


def _stands(raw: Raw, rgb_size: tuple[int, int]) -> bool:
    """Whether the RGB is an upright portrait beside a RAW that lies as the sensor did."""
    width, height = raw.size
    return raw.turns % 2 == 1 and not same_aspect(raw.size, rgb_size) and same_aspect((height, width), rgb_size)


def _aspect_sentence(view: View, full, rgb_was, size) -> str:
    rgb = view.rgb or f"the preview in {view.raw}"
    return (
        f"{view.raw} ({full[0]}x{full[1]}) and {rgb} ({rgb_was[0]}x{rgb_was[1]}) differ in aspect"
        + (f", or from the {size[0]}x{size[1]} of the source view" if size else "")
        + "; use the uncropped RGB of the same shot"
    )


def _rendered(path: Path, raw: Raw, full: tuple[int, int], target: int | None, half: bool):
    """(camera-like RGB uint8, orientation, what it is) of a RAW file that is alone."""
    if path.suffix.lower() in DECODED_SUFFIXES:
        raise UserError(f"{path} has no camera RGB beside it; the release layout needs both")
    shown = preview(path)
    if shown is not None and same_aspect((shown.shape[1], shown.shape[0]), full):
        if max(shown.shape[:2]) >= min(target or max(full), max(full) // 2):
            return shown, None, "no camera RGB: the RAW file's embedded preview is used"
    return rendering(path, half), None, "no camera RGB: LibRaw's rendering is used"


def _display_light(view: View, size, max_side, shape) -> Frame:
    assert view.rgb is not None  # a view has at least one of its two files
    rgb, orientation = read_rgb(view.rgb)
    was = rgb.shape[1], rgb.shape[0]
    turns = EXIF_TURNS.get(orientation, 0)
    notes: tuple[str, ...] = (DISPLAY_LIGHT,)
    if was[1] > was[0] and not (shape and same_aspect(shape, was)):
        # portraits and landscapes of one camera share one grid, as on its sensor
        rgb, was, turns = np.ascontiguousarray(np.rot90(rgb, -1)), was[::-1], (turns + 1) % 4
        notes += ("an upright portrait laid down, so that all views lie as the sensor did",)
    grid = size or limited(was, max_side)
    if not same_aspect(grid, was):
        raise UserError(
            f"{view.rgb} ({was[0]}x{was[1]}) differs in aspect from the {grid[0]}x{grid[1]} of the source view; "
            "use the uncropped RGB of the same shot"
        )
    if grid != was:
        rgb = resize_rgb(rgb, grid)
        notes += (f"camera RGB area-resized from {was[0]}x{was[1]} to {grid[0]}x{grid[1]}",)
    if orientation != 1:
        notes += (f"EXIF orientation {orientation} of the RGB not applied: pixels are used as stored",)
    light = np.rint(decode(np.arange(256) / 255.0) * 65535).astype(np.uint16)[rgb]
    return Frame(light, rgb, [1.0, 1.0, 1.0], np.eye(3).tolist(), was, was, turns, notes)
