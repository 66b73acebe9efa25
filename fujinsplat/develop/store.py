"""developed/{scene}/{variant}.safetensors: the colour action of each source view of a row.

Tensor: `actions` float32 `[V, P]` (zeros, the identity, for rows without a correction). Metadata holds one JSON text
under `developed`: the stems in order, K, M and the correction's name. The pictures that actions are applied to lie in
views/{scene}/{front}; the developed picture `T_p(Y^B)` itself is not stored: the delta-ISP moves `p` in training.
"""

import json
from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import check_form, check_stem
from fujinsplat.flow.layout import size


class Developed:
    """The actions of a developed scene on disk."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        with self._open() as file:
            try:
                described = json.loads((file.metadata() or {})["developed"])
                self.stems: list[str] = [check_stem(str(stem), self.path) for stem in described["stems"]]
                self.K, self.M = int(described["K"]), int(described["M"])
                self.correction = str(described["correction"])
                self.actions: np.ndarray = file.get_tensor("actions")
            except (KeyError, ValueError, TypeError) as error:
                raise UserError(
                    f"{self.path} is not a developed scene (missing or damaged {error}); run the develop stage again"
                ) from None
            except Exception as error:  # of a damaged file
                raise UserError(f"{self.path} is damaged ({error}); run the develop stage again") from None
        check_form(self.path, self.K, self.M)
        expected = (len(self.stems), size(self.K, self.M))
        if self.actions.shape != expected or self.actions.dtype != np.float32:
            raise UserError(
                f"{self.path} holds actions of shape {self.actions.shape}, not {expected}; run the develop stage again"
            )
        if not np.isfinite(self.actions).all():
            raise UserError(f"{self.path} holds actions that are not finite; run the develop stage again")

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
    def write(path: Path | str, actions: np.ndarray, stems: list[str], K: int, M: int, correction: str) -> None:
        """Store `actions [V, P]` of the views `stems`, whole or not at all."""
        actions = np.ascontiguousarray(actions, np.float32)
        if actions.shape != (len(stems), size(K, M)):
            raise ValueError(f"actions {actions.shape} do not fit {len(stems)} views with K={K}, M={M}")
        described = json.dumps({"stems": stems, "K": K, "M": M, "correction": correction})
        write_tensors(path, {"actions": actions}, {"developed": described})
