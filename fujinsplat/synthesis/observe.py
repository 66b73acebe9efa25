"""Observations: synthetic RAW whose label is exact, because the label itself made it [supp. F].

    clean RAW --gain, B--> J --clamp--> J' --T_p^-1--> H --B^-1--> synthetic RAW          uniform veil, published
    clean RAW --gain, room smoke--> X --B--> H, J' = T_p(H)                               smoke.py

Stored arrays are float32. Three cycles are replayed from what is stored before it is written: T_p(H) = J', B(X) = H and
T_p(B(X)) = J', each to 100 dB.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.progress import progress
from fujinsplat.flow import apply, invert
from fujinsplat.synthesis.captures import Captures, interpolate
from fujinsplat.synthesis.draws import Draws

FORMAT = "fujinsplat observations 1"
CYCLE_DB = 100.0
FORM = ("K", "M", "draws", "curves", "couplings")


@dataclass
class Observation:
    """raw_summary `[3, S, S]` of the synthetic RAW and rgb_summary of H; raw, base (H), target (J') and clean `[N, 3]`.

    The target is what the label makes of H; with a uniform veil it is the clean picture itself, clamped.
    """

    raw_summary: np.ndarray
    rgb_summary: np.ndarray
    raw: np.ndarray
    base: np.ndarray
    target: np.ndarray
    clean: np.ndarray
    outside: dict[str, float]
    cycles: dict[str, float]


def hazed(draws: Draws, index: int, raw: np.ndarray, depth: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, ...]:
    """Draw `index` on colours `raw [n, 3]` of its capture, at depth `[n]` and place `[n, 2]`.

    Returns (clean J, target J', H, synthetic RAW), float64 `[n, 3]`, the first three encoded.
    """
    base, balance, recipe = draws.base(index), draws.white_balance[index], draws.recipe
    label = torch.from_numpy(draws.label[index]).double()
    raw = draws.exposed(index, raw)
    clean = base.develop(raw, balance)
    smoke = draws.smoke(index)
    if smoke:
        smoky_linear = base.linear(smoke.over(raw, depth, place), balance)
        hazy = torch.from_numpy(encode(np.clip(smoky_linear, 0, 1)))
        target = apply(hazy, label, recipe.K, recipe.M)
    else:
        target = torch.from_numpy(np.clip(clean, draws.floor[index], draws.ceiling[index]))
        hazy = invert(target, label, recipe.K, recipe.M)
        if recipe.draws == "actions":
            # an expert's range need not be [0, 1]: what would lie outside the hazy picture is moved to its edge
            hazy = hazy.clamp(0, 1)
            target = apply(hazy, label, recipe.K, recipe.M)
    return clean, target.numpy(), hazy.numpy(), base.invert(hazy.numpy(), balance)


def observe(draws: Draws, index: int, captures: Captures, row: int) -> Observation:
    """The observation of draw `index`, from row `row` of the kept captures."""
    made = hazed(draws, index, captures.colours(row), captures.depth[row], captures.place[row])
    (clean, _), (target, _), (hazy, hazy_taps), (raw, raw_taps) = (captures.split(values) for values in made)
    blend = captures.blend[row]
    stored = {"raw": raw, "base": hazy, "target": target}
    stored = {name: value.astype(np.float32) for name, value in stored.items()}
    outside = {
        "clean_below_floor": float(np.mean(clean < draws.floor[index])),
        "clean_above_ceiling": float(np.mean(clean > draws.ceiling[index])),
        "target_outside": float(np.mean((target < 0) | (target > 1))),
        "raw_below_0": float(np.mean(raw < 0)),
        "raw_above_1": float(np.mean(raw > 1)),
    }
    return Observation(
        raw_summary=interpolate(raw_taps, blend).astype(np.float32),
        rgb_summary=interpolate(hazy_taps, blend).astype(np.float32),
        **stored,
        clean=(np.clip(clean, 0, 1) if draws.smoke(index) else target).astype(np.float32),
        outside=outside,
        cycles=cycles(draws, index, **stored),
    )


def cycles(draws: Draws, index: int, raw: np.ndarray, base: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """PSNR of the three replayed cycles of stored float32 arrays; a failing one stops the stage."""
    K, M = draws.recipe.K, draws.recipe.M
    label = torch.from_numpy(draws.label[index]).double()
    developed = draws.base(index).develop(raw.astype(np.float64), draws.white_balance[index])
    replays = {
        "action": (apply(torch.from_numpy(base.astype(np.float64)), label, K, M).numpy(), target),
        "base": (developed, base),
        "end_to_end": (apply(torch.from_numpy(developed), label, K, M).numpy(), target),
    }
    result = {}
    for name, (replayed, wanted) in replays.items():
        error = np.mean((replayed - wanted) ** 2)
        result[name] = float(-10 * np.log10(max(error, 1e-30)))
        if not result[name] >= CYCLE_DB:
            raise UserError(
                f"capture {draws.capture[index]}: its {name.replace('_', '-')} cycle closes at {result[name]:.1f} dB, "
                f"not {CYCLE_DB:.0f}; its draw (t = {draws.contrast[index]:.3f}) is not representable, drop the capture"
            )
    return result


def write_shard(draws: Draws, captures: Captures, path: Path | str) -> None:
    """All observations of one shard of captures."""
    members = [(index, row) for row, name in enumerate(captures.names) for index in draws.of(name)]
    if not members:
        raise UserError(f"the draws know none of this shard's captures ({captures.names[0]}, …); draw again")
    made = [observe(draws, index, captures, row) for index, row in progress(members, "observations")]
    names = ("raw_summary", "rgb_summary", "raw", "base", "target", "clean")
    arrays = {name: np.stack([getattr(o, name) for o in made]) for name in names}
    rows = [index for index, _ in members]
    arrays |= {
        name: np.ascontiguousarray(getattr(draws, name)[rows]) for name in ("label", "pivot", "contrast", "light")
    }
    texts = {
        "capture": [draws.capture[index] for index in rows],
        "source": [draws.source[index] for index in rows],
        "outside": [o.outside for o in made],
        "cycles": [o.cycles for o in made],
        "form": {"recipe": draws.recipe.name, **{key: getattr(draws.recipe, key) for key in FORM}},
    }
    write_tensors(path, arrays, {"format": FORMAT, **{k: json.dumps(v, sort_keys=True) for k, v in texts.items()}})
