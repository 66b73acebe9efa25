"""What the jobs behind a result really opened, from the records that jobs leave beside their logs (core/boundary.py).

Snakemake's own records say which job made what from what; so the pictures behind a row are those that any job before
its model opened. Decoding jobs are where pictures come from: nothing is followed beyond them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.provenance import Record, read_records
from fujinsplat.paths import inside

MAKERS = ("capture_", "demo_")


@dataclass(frozen=True)
class Reads:
    """One job: its rule, what it made, and the kinds of pictures that it opened."""

    rule: str
    outputs: tuple[str, ...]
    opened: frozenset[str]


def read_reads(results: Path) -> list[Reads]:
    found = []
    for path in sorted((results / "logs").rglob("*.reads.json")):
        try:
            values = json.loads(path.read_text())
            found.append(Reads(values["job"], tuple(values["outputs"]), frozenset(values["opened"])))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is no record of a job ({error}); remove it and make that job's output again"
            ) from None
    return found


def opened_behind(target: str, records: dict[str, Record], reads: dict[str, Reads]) -> frozenset[str] | None:
    """The kinds of pictures that any job on the way to `target` opened; None where a job left no record."""
    waiting, seen, kinds = [target], set(), set()
    while waiting:
        path = waiting.pop()
        record = next((records[p] for p in (path, *map(str, Path(path).parents)) if p in records), None)
        if record is None or record.output in seen or record.rule.startswith(MAKERS):
            continue
        seen.add(record.output)
        if record.output not in reads:
            return None
        kinds |= reads[record.output].opened
        waiting += record.inputs
    return frozenset(kinds) if seen else None


def check_rows(outline: Outline, results: Path, reads: list[Reads]) -> dict[str, frozenset[str]]:
    """What stands behind each row whose jobs all left a record; one that opened other than it declares is an error."""
    records = {record.output: record for record in read_records(results)}
    by_output = {output: job for job in reads for output in job.outputs}
    found = {}
    for name, row in outline.rows.items():
        kinds = [opened_behind(_below(results, scene, name, records), records, by_output) for scene in outline.scenes]
        if not kinds or None in kinds:
            continue
        opened = frozenset().union(*(kind for kind in kinds if kind))
        declared = frozenset(row.supervision)
        if opened != declared:
            what = f"the jobs behind the row {name!r} opened {_list(opened)} and its parts declare {_list(declared)}"
            raise UserError(
                f"{what}; correct the needs of the part that differs (fujinsplat/rows/artefacts.py, or its module)"
            )
        found[name] = opened
    return found


def _below(results: Path, scene: str, variant: str, records: dict[str, Record]) -> str:
    """A row's model, by the name that Snakemake knows it under."""
    path = inside(results, "model", scene=scene, variant=variant).as_posix()
    return next((output for output in records if path.endswith(output)), path)


def _list(kinds: frozenset[str]) -> str:
    return " and ".join(sorted(kinds)) or "nothing"
