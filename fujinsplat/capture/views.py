"""Reading what the capture stage wrote, one view at a time."""

from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.reading import check_size, check_stem, load_array, reading

AGAIN = "build it again with the capture stage"


class HeldViews:
    """A folder of camera RGB pictures (`held/`): `stems` in order, `rgb(stem)`."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        try:
            listed = read_json(self.folder / "views.json")
            self._views = {check_stem(str(view["stem"]), self.folder / "views.json"): view for view in listed}
        except (TypeError, KeyError):
            raise UserError(f"{self.folder / 'views.json'} is not the capture stage's; build it again") from None
        self.stems = list(self._views)

    def __len__(self) -> int:
        return len(self.stems)

    def _file(self, stem: str, suffix: str) -> Path:
        if stem not in self._views:
            raise UserError(f"{self.folder} has no view {stem}; it holds {', '.join(self.stems[:6])}…")
        path = self.folder / f"{stem}{suffix}"
        if not path.is_file():
            raise UserError(f"{path} does not exist; build {self.folder} again")
        return path

    def rgb(self, stem: str) -> np.ndarray:
        """Camera RGB, encoded, uint8 [H, W, 3]."""
        from PIL import Image

        path = self._file(stem, ".png")
        with reading(path, "picture", AGAIN), Image.open(path) as image:
            check_size(path, *image.size, AGAIN)
            pixels = np.array(image)
        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
            raise UserError(f"{path} is {pixels.dtype} {list(pixels.shape)} instead of 8-bit RGB; {AGAIN}")
        return pixels

    def size(self, stem: str) -> tuple[int, int]:
        """(width, height) without reading the pixels."""
        from PIL import Image

        path = self._file(stem, ".png")
        with reading(path, "picture", AGAIN), Image.open(path) as image:
            return image.size


class SourceViews(HeldViews):
    """A folder of RAW views with camera RGB (`source/` or `clean/`)."""

    def raw(self, stem: str) -> np.ndarray:
        """Camera-linear RAW without white balance, float32 [H, W, 3] in [0, 1]."""
        path = self._file(stem, ".npy")
        stored = load_array(path, "array of RAW values", AGAIN)
        if stored.ndim != 3 or stored.shape[2] != 3 or stored.dtype != np.uint16 or not stored.size:
            raise UserError(f"{path} is {stored.dtype} {list(stored.shape)} instead of uint16 [H, W, 3]; {AGAIN}")
        return stored.astype(np.float32) / np.float32(65535)

    def white_balance(self, stem: str) -> np.ndarray:
        """The file's gains for camera-linear RGB, float64 [3], G = 1."""
        with reading(self.folder / "views.json", "list of views", AGAIN):
            gains = np.asarray(self._views[stem]["white_balance"], np.float64)
        if gains.shape != (3,) or not np.isfinite(gains).all() or (gains <= 0).any():
            raise UserError(f"{self.folder / 'views.json'}: the white balance of {stem} is no three gains; {AGAIN}")
        return gains

    def camera_matrix(self, stem: str) -> np.ndarray | None:
        """White-balanced camera RGB to linear sRGB (column convention: matrix @ rgb), float64 [3, 3] with rows that
        sum to 1, or None when the file has none."""
        with reading(self.folder / "views.json", "list of views", AGAIN):
            given = self._views[stem]["camera_matrix"]
            matrix = None if given is None else np.asarray(given, np.float64).reshape(3, 3)
        if matrix is not None and not np.isfinite(matrix).all():
            raise UserError(f"{self.folder / 'views.json'}: the matrix of {stem} is not finite; {AGAIN}")
        return matrix
