"""Names of datasets, scenes, rows and groups: they become files, wildcards and words of commands, so one rule for all.

A name begins with a letter or digit and goes on with letters, digits, `_`, `-` and `+`; scenes and datasets may hold
dots and single spaces too. Letters of any script are letters.
"""

import re

from fujinsplat.core.validation import nearest

LONGEST = 80  # characters: several names and a suffix make one file name
PLAIN = re.compile(r"[^\W_][\w+-]*")
DOTTED = re.compile(r"[^\W_](?:[\w.+-]| (?! ))*(?<![. ])")
RESERVED = {"all": "means every row"}


def name_error(what: str, name: str, dots: bool = False) -> str | None:
    """Why this cannot be a name; None when it can. `what`: `the row`, `the scene`, …"""
    shown = f"{what} {name!r}"
    if not name:
        return f"{what} has an empty name; give it one"
    if len(name) > LONGEST:
        return f"{shown} has {len(name)} characters; take a name of at most {LONGEST}"
    if (DOTTED if dots else PLAIN).fullmatch(name):
        return None
    letters = "letters, digits, _ - + and dots" if dots else "letters, digits, _ - and +"
    if not dots and "@" in name:
        return f"{shown} holds an @, which marks repeated seeds of a row; take a name of {letters}"
    return f"{shown} cannot be a file's name everywhere; begin with a letter or digit and take {letters}"


def row_error(name: str) -> str | None:
    if name in RESERVED:
        return f"the row {name!r} has a name that {RESERVED[name]}; call it otherwise"
    return name_error("the row", name)


def twice(names: list[str]) -> str | None:
    """The first name that a list, or a file system that ignores case, has two times."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.casefold(), name)) is not name or names.count(name) > 1:
            return f"{other!r} and {name!r} are one name where case does not count" if other != name else f"{name!r}"
    return None


def unknown(what: str, name: str, valid) -> str:
    return f"there is no {what} {name!r}{nearest(name, valid)}"
