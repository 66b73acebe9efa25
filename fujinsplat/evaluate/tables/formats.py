"""CSV for programs, Markdown for reading, LaTeX for papers. Equal content is an equal file."""

import csv
from pathlib import Path

from fujinsplat.core.files import atomic_file
from fujinsplat.evaluate.tables.model import Cell, Row, Table

FORMATS = ("csv", "md", "tex")
NOTES = {
    "quoted": "quoted from the paper, not measured here",
    "oracle": "uses the clean twins of the source views; a reference, not ranked",
}
SPREAD = "± sample standard deviation over seeds; behind a mean over scenes, of that mean."
_MARKS = {"quoted": "†", "oracle": "‡"}


def write_table(table: Table, folder: Path) -> list[Path]:
    """`folder/{name}.csv`, `.md` and `.tex`."""
    writers = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
    paths = []
    for suffix in FORMATS:
        path = folder / f"{table.name}.{suffix}"
        with atomic_file(path) as temporary:
            temporary.write_text(writers[suffix](table))
        paths.append(path)
    return paths


def as_csv(table: Table) -> str:
    """Full precision; a `source` column says ours, quoted or oracle; deviations have columns of their own."""
    import io

    spread = [i for i in range(len(table.headers)) if any(row.cells[i].deviation is not None for row in table.rows)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.headers, *(f"{table.headers[i]} deviation" for i in spread), "source"])
    for row in table.rows:
        values = [_raw(cell.value) for cell in row.cells]
        writer.writerow([*values, *(_raw(row.cells[i].deviation) for i in spread), row.note or "ours"])
    return stream.getvalue()


def _raw(value: float | str | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def label(row: Row) -> str:
    """The row's first cell with the mark that its note explains."""
    return row.cells[0].text() + _MARKS.get(row.note, "") if row.cells[0].value else ""


def footnotes(table: Table) -> list[str]:
    used = [note for note in NOTES if any(row.note == note for row in table.rows)]
    spread = any(cell.deviation is not None for row in table.rows for cell in row.cells)
    timed = " and ".join(table.headers[i] for i in sorted(table.timed))
    said = [f"{_MARKS[note]} {NOTES[note]}." for note in used] + ([SPREAD] if spread else [])
    return said + ([f"{timed}: measured, and not the same in two runs."] if timed else [])


def as_markdown(table: Table) -> str:
    lines = [f"### {table.title}", ""]
    lines += [table.caption, ""] if table.caption else []
    lines += ["| " + " | ".join(table.headers) + " |"]
    lines += ["|" + "|".join(":--" if _is_text(table, i) else "--:" for i in range(len(table.headers))) + "|"]
    for row in table.rows:
        shown = [label(row), *(_markdown(cell) for cell in row.cells[1:])]
        lines += ["| " + " | ".join(text.replace("|", "\\|") for text in shown) + " |"]
    lines += [""] + [note + "  " for note in footnotes(table)]
    if any(cell.rank for row in table.rows for cell in row.cells):
        lines += ["**first** ¹, second ², third ³ by unrounded value."]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(cell: Cell) -> str:
    text = cell.text()
    return {None: text, 1: f"**{text}** ¹", 2: f"{text} ²", 3: f"{text} ³"}[cell.rank]


def _is_text(table: Table, column: int) -> bool:
    values = [row.cells[column].value for row in table.rows]
    return column == 0 or any(isinstance(value, str) and value for value in values)


_COLOURS = {1: "fst", 2: "sed", 3: "thd"}
_PREAMBLE = r"""% needs: \usepackage{booktabs} \usepackage[table]{xcolor} \usepackage{graphicx} \usepackage{amssymb}
\providecolor{fst}{HTML}{9FC5E8}\providecolor{sed}{HTML}{C9DCF0}\providecolor{thd}{HTML}{E1E0F2}%
"""
_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "✓": r"$\checkmark$",
    "→": r"$\to$",
    "Δ": r"$\Delta$",
    "ρ": r"$\rho$",
    "α": r"$\alpha$",
    "₁": r"$_1$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "·": r"$\cdot$",
    "²": r"$^2$",
    "…": r"\dots{}",
    "ℓ": r"$\ell$",
    "≤": r"$\leq$",
}


def latex_text(text: str) -> str:
    """Plain text for LaTeX; a character that has no spelling here is left out rather than breaking the document."""
    return "".join(_ESCAPES.get(c, c if c.isascii() or (c.isalpha() and ord(c) < 0x180) else "") for c in text)


def as_latex(table: Table) -> str:
    """A `table` environment that shrinks to the line's width when it is wider."""
    columns = "".join("l" if _is_text(table, i) else "r" for i in range(len(table.headers)))
    caption = f"{table.title}. {table.caption} {' '.join(footnotes(table))}".strip()
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(latex_text(header) for header in table.headers) + r" \\",
        r"\midrule",
    ]
    section = table.rows[0].section if table.rows else ""
    for row in table.rows:
        if row.section != section:
            lines.append(r"\midrule")
            section = row.section
        lines.append(" & ".join([latex_text(label(row)), *(_latex(cell) for cell in row.cells[1:])]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table}"]
    return _PREAMBLE + "\n".join(lines) + "\n"


def _latex(cell: Cell) -> str:
    text = latex_text(cell.text())
    if cell.rank is None:
        return text
    return rf"\cellcolor{{{_COLOURS[cell.rank]}}}" + (rf"\textbf{{{text}}}" if cell.rank == 1 else text)
