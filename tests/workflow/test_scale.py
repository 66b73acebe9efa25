"""The table of docs/scale.md can be made again from any finished build."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_job_of_a_build_is_in_the_table_with_what_it_wrote(built, tmp_path):
    results, page = built.folder / "results/demo", tmp_path / "scale.md"
    page.write_text((ROOT / "docs/scale.md").read_text())
    subprocess.run([sys.executable, "-m", "benchmarks.scale", results, page], cwd=ROOT, check=True)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| [\d.]+ \| [\d.]+ \| \S+ \| ([\d.]+) \|", page.read_text(), re.M)
    jobs = {rule: int(count) for rule, count, _ in rows}
    assert sum(jobs.values()) == len(list((results / "benchmarks").rglob("*.tsv")))
    assert jobs["splat_train"] == jobs["render_held"] == jobs["render_source"] == 6 and jobs["demo_external"] == 1
    written = {rule: float(megabytes) for rule, _, megabytes in rows}
    made = sum(path.stat().st_size for path in (results / "gaussians").rglob("*.*")) / 1e6
    assert abs(6 * written["splat_train"] - made) < 0.05
    assert (ROOT / "docs/scale.md").read_text().split("<!-- end")[1] == page.read_text().split("<!-- end")[1]
