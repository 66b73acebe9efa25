"""developed/{scene}/{variant}.safetensors: what the develop stage hands to the Gaussians.

Tensors: `actions` float32 `[V, P]`, one colour action per source view (zeros, the identity, for variants without
actions), and `base/{stem}` uint8 `[H, W, 3]`, the encoded picture `Y^B` that the action is applied to. Metadata
holds one JSON text under `developed`: the stems in order, K, M and the kind of variant. The developed picture
`T_p(Y^B)` itself is not stored: the delta-ISP moves `p` during reconstruction.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fujinsplat.errors import UserError
from fujinsplat.files import atomic_file


def action_size(K: int, M: int) -> int:
    """Coefficients of an action with K couplings and M knots per curve: (K+1) x 3 x M curve, K x 3 x 9 coupling."""
    return (K + 1) * 3 * M + K * 27


class Developed:
    """A developed scene on disk; pictures are read one by one, when asked for."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with self._open() as file:
            try:
                described = json.loads((file.metadata() or {})["developed"])
                self.stems: list[str] = list(described["stems"])
                self.K, self.M, self.kind = int(described["K"]), int(described["M"]), str(described["kind"])
                self.actions: np.ndarray = file.get_tensor("actions")
            except (KeyError, ValueError, TypeError) as error:
                raise UserError(
                    f"{self.path} is not a developed scene (missing or damaged {error}); run the develop stage again"
                ) from None
            names = set(file.keys())
        missing = [stem for stem in self.stems if f"base/{stem}" not in names]
        if missing:
            raise UserError(f"{self.path} holds no picture of view {missing[0]!r}; run the develop stage again")
        expected = (len(self.stems), action_size(self.K, self.M))
        if self.actions.shape != expected:
            raise UserError(
                f"{self.path} holds actions of shape {self.actions.shape}, not {expected}; run the develop stage again"
            )

    def base(self, stem: str) -> np.ndarray:
        """`Y^B` of one view: uint8 `[H, W, 3]`, encoded."""
        with self._open() as file:
            return file.get_tensor(f"base/{stem}")

    def action(self, stem: str) -> np.ndarray:
        """The action of one view: float32 `[P]`."""
        return self.actions[self.stems.index(stem)]

    def _open(self):
        from safetensors import SafetensorError, safe_open

        try:
            return safe_open(self.path, framework="numpy")
        except FileNotFoundError:
            raise UserError(f"{self.path} does not exist; run the develop stage first") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{self.path} is not a readable safetensors file ({error}); develop it again") from None

    @staticmethod
    def write(
        path: Path | str, actions: np.ndarray, base_encoded: Mapping[str, np.ndarray], K: int, M: int, kind: str
    ) -> None:
        """Store `actions [V, P]` and `base_encoded` (stem to uint8 `[H, W, 3]`, in view order), whole or not at all."""
        from safetensors.numpy import save_file

        stems = list(base_encoded)
        actions = np.ascontiguousarray(actions, np.float32)
        if actions.shape != (len(stems), action_size(K, M)):
            raise ValueError(f"actions {actions.shape} do not fit {len(stems)} views with K={K}, M={M}")
        for stem, picture in base_encoded.items():
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[-1] != 3:
                raise ValueError(f"base picture of {stem} is {picture.dtype} {picture.shape}, not uint8 [H, W, 3]")
        tensors = {f"base/{stem}": np.ascontiguousarray(picture) for stem, picture in base_encoded.items()}
        described = json.dumps({"stems": stems, "K": K, "M": M, "kind": kind})
        with atomic_file(path) as temporary:
            save_file({"actions": actions, **tensors}, temporary, metadata={"developed": described})
