"""Reading what the capture stage wrote, one view at a time."""

from pathlib import Path

import numpy as np

from fujinsplat.errors import UserError
from fujinsplat.files import read_json


class HeldViews:
    """A folder of camera RGB pictures (`held/`): `stems` in order, `rgb(stem)`."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        try:
            self._views = {str(view["stem"]): view for view in read_json(self.folder / "views.json")}
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

        with Image.open(self._file(stem, ".png")) as image:
            return np.array(image)

    def size(self, stem: str) -> tuple[int, int]:
        """(width, height) without reading the pixels."""
        from PIL import Image

        with Image.open(self._file(stem, ".png")) as image:
            return image.size


class SourceViews(HeldViews):
    """A folder of RAW views with camera RGB (`source/` or `clean/`)."""

    def raw(self, stem: str) -> np.ndarray:
        """Camera-linear RAW without white balance, float32 [H, W, 3] in [0, 1]."""
        return np.load(self._file(stem, ".npy")).astype(np.float32) / np.float32(65535)

    def white_balance(self, stem: str) -> np.ndarray:
        """The file's gains for camera-linear RGB, float64 [3], G = 1."""
        return np.asarray(self._views[stem]["white_balance"], np.float64)

    def camera_matrix(self, stem: str) -> np.ndarray | None:
        """White-balanced camera RGB to linear sRGB (column convention: matrix @ rgb), float64 [3, 3] with rows that
        sum to 1, or None when the file has none."""
        matrix = self._views[stem]["camera_matrix"]
        return None if matrix is None else np.asarray(matrix, np.float64)
