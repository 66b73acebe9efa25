"""What ran, as Snakemake recorded it: for each output its rule, its inputs and its times.

Records lie in `.snakemake/metadata` beside the `results` folder, one JSON per output under the base64 of its path.
Without them (results copied elsewhere) there is nothing to tell, and callers say so.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One output file or folder, with paths as the rule named them (relative to the working directory)."""

    output: str
    rule: str
    inputs: tuple[str, ...]
    started: float
    ended: float


def read_records(results: Path) -> list[Record]:
    """The records of every output below `results` that still exists, by output path."""
    results = results.resolve()
    root = next((folder for folder in results.parents if (folder / ".snakemake" / "metadata").is_dir()), None)
    if root is None:
        return []
    prefix = f"{results.relative_to(root)}/"
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
                float(values.get("starttime") or 0),
                float(values.get("endtime") or 0),
            )
        except (ValueError, KeyError, TypeError):
            continue  # not a record of this format
        if output.startswith(prefix) and (root / output).exists():
            records.append(record)
    return sorted(records, key=lambda record: record.output)


def rule_edges(records: list[Record]) -> set[tuple[str, str]]:
    """Which rule fed which: `(maker, user)` for every input that is, or lies in, another rule's output."""
    maker = {record.output: record.rule for record in records}
    edges = set()
    for record in records:
        for path in record.inputs:
            for candidate in (path, *map(str, Path(path).parents)):
                if candidate in maker and maker[candidate] != record.rule:
                    edges.add((maker[candidate], record.rule))
                    break
    return edges
