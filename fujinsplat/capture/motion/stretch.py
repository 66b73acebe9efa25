"""Pictures for structure from motion: smoke stretched away, so that features are found behind it.

Smoke lifts the dark end and flattens everything; stretching each channel between its 1st and 99th percentile undoes the
average of that. RAW is better than the camera's RGB: it has finer steps where smoke leaves little contrast.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fujinsplat.capture.frame import read_frame
from fujinsplat.capture.layout import View
from fujinsplat.capture.pairs import Thumb, thumb, wrong_pairs
from fujinsplat.capture.parallel import each_view
from fujinsplat.core.color import encode
from fujinsplat.core.settings import CaptureSettings

LOW, HIGH = 1.0, 99.0  # percentiles that become black and white
PATCH = 15  # side of the dark channel's window at a width of 800 pixels
DIAGONAL_35MM = float(np.hypot(36, 24))
KEEP = 0.1  # the least transmission that clearing divides by


def stretch(linear: np.ndarray) -> np.ndarray:
    """Linear light [H, W, 3] to 8-bit encoded, each channel between its percentiles."""
    low, high = np.percentile(linear.reshape(-1, 3), [LOW, HIGH], axis=0)
    spread = np.maximum(high - low, 1e-6)
    return np.rint(encode(np.clip((linear - low) / spread, 0, 1)) * 255).astype(np.uint8)


def clear(linear: np.ndarray) -> np.ndarray:
    """The same after a rough removal of the smoke by the dark channel: what is bright in all channels within a window
    is taken for smoke. Crude for looking at, but it evens out what a stretch of the whole picture cannot: smoke that
    thickens with distance."""
    from scipy.ndimage import gaussian_filter, minimum_filter

    side = max(3, round(PATCH * max(linear.shape[:2]) / 800))
    dark = minimum_filter(linear.min(-1), side)
    airlight = linear.reshape(-1, 3)[np.argsort(dark, axis=None)[-max(1, dark.size // 1000) :]].mean(0)
    share = gaussian_filter(minimum_filter((linear / np.maximum(airlight, 1e-6)).min(-1), side), side)
    transmission = np.clip(1 - 0.95 * share, KEEP, 1)[..., None]
    return stretch((linear - airlight) / transmission + airlight)


def focal_35mm(view: View) -> float:
    """The focal length that the camera RGB states, for a frame of 36 x 24 mm; 0 when it states none."""
    from PIL import Image

    if view.rgb is None:
        return 0.0
    try:
        with Image.open(view.rgb) as image:
            value = float(image.getexif().get_ifd(0x8769).get(41989, 0) or 0)
    except (OSError, SyntaxError, ValueError, TypeError):
        return 0.0
    return value if 1 < value < 2000 else 0.0


def write_pictures(
    views: Sequence[View],
    folder: Path,
    settings: CaptureSettings,
    max_side: int,
    threads: int,
    cleared: bool = False,
    shapes: Mapping[str, tuple[int, int]] | None = None,
) -> dict[str, dict]:
    """One PNG per view, `{width}x{height}/{stem}.png` below `folder` so that each size has a camera of its own; what is
    known of each by stem: its picture, that picture's size, the quarter turns that bring it upright, and its focal
    length in pixels where the photograph names one (otherwise 0). `shapes`: (width, height) by stem of the pictures
    that given poses speak of, which decide whether a portrait stands or lies. Views that are damaged, and pairs that
    are not one picture, are refused here, before anything is made of them."""
    from PIL import Image

    def write(number: int) -> tuple[dict, Thumb | None]:
        view = views[number]
        shape = (shapes or {}).get(view.stem)
        frame = read_frame(view, settings, max_side=max_side, shape=shape, for_raw=True)
        linear = frame.raw_linear.astype(np.float32) / 65535
        height, width = linear.shape[:2]
        name = f"{width}x{height}/{view.stem}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((clear if cleared else stretch)(linear)).save(folder / name, compress_level=1)
        focal = focal_35mm(view) * np.hypot(width, height) / DIAGONAL_35MM
        about = {"name": name, "size": [width, height], "turns": frame.turns, "focal": float(focal)}
        return about, thumb(view, frame.raw_linear, frame.rgb_encoded)

    compared = (lambda made: wrong_pairs([small for _, small in made])) if settings.check_pairs else None
    made = each_view(write, len(views), threads, "stretching", compared)
    return {view.stem: about for view, (about, _) in zip(views, made, strict=True)}
