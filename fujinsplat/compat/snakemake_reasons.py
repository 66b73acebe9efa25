"""Why a job runs again, in words that a person can read. Tested with snakemake 9.15 to 9.27.

For changed parameters Snakemake prints the old and the new ones whole. Ours are blocks of settings, up to ten thousand
characters of JSON on a line; here the reason names what in them differs.
"""

import ast
import json
from collections.abc import Iterable, Iterator
from typing import Any

VERSIONS = "snakemake >=9.15,<9.28"
MOST = 6  # differences told
LONGEST = 60  # characters of a value
ABSENT = "nothing"
_CODE = "code:"  # how a stage's stamp begins (workflow/stamps.py)


def tell_changes_briefly() -> None:
    """From now on the reason for a job with changed parameters says what differs."""
    from snakemake.persistence import ParamsChange

    def told(self) -> str:
        return changes(self.only_old, self.only_new)

    patched: Any = ParamsChange
    patched.__str__ = told


def changes(old: Iterable[Any], new: Iterable[Any]) -> str:
    """`splat.iterations: 150, now 200; …` for parameters that only the old or only the new job has."""
    before, now = ([_plain(str(value)) for value in sorted(map(str, values))] for values in (old, new))
    found = []
    for value in list(before):
        partner = max(now, key=lambda other: _likeness(value, other), default=None)
        if partner is not None and _likeness(value, partner) > 0:
            before.remove(value)
            now.remove(partner)
            found += _differences(value, partner)
    found += [_pair("", value, ABSENT) for value in before] + [_pair("", ABSENT, value) for value in now]
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more or "only in how they are written"


def _plain(word: str) -> Any:
    """A parameter as Snakemake has recorded it, by `repr`: what its JSON says where it is some, else its text."""
    try:
        text = ast.literal_eval(word)
        value = json.loads(text)
    except (ValueError, SyntaxError, TypeError, RecursionError):
        return word
    return value if isinstance(value, dict) else text


def _likeness(one: Any, other: Any) -> float:
    """How likely two parameters are the same one before and after."""
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one.keys() & other.keys()) / max(1, len(one.keys() | other.keys()))
    if isinstance(one, str) and isinstance(other, str) and _CODE in one and _CODE in other:
        return 1.0
    return 0.0


def _differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    if isinstance(old, str) and _CODE in old:
        yield "the code of this stage, or a file that its parts read"
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key, ABSENT), new.get(key, ABSENT), f"{place}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and old != new:
        yield _pair(place, _only(old, new), _only(new, old))
    elif old != new:
        yield _pair(place, old, new)


def _only(items: list, others: list) -> Any:
    """What one list has and the other has not; all of it where they differ in their order alone."""
    if all(item in others for item in items) and all(item in items for item in others):
        return items
    return [item for item in items if item not in others] or ABSENT


def _pair(place: str, old: Any, new: Any) -> str:
    return f"{place}: {_short(old)}, now {_short(new)}".removeprefix(": ")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"
