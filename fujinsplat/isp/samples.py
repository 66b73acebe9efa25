"""What calibration reads of a scene: pixels and patches, drawn once, view by view, so that memory stays small."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import progress
from fujinsplat.core.settings import IspSettings


class Views(Protocol):
    """The part of `fujinsplat.capture.SourceViews` that calibration uses."""

    stems: list[str]

    def raw(self, stem: str) -> np.ndarray: ...
    def rgb(self, stem: str) -> np.ndarray: ...
    def white_balance(self, stem: str) -> np.ndarray: ...
    def camera_matrix(self, stem: str) -> np.ndarray | None: ...


@dataclass
class ViewSamples:
    """One view's part: RAW linear float32 and camera RGB uint8, colours last."""

    stem: str
    pixels_raw: np.ndarray  # [updates, pixels, 3]
    pixels_rgb: np.ndarray  # [updates, pixels, 3]
    patches_raw: np.ndarray  # [patches, side * side, 3]
    patches_rgb: np.ndarray  # [patches, side * side, 3]
    blocks_raw: np.ndarray  # [blocks, 3] means of small squares: noise and sharpening averaged out
    blocks_rgb: np.ndarray  # [blocks, 3] encoded, 0 to 255
    quiet_raw: np.ndarray  # [initial pixels, 3] 3x3 means at quiet places, for the initial state
    quiet_rgb: np.ndarray  # [initial pixels, 3] encoded, 0 to 255


@dataclass
class Samples:
    views: list[ViewSamples]
    order: np.ndarray  # [updates] the view each update reads
    white_balance: np.ndarray  # [3] gains, G = 1
    camera_matrix: np.ndarray | None  # [3, 3] column convention


def view_order(count: int, updates: int, rng: np.random.Generator) -> np.ndarray:
    """Which view each update reads: shuffled passes, so that every view is read equally often (within one)."""
    passes = -(-updates // count)
    return np.concatenate([rng.permutation(count) for _ in range(passes)])[:updates] if updates else np.empty(0, int)


def checked_pair(views: Views, stem: str) -> tuple[np.ndarray, np.ndarray]:
    """RAW and RGB of one view, on one grid and finite, or a sentence."""
    raw, rgb = views.raw(stem), views.rgb(stem)
    where = f"view {stem} of {getattr(views, 'folder', 'the scene')}"
    if raw.shape != rgb.shape:
        raise UserError(
            f"{where}: RAW is {raw.shape[1]}x{raw.shape[0]} and camera RGB {rgb.shape[1]}x{rgb.shape[0]}; "
            "decode the scene again with `fujinsplat capture`, which brings both to one grid"
        )
    if not np.isfinite(raw).all():
        raise UserError(f"{where}: the RAW values are not all finite; decode the scene again with `fujinsplat capture`")
    return raw, rgb


def _log_balance(views: Views, stem: str) -> np.ndarray:
    balance = np.asarray(views.white_balance(stem), np.float64)
    if balance.shape != (3,) or not np.isfinite(balance).all() or (balance <= 0).any():
        raise UserError(
            f"view {stem} of {getattr(views, 'folder', 'the scene')} has the white balance {balance.tolist()}; "
            "three positive gains are needed, decode the scene again"
        )
    return np.log(balance)


def _patch_places(height: int, width: int, side: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Pixel indices `[count, side * side]` of `count` squares at random places, drawn as fractions of the free room."""
    fractions = rng.random((count, 2))
    top = np.rint(fractions[:, 0] * (height - side)).astype(int)
    left = np.rint(fractions[:, 1] * (width - side)).astype(int)
    inside = (np.arange(side)[:, None] * width + np.arange(side)).reshape(-1)
    return (top * width + left)[:, None] + inside


def _block_means(picture: np.ndarray, side: int) -> np.ndarray:
    """`[blocks, 3]` means of side x side squares, some thousand of them, evenly spread."""
    rows, columns = picture.shape[0] // side, picture.shape[1] // side
    every = max(1, int(np.sqrt(rows * columns / 4000)))
    cut = picture[: rows * side, : columns * side].reshape(rows, side, columns, side, 3)[::every, :, ::every]
    return cut.mean(axis=(1, 3), dtype=np.float32).reshape(-1, 3)


def _quiet(raw: np.ndarray, rgb: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """3x3 means `[<= count, 3]` of RAW and RGB at the quieter half of random places.

    Camera and decoder demosaic differently and the camera sharpens: at edges a RAW pixel and its RGB say little about
    the rendering, and regressions that meet errors in their input come out flattened.
    """
    height, width = raw.shape[:2]
    if min(height, width) < 3:
        return raw.reshape(-1, 3), rgb.reshape(-1, 3).astype(np.float32)
    places = rng.choice((height - 2) * (width - 2), min(2 * count, (height - 2) * (width - 2)), replace=False)
    corner = places // (width - 2) * width + places % (width - 2)
    around = corner[:, None] + (np.arange(3)[:, None] * width + np.arange(3)).reshape(-1)
    near_raw, near_rgb = raw.reshape(-1, 3)[around], rgb.reshape(-1, 3)[around].astype(np.float32)
    mean_raw, mean_rgb = near_raw.mean(axis=1), near_rgb.mean(axis=1)
    restless = near_rgb.std(axis=1).max(axis=1) / 255 + near_raw.std(axis=1).max(axis=1) / (mean_raw.max(axis=1) + 0.05)
    kept = np.argsort(restless, kind="stable")[: -(-len(places) // 2)]
    return mean_raw[kept], mean_rgb[kept]


def take(views: Views, settings: IspSettings) -> Samples:
    """Read every view once and keep what the updates and the initial state need of it."""
    if not views.stems:
        raise UserError(f"{getattr(views, 'folder', 'the scene')} has no views; calibration needs at least one")
    seed = settings.seed
    order = view_order(len(views.stems), settings.warmup_steps + settings.joint_steps, np.random.default_rng(seed))
    kept = []
    balances, matrices = [], []
    initial = -(-settings.initial_pixels // len(views.stems))
    for index, stem in enumerate(progress(views.stems, "reading views", unit="view")):
        raw, rgb = checked_pair(views, stem)
        height, width = raw.shape[:2]
        flat_raw, flat_rgb = raw.reshape(-1, 3), rgb.reshape(-1, 3)
        rng = np.random.default_rng([seed, index])
        side = min(settings.patch_size, height, width)
        # the same generator for every view: the patches' places are fixed over the scene
        patches = _patch_places(height, width, side, settings.patches, np.random.default_rng([seed, 1 << 20]))
        chosen = rng.integers(0, height * width, (int((order == index).sum()), settings.pixels))
        block = max(1, min(8, height // 8, width // 8))
        kept.append(
            ViewSamples(
                stem,
                flat_raw[chosen],
                flat_rgb[chosen],
                flat_raw[patches],
                flat_rgb[patches],
                _block_means(raw, block),
                _block_means(rgb, block),
                *_quiet(raw, rgb, initial, rng),
            )
        )
        balances.append(_log_balance(views, stem))
        matrices.append(views.camera_matrix(stem))
    # a matrix that loses a colour is no colour matrix: as good as none
    known = [matrix for matrix in matrices if matrix is not None and np.linalg.det(matrix) > 1e-3]
    return Samples(kept, order, np.exp(np.mean(balances, axis=0)), np.mean(known, axis=0) if known else None)
