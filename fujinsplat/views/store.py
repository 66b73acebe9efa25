"""views/{scene}/{front}.safetensors: the pictures a row starts from.

Tensors: `picture/{stem}` uint8 `[H, W, 3]`, display-encoded, one per source view. Metadata holds one JSON text under
`views`: the stems in order, the front's name, and a record of what made them (a restorer's weights).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import check_stem, reading

AGAIN = "run the views stage again"


@dataclass(frozen=True)
class Pictures:
    """What a front gives: uint8 `[H, W, 3]` by stem, encoded, in view order."""

    encoded: Mapping[str, np.ndarray]
    record: Mapping[str, Any] = field(default_factory=dict)  # what made them, where that is more than the settings


def camera_pictures(folder: Path) -> Pictures:
    """The camera RGB of a folder of captured views."""
    from fujinsplat.capture import SourceViews

    views = SourceViews(folder)
    return Pictures({stem: views.rgb(stem) for stem in views.stems})


class Views:
    """The pictures of one scene and front on disk, read one by one when asked for."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with self._open() as file:
            try:
                described = json.loads((file.metadata() or {})["views"])
                self.stems: list[str] = [check_stem(str(stem), self.path) for stem in described["stems"]]
                self.front = str(described["front"])
            except (KeyError, ValueError, TypeError) as error:
                raise UserError(
                    f"{self.path} holds no views (missing or damaged {error}); run the views stage again"
                ) from None
            names = set(file.keys())
        missing = [stem for stem in self.stems if f"picture/{stem}" not in names]
        if missing:
            raise UserError(f"{self.path} holds no picture of view {missing[0]!r}; run the views stage again")

    def encoded(self, stem: str) -> np.ndarray:
        """The picture of one view: uint8 `[H, W, 3]`, encoded."""
        with self._open() as file, reading(self.path, "file of views", AGAIN):
            picture = file.get_tensor(f"picture/{stem}")
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3 or not picture.size:
            raise UserError(f"{self.path}: the picture of {stem} is {picture.dtype} {list(picture.shape)}; {AGAIN}")
        return picture

    def _open(self):
        from safetensors import SafetensorError, safe_open

        try:
            return safe_open(self.path, framework="numpy")
        except FileNotFoundError:
            raise UserError(f"{self.path} does not exist; run the views stage first") from None
        except (SafetensorError, OSError) as error:
            raise UserError(
                f"{self.path} is not a readable safetensors file ({error}); run the views stage again"
            ) from None

    @staticmethod
    def write(path: Path | str, pictures: Pictures, front: str) -> None:
        """Store the pictures, whole or not at all."""
        for stem, picture in pictures.encoded.items():
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3:
                raise ValueError(f"the picture of {stem} is {picture.dtype} {picture.shape}, not uint8 [H, W, 3]")
        tensors = {f"picture/{stem}": picture for stem, picture in pictures.encoded.items()}
        described = json.dumps({"stems": list(pictures.encoded), "front": front, "record": dict(pictures.record)})
        write_tensors(path, tensors, {"views": described})
