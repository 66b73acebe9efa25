"""The measured table of docs/scale.md: what each rule cost in a finished build.

    python -m benchmarks.scale results/demo                    (prints the table)
    python -m benchmarks.scale results/demo docs/scale.md      (puts it into the page, between its two markers)

Times and memory come from the benchmark file that Snakemake leaves for every job, sizes from the files that the same
job made: a rule's benchmark names its wildcards, and these name its outputs.
"""

import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fujinsplat.evaluate.benchmarks import Run, read_runs

SNAKEFILE = Path(__file__).parents[1] / "Snakefile"
BEGIN, END = "<!-- measured: python -m benchmarks.scale -->", "<!-- end of measured -->"


@dataclass(frozen=True)
class Rule:
    """A rule's name, the pattern of its benchmark files, and those of its outputs, as Snakemake has them."""

    name: str
    benchmark: Any
    outputs: tuple[Any, ...]

    def wildcards(self, run: Run, dataset: str) -> dict[str, str] | None:
        found = self.benchmark.match(f"results/{dataset}/benchmarks/{run.stage}/{run.job}.tsv")
        return found.groupdict() if found else None


def read_rules(folder: Path) -> Iterator[Rule]:
    """Every rule that runs something, in the order of the data; `folder` is where the build ran, with its config."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

    with chdir(folder), SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(resource_settings=ResourceSettings(), snakefile=SNAKEFILE)._workflow
        for rule in workflow.rules:
            if rule.benchmark:
                yield Rule(rule.name, rule.benchmark, tuple(rule.output))


def size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def table(results: Path) -> list[str]:
    """Markdown lines: one row per rule that ran."""
    from snakemake.io import apply_wildcards

    rules = list(read_rules(results.parents[1]))
    runs: dict[str, list[tuple[Run, int]]] = {rule.name: [] for rule in rules}
    for run in read_runs(results):
        rule = next((rule for rule in rules if rule.wildcards(run, results.name) is not None), None)
        if rule is None:
            continue
        wildcards = rule.wildcards(run, results.name)
        made = sum(size(results.parents[1] / apply_wildcards(output, wildcards)) for output in rule.outputs)
        runs[rule.name].append((run, made))
    splats = [path.relative_to(results / "gaussians") for path in results.glob("gaussians/*/*.ply")]
    scenes, variants = {path.parts[0] for path in splats}, {path.stem for path in splats}
    lines = [
        f"A build of {len(scenes)} scenes and {len(variants)} variants, {len(splats)} splats:",
        "",
        "| rule | jobs | seconds, median | longest | peak MB | MB written per job | minutes in all |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    total = 0.0
    for name, made in runs.items():
        if not made:
            continue
        seconds = [run.seconds for run, _ in made]
        memory = max((run.memory_mb or 0 for run, _ in made), default=0)
        written = sum(bytes_ for _, bytes_ in made) / len(made) / 1e6
        total += sum(seconds)
        peak = f"{memory:.0f}" if memory else "–"
        lines.append(
            f"| {name} | {len(made)} | {median(seconds):.1f} | {max(seconds):.1f} | {peak} | {written:.2f} | "
            f"{sum(seconds) / 60:.1f} |"
        )
    count = sum(map(len, runs.values()))
    lines.append(f"| **all** | **{count}** | | | | | **{total / 60:.0f}** |")
    return lines


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    results = Path(sys.argv[1]).resolve()
    if not (results / "benchmarks").is_dir():
        sys.exit(f"{results} has no benchmarks; name the results folder of a finished build, such as results/demo")
    text = "\n".join(table(results))
    if len(sys.argv) == 2:
        print(text)
        return
    page = Path(sys.argv[2])
    before, _, rest = page.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{page} lacks the lines {BEGIN} and {END}; put them where the table belongs")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
