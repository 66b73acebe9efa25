"""The measured table of docs/scale.md: what each rule cost in a finished build.

    python -m benchmarks.scale results/demo                    (prints the table)
    python -m benchmarks.scale results/demo docs/scale.md      (puts it into the page, between its two markers)

Times and memory come from the benchmark file that Snakemake leaves for every job, sizes from the files that the same
job made: a rule's `benchmark:` names its wildcards, and these name its outputs.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fujinsplat.evaluate.benchmarks import Run, read_runs

RULES = Path(__file__).parents[1] / "rules"
BEGIN, END = "<!-- measured: python -m benchmarks.scale -->", "<!-- end of measured -->"


@dataclass(frozen=True)
class Rule:
    """A rule's name, the pattern of its benchmark files below `benchmarks/`, and those of its outputs."""

    name: str
    benchmark: re.Pattern
    literal: int
    outputs: tuple[str, ...]

    def wildcards(self, run: Run) -> dict[str, str] | None:
        found = self.benchmark.fullmatch(f"{run.stage}/{run.job}")
        return found.groupdict() if found else None


def read_rules() -> Iterator[Rule]:
    """Every rule of the rule files, in the order of the data."""
    snakefile = (RULES.parent / "Snakefile").read_text()
    for name in re.findall(r'include: "(rules/\w+\.smk)"', snakefile):
        for text in re.split(r"^rule ", (RULES.parent / name).read_text(), flags=re.M)[1:]:
            pattern = re.search(r'benchmark:\s+"results/\{dataset\}/benchmarks/([^"]+)\.tsv"', text).group(1)
            parts = re.split(r"\{(\w+)\}", pattern)
            groups = [rf"(?P<{part}>[^/]+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts)]
            block = re.search(r"^    output:\n(.*?)^    \w+:", text, re.M | re.S).group(1)
            outputs = tuple(re.findall(r'"((?:results|data)/[^"]+)"', block))
            yield Rule(text.split(":")[0], re.compile("".join(groups)), sum(map(len, parts[::2])), outputs)


def size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def table(results: Path) -> list[str]:
    """Markdown lines: one row per rule that ran."""
    rules = list(read_rules())
    runs: dict[str, list[tuple[Run, int]]] = {rule.name: [] for rule in rules}
    for run in read_runs(results):
        matching = [rule for rule in rules if rule.wildcards(run) is not None]
        if not matching:
            continue
        rule = max(matching, key=lambda rule: rule.literal)
        wildcards = {**rule.wildcards(run), "dataset": results.name}
        made = sum(size(results.parents[1] / output.format(**wildcards)) for output in rule.outputs)
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
