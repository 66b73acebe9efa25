"""What ran, as Snakemake recorded it: for each output its rule, its inputs and its times.

Records lie in `.snakemake/metadata` beside the `results` folder, one JSON per output under the base64 of its path.
Without them (results copied elsewhere) there is nothing to tell, and callers say so.
"""

import base64
import json
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One output file or folder, with paths as the rule named them (relative to the working directory)."""

    output: str
    rule: str
    inputs: tuple[str, ...]
    command: str
    started: float
    ended: float


def read_records(results: Path) -> list[Record]:
    """The records of every output below `results` that still exists, and of what it was made from; by output path."""
    results = results.resolve()
    root = next((folder for folder in results.parents if (folder / ".snakemake" / "metadata").is_dir()), None)
    if root is None:
        return []
    records = []
    metadata = root / ".snakemake" / "metadata"
    for path in metadata.rglob("*"):
        if not path.is_file():
            continue
        name = "".join(part.removeprefix("@") for part in path.relative_to(metadata).parts)  # long names are split
        try:
            output = base64.b64decode(name, altchars=b"-_").decode()
            values = json.loads(path.read_text())
            record = Record(
                output,
                values["rule"],
                tuple(values["input"]),
                values.get("shellcmd") or "",
                float(values.get("starttime") or 0),
                float(values.get("endtime") or 0),
            )
        except (ValueError, KeyError, TypeError):
            continue  # not a record of this format
        if (root / output).exists():
            records.append(record)
    return sorted(_ancestry(records, f"{results.relative_to(root)}/"), key=lambda record: record.output)


def _ancestry(records: list[Record], prefix: str) -> list[Record]:
    """The records of outputs below `prefix` and of everything that went into them: other datasets drop out."""
    by_output = {record.output: record for record in records}
    waiting = [record for record in records if record.output.startswith(prefix)]
    kept: dict[str, Record] = {}
    while waiting:
        record = waiting.pop()
        if record.output not in kept:
            kept[record.output] = record
            waiting += [by_output[maker] for maker in map(_maker(by_output), record.inputs) if maker]
    return list(kept.values())


def _maker(outputs: Container[str]) -> Callable[[str], str | None]:
    """The output that a path is, or lies in."""
    return lambda path: next((p for p in (path, *map(str, Path(path).parents)) if p in outputs), None)


def rule_edges(records: list[Record]) -> set[tuple[str, str]]:
    """Which rule fed which: `(maker, user)` for every input that is, or lies in, another rule's output."""
    rule_of = {record.output: record.rule for record in records}
    maker = _maker(rule_of)
    edges = {(rule_of[made], record.rule) for record in records for made in map(maker, record.inputs) if made}
    return {(start, end) for start, end in edges if start != end}
