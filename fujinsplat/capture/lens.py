"""Lenses that bend straight lines: from the photograph's pixels to a pinhole's, one map for RAW and RGB alike.

The camera models are COLMAP's, by name and parameter order. Which pinhole takes a lens's place is COLMAP's choice too
(the widest without blank corners); the map is then `distorted pixel = lens(pinhole ray)`, and linear light is resampled
through it, so that the linear RAW and the decoded camera RGB of a view stay pixel for pixel on one another.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fujinsplat.core.color import decode, encode
from fujinsplat.core.errors import UserError

# COLMAP's numbers, names and parameter counts
MODELS = {
    0: ("SIMPLE_PINHOLE", 3),
    1: ("PINHOLE", 4),
    2: ("SIMPLE_RADIAL", 4),
    3: ("RADIAL", 5),
    4: ("OPENCV", 8),
    5: ("OPENCV_FISHEYE", 8),
    6: ("FULL_OPENCV", 12),
    7: ("FOV", 5),
    8: ("SIMPLE_RADIAL_FISHEYE", 4),
    9: ("RADIAL_FISHEYE", 5),
    10: ("THIN_PRISM_FISHEYE", 12),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
}
COUNTS = dict(MODELS.values())
# models whose first parameter is the one focal length; the others begin with fx, fy
ONE_FOCAL = frozenset({"SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE"})
# models that are a pinhole when the parameters after the principal point are zero
PERSPECTIVE = frozenset({"SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV"})
# the map is computed at about so many places along a row and interpolated between them: lenses are smooth
MAP_COLUMNS = 400


@dataclass(frozen=True)
class Lens:
    """A COLMAP camera: `params` in pixels of `width` x `height`, corner of the first pixel at 0."""

    model: str
    width: int
    height: int
    params: tuple[float, ...]

    @property
    def focals(self) -> tuple[float, float]:
        return (self.params[0], self.params[0]) if self.model in ONE_FOCAL else (self.params[0], self.params[1])

    @property
    def center(self) -> tuple[float, float]:
        first = 1 if self.model in ONE_FOCAL else 2
        return self.params[first], self.params[first + 1]

    @property
    def straight(self) -> bool:
        """Whether it is a pinhole already."""
        first = 3 if self.model in ONE_FOCAL else 4
        return self.model in PERSPECTIVE and not any(self.params[first:])

    def scaled(self, width: int, height: int) -> "Lens":
        """The same lens on pictures of another size."""
        if (width, height) == (self.width, self.height):
            return self
        camera = colmap_camera(self)
        camera.rescale(width, height)
        return Lens(self.model, width, height, tuple(float(p) for p in camera.params))

    def pinhole(self) -> tuple[int, int, np.ndarray]:
        """(width, height, K [3, 3]) of the pinhole that takes its place."""
        import pycolmap

        if self.straight:
            (fx, fy), (cx, cy) = self.focals, self.center
            return self.width, self.height, np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        camera = pycolmap.undistort_camera(pycolmap.UndistortCameraOptions(), colmap_camera(self))
        if min(camera.width, camera.height) < 2:
            raise UserError(
                f"the {self.model} lens ({', '.join(f'{p:g}' for p in self.params)}) leaves nothing of a picture of "
                f"{self.width}x{self.height}; find the poses again with another camera model"
            )
        return camera.width, camera.height, np.array(camera.calibration_matrix())

    def to_json(self) -> dict:
        return {"model": self.model, "width": self.width, "height": self.height, "params": list(self.params)}

    @staticmethod
    def from_json(value: dict) -> "Lens":
        return Lens(
            str(value["model"]), int(value["width"]), int(value["height"]), tuple(float(p) for p in value["params"])
        )


def colmap_camera(lens: Lens, number: int | None = None):
    """The pycolmap camera of a lens."""
    import pycolmap

    camera = pycolmap.Camera(model=lens.model, width=lens.width, height=lens.height, params=list(lens.params))
    if number is not None:
        camera.camera_id = number
    return camera


def straighten_raw(lens: Lens, raw_linear: np.ndarray) -> np.ndarray:
    """uint16 [H, W, 3] camera-linear through the lens's map: uint16 on the pinhole's grid."""
    return np.rint(_through(lens, raw_linear, 65535.0)).astype(np.uint16)


def straighten_rgb(lens: Lens, rgb_encoded: np.ndarray) -> np.ndarray:
    """uint8 [H, W, 3] sRGB through the same map, in linear light: uint8 on the pinhole's grid."""
    linear = decode(np.arange(256) / 255.0).astype(np.float32)[rgb_encoded]
    return np.rint(encode(_through(lens, linear, 1.0).astype(np.float64)) * 255).astype(np.uint8)


def _through(lens: Lens, image_linear: np.ndarray, top: float) -> np.ndarray:
    from fujinsplat.capture.resample import cubic

    width, height, places, step = _map(lens)
    return cubic(np.ascontiguousarray(image_linear), places, step, width, height, np.float32(top))


@lru_cache(maxsize=8)
def _map(lens: Lens) -> tuple[int, int, np.ndarray, int]:
    """(width, height) of the pinhole, the photograph's pixel under every `step`-th pixel centre float32 [h, w, 2], and
    `step`; the last row and column lie at or beyond the picture's end."""
    import pycolmap

    width, height, K = lens.pinhole()
    step = max(1, round(width / MAP_COLUMNS))
    columns, rows = np.arange(-(-(width - 1) // step) + 1), np.arange(-(-(height - 1) // step) + 1)
    x, y = np.meshgrid(columns * step + 0.5, rows * step + 0.5)
    params = [K[0, 0], K[1, 1], K[0, 2], K[1, 2]]
    pinhole = pycolmap.Camera(model="PINHOLE", width=width, height=height, params=params)
    rays = pinhole.cam_from_img(np.stack([x.ravel(), y.ravel()], -1))
    assert rays is not None  # None is for one point that has no ray
    pixels = colmap_camera(lens).img_from_cam(np.column_stack([rays, np.ones(len(rays))]))
    assert pixels is not None
    places = np.nan_to_num(pixels, nan=-1.0).reshape(len(rows), len(columns), 2).astype(np.float32)
    return width, height, places, step
