"""A COLMAP model's cameras and points, text or binary.

Read here and not through a library: only poses, intrinsics and points are wanted, and every length in a binary file is
checked against what the file still holds, so that a damaged model ends with a sentence at once.
"""

import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fujinsplat.capture.cameras import Camera, intrinsics, rigid
from fujinsplat.capture.layout import colmap_files, is_empty
from fujinsplat.capture.lens import COUNTS, MODELS, Lens
from fujinsplat.capture.poses import by_stem, picture_stem
from fujinsplat.core.errors import UserError

OTHER_MODEL = "find the poses again with one of COLMAP's usual camera models, such as SIMPLE_RADIAL or OPENCV"


@dataclass(frozen=True)
class _Image:
    name: str
    camera: int
    quaternion: tuple[float, ...]  # w x y z, world to camera
    translation: tuple[float, ...]


class _Bytes:
    """A binary file read from front to back; reading past its end is a ValueError."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple:
        """Values of a little-endian `struct` layout."""
        start = self.skip(struct.calcsize("<" + layout))
        return struct.unpack_from("<" + layout, self.data, start)

    def skip(self, count: int) -> int:
        start = self.at
        if count > len(self.data) - start:
            raise ValueError("the file ends too early")
        self.at += count
        return start

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        text = self.data[self.at : end].decode()
        self.at = end + 1
        return text


@contextmanager
def _file(folder: Path, name: str) -> Iterator[Path]:
    """One file of the model; what goes wrong while it is parsed becomes one sentence about it."""
    found = colmap_files(folder, name)
    if not found:
        raise UserError(f"{folder} has no {name}.bin or {name}.txt beside its images; copy the whole COLMAP model")
    (path,) = found
    if is_empty(path):
        raise UserError(f"{path} is empty (zero bytes); run COLMAP again or copy the model again")
    try:
        yield path
    except (ValueError, IndexError, struct.error) as error:
        raise UserError(f"{path} is damaged ({error}); run COLMAP again or copy the model again") from None


def _lines(path: Path) -> Iterator[list[str]]:
    """The words of each line that is neither blank nor a comment."""
    for line in path.read_text().splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.split()


def _lenses(folder: Path) -> dict[int, Lens]:
    with _file(folder, "cameras") as path:
        if path.suffix == ".txt":
            return {
                int(words[0]): Lens(words[1], int(words[2]), int(words[3]), tuple(map(float, words[4:])))
                for words in _lines(path)
            }
        stream, lenses = _Bytes(path.read_bytes()), {}
        for _ in range(stream.take("Q")[0]):
            number, model, width, height = stream.take("IiQQ")
            if model not in MODELS:
                raise UserError(f"{path}: camera {number} has the unknown model {model}; {OTHER_MODEL}")
            name, count = MODELS[model]
            lenses[number] = Lens(name, width, height, stream.take(f"{count}d"))
        return lenses


def _images(folder: Path) -> list[_Image]:
    with _file(folder, "images") as path:
        images = []
        if path.suffix == ".txt":
            lines = iter(path.read_text().splitlines())
            for line in lines:
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                words = line.split(maxsplit=9)
                pose = tuple(map(float, words[1:8]))
                images.append(_Image(words[9].strip(), int(words[8]), pose[:4], pose[4:]))
                next(lines, None)  # the image's 2D points; may be blank
            return images
        stream = _Bytes(path.read_bytes())
        for _ in range(stream.take("Q")[0]):
            _, *pose, camera = stream.take("I7dI")
            images.append(_Image(stream.text(), camera, tuple(pose[:4]), tuple(pose[4:])))
            stream.skip(24 * stream.take("Q")[0])
        return images


def _rotation(quaternion: tuple[float, ...], where: str) -> np.ndarray:
    """[3, 3] from w x y z, of any length but zero."""
    q = np.asarray(quaternion, np.float64)
    length = np.linalg.norm(q)
    if not (np.isfinite(length) and length > 1e-6):
        raise UserError(f"{where}: the rotation is zero or non-finite; run COLMAP again")
    w, x, y, z = q / length
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def colmap_cameras(folder: Path) -> dict[str, Camera]:
    """Cameras of the registered images by folded stem."""
    return by_stem(named_cameras(folder), folder)


def named_cameras(folder: Path) -> list[tuple[str, Camera]]:
    """(an image's name, its camera) of the registered images, in pixels of COLMAP's picture size."""
    lenses = _lenses(folder)
    cameras: list[tuple[str, Camera]] = []
    for image in sorted(_images(folder), key=lambda image: image.name):
        where = f"{folder}, image {image.name}"
        lens = lenses.get(image.camera)
        if lens is None:
            raise UserError(
                f"{where}: the model has no camera {image.camera}; run COLMAP again or copy the model again"
            )
        if lens.model not in COUNTS:
            raise UserError(f"{where}: the camera model {lens.model} is unknown; {OTHER_MODEL}")
        if len(lens.params) < COUNTS[lens.model]:
            raise UserError(f"{where}: the {lens.model} camera has too few parameters; run COLMAP again")
        if not all(math.isfinite(p) for p in lens.params):
            raise UserError(f"{where}: the {lens.model} camera has non-finite parameters; run COLMAP again")
        stem = picture_stem(image.name)
        K = intrinsics(*lens.focals, *lens.center, (lens.width, lens.height), where)
        pose = np.column_stack([_rotation(image.quaternion, where), image.translation])
        camera = Camera(stem, lens.width, lens.height, K, rigid(pose, where), None if lens.straight else lens)
        cameras.append((image.name, camera))
    if not cameras:
        raise UserError(f"{folder} has no registered image; run COLMAP's mapper again")
    return cameras


def colmap_points(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(xyz float64 [N, 3], rgb uint8 [N, 3]) in the order of the points' numbers."""
    points: dict[int, tuple] = {}
    with _file(folder, "points3D") as path:
        if path.suffix == ".txt":
            for words in _lines(path):
                points[int(words[0])] = (*map(float, words[1:4]), *map(int, words[4:7]))
        else:
            stream = _Bytes(path.read_bytes())
            for _ in range(stream.take("Q")[0]):
                number, *values, _, track = stream.take("Q3d3BdQ")
                points[number] = tuple(values)
                stream.skip(8 * track)
        table = np.array([points[number] for number in sorted(points)], np.float64).reshape(-1, 6)
        return table[:, :3], np.clip(table[:, 3:], 0, 255).astype(np.uint8)
