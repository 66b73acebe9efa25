"""The observations a controller learns from, gathered from the shards of one recipe and kept in memory."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from fujinsplat.controller.presentations import PRESENTATIONS
from fujinsplat.core.errors import UserError
from fujinsplat.core.reading import reading

FORMAT = "fujinsplat observations 1"
FORM = ("K", "M", "draws", "curves", "couplings")


@dataclass
class Observations:
    """summary `[n, 3, S, S]`; base and clean target `[n, N, 3]` encoded; label `[n, P]`; all float32. `key` changes
    with any of them."""

    summary: torch.Tensor
    base: torch.Tensor
    target: torch.Tensor
    label: torch.Tensor
    K: int
    M: int
    draws: str
    curves: bool
    couplings: bool
    key: str

    def __len__(self) -> int:
        return len(self.label)


def load_observations(shards: list[Path], input: str = "raw") -> Observations:
    """Read shards in the order of their names; `input` chooses the summaries: of RAW, or of the encoded base output."""
    from safetensors import SafetensorError, safe_open

    names = {"summary": f"{input}_summary", "base": "base", "target": "clean", "label": "label"}
    parts: dict[str, list[torch.Tensor]] = {name: [] for name in names}
    forms, digest = set(), hashlib.sha256(input.encode())
    for path in sorted(shards):
        try:
            with reading(path, "shard of observations", "build it again"), safe_open(str(path), "pt") as stream:
                notes = stream.metadata() or {}
                if notes.get("format") != FORMAT:
                    raise UserError(f"{path} is no shard of observations; build it with `fujinsplat synthesis observe`")
                forms.add(notes["form"])
                for name, stored in names.items():
                    parts[name].append(stream.get_tensor(stored))
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; build it with `fujinsplat synthesis observe`") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is not a readable shard of observations ({error}); build it again") from None
    if len(forms) != 1:
        raise UserError(f"the {len(shards)} shards given are not of one recipe; give all shards of one folder")
    with reading(shards[0], "shard of observations", "build it and its siblings again"):
        form = json.loads(forms.pop())
        tensors = {name: torch.cat(values) for name, values in parts.items()}
        if len({len(tensor) for tensor in tensors.values()}) != 1 or not set(FORM) <= set(form):
            raise ValueError("its tensors differ in length, or it does not say what they are")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not torch.isfinite(tensor).all():
            raise UserError(f"{shards[0]} and its siblings: {name} holds values that are not finite; synthesise again")
        digest.update(tensor.numpy().tobytes())
    return Observations(**tensors, **{name: form[name] for name in FORM}, key=digest.hexdigest())


def batch_at(step: int, batch: int, observations: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which observations and which presentations update `step` sees, each `[batch]`.

    An epoch is one random order of all presentations of all observations. The order depends on seed and epoch alone,
    so that a resumed run needs no state of a random generator.
    """
    total = observations * PRESENTATIONS
    positions = torch.arange(step * batch, (step + 1) * batch)
    picked = torch.empty_like(positions)
    for epoch in (positions // total).unique().tolist():
        order = torch.randperm(total, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
        inside = positions // total == epoch
        picked[inside] = order[positions[inside] % total]
    return picked // PRESENTATIONS, picked % PRESENTATIONS
