"""The authors' population of 195 pairs (`raw_population_195.json`) and their camera's white balance, as ours.

Both are JSON. A pair needs its scene, its view, the contrast t and the pivot colour; its clean median luminance may
stand beside them, or once for all pairs. Fits are those of camera-linear RAW without white balance, so the population
has no `base` coordinate: it is for `synthesis.coordinate: raw`, the published setting.
"""

from pathlib import Path
from typing import Any

import numpy as np

from fujinsplat.actions.population import Color, Fit, Pair, Population
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.validation import checked

# names under which a value may stand, the first one preferred
LISTS = ("pairs", "records", "population", "items", "samples")
SCENE, VIEW = ("scene", "scene_name"), ("view", "stem", "image", "name", "frame")
CONTRAST, PIVOT = ("t", "contrast"), ("pivot", "c", "pivot_rgb", "pivot_color", "airlight")
MEDIAN = ("clean_median", "clean_median_luminance", "clean_luminance_median", "median_clean", "J_median")
BALANCE = ("camera_whitebalance", "white_balance", "whitebalance", "wb", "camera_wb")


def _first(record: dict, names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def read_white_balance(path: Path | str) -> Color:
    """Camera gains with G = 1, from three numbers (R, G, B) or LibRaw's four (R, G, B, G2), plain or under a key."""
    content = read_json(path)
    values = _first(content, BALANCE) if isinstance(content, dict) else content
    try:
        gains = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        gains = np.empty(0)
    if gains.shape not in ((3,), (4,)) or not np.isfinite(gains).all() or not (gains[:3] > 0).all():
        raise UserError(
            f"{path} holds no white balance; three gains (R, G, B) or LibRaw's four are needed, as a list or under "
            f"{BALANCE[0]}"
        )
    r, g, b = (float(gain / gains[1]) for gain in gains[:3])
    return r, g, b


def _records(content: Any, path: Path | str) -> tuple[list[dict], dict]:
    """The pairs of a file, and what it says for all of them."""
    shared = content if isinstance(content, dict) else {}
    found = _first(shared, LISTS) if shared else content
    if isinstance(found, dict):  # {scene: [pairs]} or {scene: {view: pair}}
        rows = []
        for scene, members in found.items():
            named = members.items() if isinstance(members, dict) else ((None, m) for m in members)
            rows += [{"scene": scene, **({"view": v} if v is not None else {}), **pair} for v, pair in named]
        found = rows
    if not isinstance(found, list) or not found or not all(isinstance(row, dict) for row in found):
        raise UserError(
            f"{path} is no population: it must hold a list of pairs, plain or under {LISTS[0]}; give the authors' "
            "raw_population_195.json"
        )
    return found, shared


def import_population(path: Path | str, white_balance: Path | str | None = None) -> Population:
    """The authors' file as a population; `white_balance` is their camera's file, where the pairs carry none."""
    records, shared = _records(read_json(path), path)
    balance = read_white_balance(white_balance) if white_balance else None
    pairs = []
    for number, record in enumerate(records):
        values = {
            "scene": _first(record, SCENE),
            "view": _first(record, VIEW),
            "t": _first(record, CONTRAST),
            "pivot": _first(record, PIVOT),
            "clean_median": _first(record, MEDIAN) or _first(shared, MEDIAN),
            "white_balance": balance or _first(record, BALANCE) or _first(shared, BALANCE),
        }
        missing = [name for name, value in values.items() if value is None]
        if missing:
            remedy = "give --white-balance FILE" if missing == ["white_balance"] else "give the authors' file whole"
            raise UserError(f"{path}: pair {number + 1} lacks {', '.join(missing)}; {remedy}")
        where = f"{path}: pair {number + 1}"
        fit = checked(Fit, {name: values[name] for name in ("t", "pivot", "clean_median")}, where)
        pairs.append(
            checked(
                Pair,
                {
                    "scene": str(values["scene"]),
                    "view": str(values["view"]),
                    "white_balance": _gains(values["white_balance"], where),
                    "raw": fit.model_dump(),
                },
                where,
            )
        )
    seen = [(pair.scene, pair.view) for pair in pairs]
    if len(set(seen)) != len(seen):
        twice = next(key for key in seen if seen.count(key) > 1)
        raise UserError(f"{path} holds {'/'.join(twice)} twice; each pair may stand once")
    return Population.of(pairs, [])


def _gains(values: Any, where: str) -> list[float]:
    gains = list(values) if isinstance(values, list | tuple) else []
    if len(gains) not in (3, 4) or not all(isinstance(gain, int | float) and gain > 0 for gain in gains[:3]):
        raise UserError(f"{where}: its white balance must be three positive gains; correct the file")
    return [gain / gains[1] for gain in gains[:3]]
