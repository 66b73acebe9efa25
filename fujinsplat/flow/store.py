"""Actions on disk: one safetensors file with the coefficients, K and M, and what else belongs to each view."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.reading import check_form, reader
from fujinsplat.flow.layout import COUPLINGS, SEGMENTS, size

FORMAT = "fujinsplat actions 1"


@dataclass
class Actions:
    """Actions of one or more views.

    action `[V, P]` float32; stems: one name per row (empty when the rows have none); extra: further tensors whose first
    axis is V, such as `loss` and `psnr`; note: anything JSON can hold.
    """

    action: torch.Tensor
    K: int = COUPLINGS
    M: int = SEGMENTS
    stems: list[str] = field(default_factory=list)
    extra: dict[str, torch.Tensor] = field(default_factory=dict)
    note: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.action.dim() == 1:
            self.action = self.action[None]
        if self.action.dim() != 2 or self.action.shape[1] != size(self.K, self.M):
            raise ValueError(
                f"K={self.K}, M={self.M} needs [V, {size(self.K, self.M)}], not {tuple(self.action.shape)}"
            )
        if self.stems and len(self.stems) != len(self.action):
            raise ValueError(f"{len(self.stems)} stems for {len(self.action)} actions")

    def of(self, stem: str) -> torch.Tensor:
        """The action `[P]` of one view."""
        if stem not in self.stems:
            raise UserError(f"no action of view {stem!r}; there are: {', '.join(self.stems) or 'unnamed rows only'}")
        return self.action[self.stems.index(stem)]


def save(path: Path | str, actions: Actions) -> None:
    """Write `actions`, whole or not at all."""
    tensors = {"action": actions.action.detach().cpu().float(), **actions.extra}
    metadata = {
        "format": FORMAT,
        "K": str(actions.K),
        "M": str(actions.M),
        "stems": json.dumps(actions.stems),
        "note": json.dumps(actions.note, sort_keys=True),
    }
    write_tensors(path, {name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)


@reader("action file", "build it again")
def load(path: Path | str) -> Actions:
    """Read what `save` wrote, or the actions of a developed scene."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise UserError(f"{path} does not exist; build it first or correct the path")
    try:
        with safe_open(str(path), framework="pt") as stream:
            metadata = stream.metadata() or {}
            tensors = {name: stream.get_tensor(name) for name in stream.keys() if not name.startswith("base/")}
        if "developed" in metadata and "actions" in tensors:
            described = json.loads(metadata["developed"])
            kind = {"kind": described["kind"]}
            check_form(path, int(described["K"]), int(described["M"]))
            _finite(tensors["actions"], path)
            return Actions(tensors["actions"], int(described["K"]), int(described["M"]), described["stems"], note=kind)
        if "action" not in tensors:
            raise UserError(
                f"{path} holds no tensor `action`; give a file written by `fujinsplat actions fit` or develop"
            )
        action = tensors.pop("action")
        K, M = int(metadata.get("K", COUPLINGS)), int(metadata.get("M", SEGMENTS))
        check_form(path, K, M)
        _finite(action, path)
        stems, note = json.loads(metadata.get("stems", "[]")), json.loads(metadata.get("note", "{}"))
        return Actions(action, K, M, stems, tensors, note)
    except (SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"{path} is not a readable action file ({error}); build it again") from None


def _finite(action: torch.Tensor, path: Path | str) -> None:
    if not torch.isfinite(action).all():
        raise UserError(f"{path} holds actions that are not finite; build it again")
