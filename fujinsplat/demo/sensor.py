"""The demo's camera up to the RAW file: colour filters, exposure, noise, mosaic, DNG.

Camera RGB is what the sensor's filters count, without white balance: a neutral surface reads (1024/2428, 1, 1024/1700)
of its green, as RealX3D's camera does.
"""

from pathlib import Path

import numpy as np

BLACK, WHITE = 512, 16383
WHITE_BALANCE = np.array([2428.0, 1024.0, 1700.0]) / 1024.0
# white-balanced camera RGB to linear sRGB; rows sum to one, so neutral stays neutral
CAMERA_TO_SRGB = np.array([[1.62, -0.50, -0.12], [-0.19, 1.46, -0.27], [0.03, -0.44, 1.41]])
SRGB_TO_CAMERA = np.linalg.inv(CAMERA_TO_SRGB) / WHITE_BALANCE[:, None]
XYZ_TO_SRGB = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)
FULL_WELL = 30000.0  # electrons at the white level
PHOTOSITES = 2  # per picture pixel and side: RAW files are larger than the camera's pictures, as in RealX3D
READ_NOISE = 4.0  # electrons
MAKE, MODEL = "FujinSplat", "Demo World"


def camera_rgb(radiance: np.ndarray) -> np.ndarray:
    """Linear sRGB radiance `[..., 3]` as the filters see it; colours outside their gamut stop at zero."""
    return np.maximum(radiance @ SRGB_TO_CAMERA.T.astype(radiance.dtype), 0)


def expose(camera_linear: np.ndarray, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
    """Camera RGB `[H, W, 3]` (1 is the white level) to the counts of an RGGB mosaic, uint16 `[H, W]`.

    `noise` times the noise of shot and reading together: a sensor whose wells hold fewer electrons.
    """
    well, read = FULL_WELL / noise**2, READ_NOISE / noise
    light = np.empty(camera_linear.shape[:2])
    for row, column, channel in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
        light[row::2, column::2] = camera_linear[row::2, column::2, channel]
    electrons = rng.poisson(np.clip(light, 0, 4) * well) + rng.normal(0, read, light.shape)
    counts = BLACK + electrons * ((WHITE - BLACK) / well)
    return np.clip(np.rint(counts), 0, WHITE).astype(np.uint16)


def _rationals(values: np.ndarray, denominator: int) -> list[int]:
    return [int(n) for v in np.asarray(values).ravel() for n in (round(v * denominator), denominator)]


def write_dng(path: Path, mosaic: np.ndarray) -> None:
    """Counts `[H, W]` as an uncompressed DNG that LibRaw reads back bit for bit, with matrix and white balance."""
    import tifffile

    xyz_to_camera = SRGB_TO_CAMERA @ XYZ_TO_SRGB
    tags = [
        (33421, "H", 2, (2, 2), True),  # CFARepeatPatternDim
        (33422, "B", 4, bytes((0, 1, 1, 2)), True),  # CFAPattern: RGGB
        (50706, "B", 4, bytes((1, 4, 0, 0)), True),  # DNGVersion
        (50707, "B", 4, bytes((1, 1, 0, 0)), True),  # DNGBackwardVersion
        (50708, "s", 0, f"{MAKE} {MODEL}", True),  # UniqueCameraModel
        (50713, "H", 2, (1, 1), True),  # BlackLevelRepeatDim
        (50714, "H", 1, BLACK, True),  # BlackLevel
        (50717, "H", 1, WHITE, True),  # WhiteLevel
        (50721, "2i", 9, _rationals(xyz_to_camera, 10000), True),  # ColorMatrix1
        (50728, "2I", 3, _rationals(1024 / (1024 * WHITE_BALANCE), 1_000_000), True),  # AsShotNeutral
        (50778, "H", 1, 21, True),  # CalibrationIlluminant1: D65
        (271, "s", 0, MAKE, True),
        (272, "s", 0, MODEL, True),
    ]
    tifffile.imwrite(path, mosaic, photometric=32803, compression=None, metadata=None, software=False, extratags=tags)
