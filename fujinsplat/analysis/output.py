"""What every study writes: table.csv, result.json, figure.png, figure.pdf and result.txt (one sentence)."""

import csv
from pathlib import Path
from typing import Any

from fujinsplat.analysis.published_studies import WHERE
from fujinsplat.core.files import atomic_file, write_json
from fujinsplat.core.progress import say
from fujinsplat.core.style import save

MEAN = "equal-scene mean"


def beside(rows: list[dict[str, Any]], scenes: dict[str, dict], mean: dict[str, Any], key: str = "scene") -> list[dict]:
    """Rows with the paper's numbers as further columns: a scene's own where the paper has it, and those of the mean."""
    columns = [name for name in rows[0] if name != key and name in mean]
    out = []
    for row in rows:
        theirs = mean if row[key] == MEAN else scenes.get(row[key], {})
        out.append({**row, **{f"{name} ({WHERE})": theirs.get(name) for name in columns}})
    return out


def equal_scene_mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean row: every scene counts once; a column with a gap has no mean."""
    names = [name for name in rows[0] if name != "scene"]
    values = {name: [row[name] for row in rows] for name in names}
    means = {n: None if any(x is None for x in v) else sum(v) / len(v) for n, v in values.items()}
    return {"scene": MEAN, **means}


def write(
    folder: Path, rows: list[dict[str, Any]], result: dict[str, Any], published: dict, sentence: str, fig
) -> None:
    """All five files; floats in the table are rounded to what is meaningful, result.json keeps them whole."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_file(folder / "table.csv") as temporary, temporary.open("w", newline="") as stream:
        table = csv.DictWriter(stream, columns, lineterminator="\n")
        table.writeheader()
        table.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    write_json(folder / "result.json", {"sentence": sentence, "result": result, WHERE: published, "table": rows})
    with atomic_file(folder / "result.txt") as temporary:
        temporary.write_text(sentence + "\n")
    save(fig, folder / "figure.png")
    say(sentence)
