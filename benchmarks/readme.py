"""Tables of README.md and docs/ from a finished build, and lists from the settings.

    python -m benchmarks.readme results/demo README.md docs/smoke.md

A block begins with `<!-- table: NAME -->` (results/{dataset}/tables/NAME.md, made by a rule) or with
`<!-- differences: DATASET ROW -->` (as `fujinsplat config differences`), and ends with `<!-- end -->`. What stands
between is replaced. A test compares the lists with the settings.
"""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"(<!-- (table|differences): ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(results: Path, name: str) -> str:
    """The Markdown table alone: title and notes stay with the file."""
    lines = (results / "tables" / f"{name}.md").read_text().splitlines()
    return "\n".join(line for line in lines if line.startswith("|")) + "\n"


def differences(dataset: str, row: str) -> str:
    """The settings of a row that are not the paper's, as a table."""
    import yaml

    from fujinsplat.core.validation import checked
    from fujinsplat.rows.config import Config
    from fujinsplat.rows.outline import facts

    config = checked(Config, yaml.safe_load(Path("config.yaml").read_text()))
    one = config.rows[row]
    found = facts(one, one.settings(config.settings_for(dataset))).differences
    lines = ["| setting | here | paper |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {here} | {paper} |" for name, here, paper in found)]) + "\n"


def refreshed(text: str, results: Path | None) -> str:
    def block(match: re.Match) -> str:
        begin, kind, what, end = match.groups()
        if kind == "differences":
            return f"{begin}{differences(*what.split())}{end}"
        return f"{begin}{table(results, what)}{end}" if results else match[0]

    return BLOCK.sub(block, text)


def main() -> None:
    results, pages = Path(sys.argv[1]), [Path(page) for page in sys.argv[2:]]
    for page in pages:
        page.write_text(refreshed(page.read_text(), results))
        print(f"{page}: {len(BLOCK.findall(page.read_text()))} blocks")


if __name__ == "__main__":
    main()
