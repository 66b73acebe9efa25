"""The sheet of external captures, `captures.csv`: name, path, split. Pure Python: the workflow plans shards by it."""

import csv
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.reading import unreadable

SHEET = "captures.csv"
COLUMNS = ("name", "path", "split")
TRAIN = "train"


@dataclass(frozen=True)
class Capture:
    """One smoke-free RAW file; `name` is unique and seeds everything random about it."""

    name: str
    path: Path
    split: str = TRAIN


def read_sheet(folder: Path | str, split: str = TRAIN) -> list[Capture]:
    """The captures of one split, in the sheet's order; paths are relative to the sheet's folder."""
    sheet = Path(folder) / SHEET
    try:
        with sheet.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except FileNotFoundError:
        raise UserError(
            f"{sheet} does not exist; put smoke-free RAW files there with a sheet of {', '.join(COLUMNS)}, "
            "or run `fujinsplat synthesis acquire`"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        if unreadable(sheet, error):
            raise UserError(f"{sheet} cannot be read: permission denied; give yourself the right to read it") from None
        raise UserError(
            f"{sheet} is not a readable CSV file ({error}); write the columns {', '.join(COLUMNS)}"
        ) from None
    captures = []
    for number, row in enumerate(rows, start=2):
        missing = [column for column in COLUMNS if not (row.get(column) or "").strip()]
        if missing:
            raise UserError(f"{sheet}, line {number}: {missing[0]} is missing; each row needs {', '.join(COLUMNS)}")
        capture = Capture(row["name"].strip(), sheet.parent / row["path"].strip(), row["split"].strip())
        if capture.split == split:
            captures.append(capture)
    names = [capture.name for capture in captures]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{sheet}: the name {name} occurs twice; names must be unique")
    if not captures:
        raise UserError(f"{sheet} lists no capture with split {split!r}; add some")
    return captures


def shard_names(count: int, size: int) -> list[str]:
    """Names of the shards of `count` captures, `size` each, the last one smaller."""
    shards = -(-count // size)
    return [f"{index:04d}" for index in range(shards)]


def shard(captures: list[Capture], size: int, name: str) -> list[Capture]:
    """The captures of one shard."""
    first = int(name) * size
    part = captures[first : first + size]
    if not part:
        raise UserError(
            f"there is no shard {name}: {len(captures)} captures make {-(-len(captures) // size)} shards of {size}"
        )
    return part
