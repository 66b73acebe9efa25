"""Every part runs: rows of config.yaml that together use all of them, trained and scored on the smallest world."""

import sys

from fujinsplat.core.validation import checked
from fujinsplat.rows.config import Config
from fujinsplat.rows.registries import every_part

SCENE = "Kogarashi"
# stands for somebody else's radiance field: renders are the pictures it was given
PROGRAM = """
import sys, pathlib
from PIL import Image
given, made = map(pathlib.Path, sys.argv[1:])
for path in given.glob("*/*.png"):
    for kind in ("clean", "medium"):
        Image.open(path).convert("RGB").save(made / kind / path.name)
"""


def covering(config: Config) -> list[str]:
    """As few rows as a greedy choice finds that use every part between them."""
    missing, chosen = set(every_part()), []
    while missing:
        # of rows with equally many of the missing parts, one that shares what others have made
        best = max(config.rows.values(), key=lambda row: (len(missing & set(row.parts)), not row.overlay))
        assert missing & set(best.parts), f"no row uses {[part.name for part in missing]}"
        chosen.append(best.name)
        missing -= set(best.parts)
    return chosen


def test_every_part_runs_on_the_smallest_world(copy_of_build):
    config = copy_of_build.config()
    config["datasets"]["demo"]["settings"] |= {
        "splat": {"iterations": 20, "bake_steps": 2},
        "evaluate": {"lpips": False},
    }
    program = copy_of_build.folder / "program.py"
    program.write_text(PROGRAM)
    command = f"{sys.executable} {program} {{input}} {{output}}"
    config["settings"] = {**config.get("settings", {}), "foreign": {"command": command}}
    copy_of_build.write_config(config)
    rows = covering(checked(Config, config))
    assert len(rows) >= 3
    targets = [f"results/demo/metrics/{SCENE}/{row}.csv" for row in rows]
    copy_of_build.make(*targets)
    for target in targets:
        assert (copy_of_build.folder / target).read_text().count("held") == 2
