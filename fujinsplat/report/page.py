"""report.html: one file, no network. The look and the behaviour are in `assets/`; this fills them."""

import re
from html import escape
from pathlib import Path

from fujinsplat.core.files import atomic_file
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables.formats import footnotes, label
from fujinsplat.evaluate.tables.model import Cell, Table
from fujinsplat.report.gather import Content, Panel, Scene, Timing, gather
from fujinsplat.report.pictures import STRIP_WIDTH, jpeg_url, png_url

ASSETS = Path(__file__).with_name("assets")
UNITS = {"psnr": ("PSNR", "dB", 2), "ssim": ("SSIM", "", 3), "lpips": ("LPIPS", "", 3)}


def write_report(results: Path, outline: Outline, out: Path) -> Content:
    """Gather `results` and write the page; returns what it shows."""
    content = gather(results, outline)
    with atomic_file(out) as temporary:
        temporary.write_text(render(content))
    return content


def render(content: Content) -> str:
    """The whole page."""
    parts = {
        "title": f"FujinSplat · {escape(content.outline.dataset)}",
        "dataset": escape(content.outline.dataset),
        "style": (ASSETS / "page.css").read_text(),
        "script": (ASSETS / "page.js").read_text(),
        "lead": _lead(content),
        "facts": _facts(content),
        "scenes": "\n".join(_scene(scene, content) for scene in content.scenes),
        "tables": "\n".join(_table(table) for table in content.tables),
        "figures": _figures(content),
        "run": _run(content),
        "views": _views(content),
    }
    page = (ASSETS / "page.html").read_text()
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


def _lead(content: Content) -> str:
    scenes, variants = len(content.scenes), len(content.outline.rows)
    title = escape(content.outline.title(content.method)) if content.method else "no variant"
    counts = f"{scenes} scene{'s' * (scenes > 1)}, {variants} variant{'s' * (variants > 1)}"
    return f"{counts}. Pictures and numbers below are those of <b>{title}</b> unless a table says otherwise."


def _facts(content: Content) -> str:
    cards = []
    for metric, (name, unit, digits) in UNITS.items():
        if metric in content.averages:
            number = f"{content.averages[metric]:.{digits}f}"
            mean = ", mean over scenes" if len(content.scenes) > 1 else ""
            cards.append(_fact(number, unit, f"{name}{mean}"))
    gains = [scene.gain for scene in content.scenes if scene.gain is not None]
    if gains and len(gains) == len(content.scenes):
        cards.append(_fact(f"{sum(gains) / len(gains):+.2f}", "dB", "over the base without correction"))
    if content.timings:
        spent = _duration(sum(t.seconds for t in content.timings))
        cards.append(_measured(_fact(*spent, "of computing, all jobs added")))
    return "\n".join(cards)


def _fact(number: str, unit: str, text: str) -> str:
    return f'<div class="fact"><b>{number}</b> <i>{unit}</i><span>{text}</span></div>'


def _measured(text: str) -> str:
    """Marks what no two runs share: times and memory, and nothing else of the page."""
    return f"<!--measured-->{text}<!--/measured-->"


def _duration(seconds: float) -> tuple[str, str]:
    if seconds < 120:
        return f"{seconds:.1f}", "s"
    return (f"{seconds / 60:.1f}", "min") if seconds < 7200 else (f"{seconds / 3600:.1f}", "h")


# scenes


def _scene(scene: Scene, content: Content) -> str:
    name = escape(scene.name)
    numbers = [
        f"{UNITS[m][0]} {v:.{UNITS[m][2]}f}{' ' + UNITS[m][1] if UNITS[m][1] else ''}" for m, v in scene.scores.items()
    ]
    if scene.gain is not None:
        numbers.append(f"{scene.gain:+.2f} dB over the base")
    slider = _slider(scene) if scene.pairs else '<p class="gap">No render at a source pose to compare with.</p>'
    if isinstance(scene.viewer, tuple):
        view = f'<button class="open-view" data-scene="{name}">Walk through it in 3D</button>'
    else:
        view = f'<p class="gap">{escape(scene.viewer)}</p>' if scene.viewer else ""
    if scene.others:
        links = " · ".join(f'<a href="{escape(page)}">{escape(title)}</a>' for title, page in scene.others)
        view += f'\n<p class="others">Other methods in 3D: {links}</p>'
    return f"""<article class="scene" id="scene-{name}">
<header><h3>{name}</h3><p class="numbers">{" · ".join(numbers)}</p></header>
{slider}
{_strip(scene.strip)}
{view}
</article>"""


def _strip(panels: list[Panel]) -> str:
    """One held view by method, side by side."""
    figures = []
    for panel in panels:
        url, (width, height) = jpeg_url(panel.file, STRIP_WIDTH)
        number = "" if panel.psnr is None else f" · {panel.psnr:.2f} dB"
        text = escape(panel.title) + number
        figures.append(
            f'<figure><img src="{url}" width="{width}" height="{height}" alt="{text}" loading="lazy">'
            f"<figcaption>{text}</figcaption></figure>"
        )
    label = 'aria-label="one held view by method"'
    return f'<div class="strip" tabindex="0" role="group" {label}>{"".join(figures)}</div>' if figures else ""


def _slider(scene: Scene) -> str:
    """Tabs for the poses; each is two pictures, the upper one clipped at the range input's value."""
    tabs, panels = [], []
    for i, pair in enumerate(scene.pairs):
        smoky, (width, height) = jpeg_url(pair.smoky)
        render, _ = jpeg_url(pair.render)
        stem, name = escape(pair.stem), escape(scene.name)
        title = escape(pair.title)
        what, label = f"{name}, view {stem}, {title}", f"view {stem} · {title}"
        tabs.append(f'<button role="tab" aria-selected="{str(i == 0).lower()}" data-pose="{i}">{label}</button>')
        panels.append(f"""<div class="compare" data-pose="{i}"{"" if i == 0 else " hidden"}>
<img class="after" src="{render}" width="{width}" height="{height}" alt="{what}: render">
<img class="before" src="{smoky}" width="{width}" height="{height}" alt="{what}: smoky camera picture">
<span class="tag left">smoky camera</span><span class="tag right">{title}</span><span class="handle"></span>
<input type="range" min="0" max="100" value="50" step="0.1" aria-label="{what}: share of the smoky picture">
</div>""")
    tabs_html = f'<div class="tabs" role="tablist">{"".join(tabs)}</div>' if len(tabs) > 1 else ""
    return f'<div class="poses">{"".join(panels)}{tabs_html}</div>'


def _views(content: Content) -> str:
    """The viewer's shell once, and each scene's data; both wait as text until a view is opened."""
    import base64

    found = {scene.name: scene.viewer for scene in content.scenes if isinstance(scene.viewer, tuple)}
    if not found:
        return ""
    shell = next(iter(found.values()))[0]
    parts = [f'<script type="text/plain" id="view-shell">{base64.b64encode(shell.encode()).decode()}</script>']
    for name, (_, data) in found.items():
        parts.append(f'<script type="application/json" data-view="{escape(name)}">{data}</script>')
    return "\n".join(parts)


# tables


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{_class(i, table)} aria-sort="none"><button>{_unbroken(text)}</button></th>'
        for i, text in enumerate(table.headers)
    )
    rows, section, title = [], table.rows[0].section if table.rows else "", ""
    for row in table.rows:
        new = ' class="section"' if row.section != section else ""
        section = row.section
        title, again = (label(row), False) if row.cells[0].value else (title, True)
        first = f'<th scope="row"{" class=again" if again else ""}>{escape(title)}</th>'
        cells = [_cell(cell, _class(i, table)) for i, cell in enumerate(row.cells)]
        shown = [_measured(cell) if i in table.timed else cell for i, cell in enumerate(cells)][1:]
        rows.append(f"<tr{new}>{first}{''.join(shown)}</tr>")
    notes = "".join(f"<p>{escape(note)}</p>" for note in footnotes(table))
    body = "\n".join(rows) or f'<tr><td colspan="{len(table.headers)}" class="gap">nothing to show yet</td></tr>'
    return f"""<details class="table" id="table-{table.name}" open>
<summary>{escape(table.title)}</summary>
<p class="caption">{_code(table.caption)}</p>
<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></div>
<div class="notes">{notes}</div>
</details>"""


def _unbroken(header: str) -> str:
    """An arrow stays on the line of its metric."""
    return escape(header).replace(" ↑", "&nbsp;↑").replace(" ↓", "&nbsp;↓")


def _code(text: str) -> str:
    """Text with names in backticks, as Markdown has them."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _class(column: int, table: Table) -> str:
    values = [row.cells[column].value for row in table.rows]
    kinds = ["published"] if column in table.published else []
    if any(isinstance(value, bool) for value in values):
        kinds.append("mark")
    elif any(isinstance(value, str) for value in values):
        kinds.append("text")
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _cell(cell: Cell, column: str) -> str:
    rank = f' data-rank="{cell.rank}"' if cell.rank else ""
    kind = ""
    if isinstance(cell.value, float):
        kind = f' data-value="{cell.value:.6f}"'
    elif cell.value is None:
        kind = " data-gap"
    return f"<td{column}{rank}{kind}>{_code(cell.text())}</td>"


# figures and the run


def _figures(content: Content) -> str:
    parts = []
    for text, path in content.figures:
        url, (width, height) = png_url(path)
        image = f'<img src="{url}" width="{width}" height="{height}" alt="{escape(text)}" decoding="async">'
        wide = " wide" if width > 1.8 * height else ""
        figure = (
            f'<figure class="figure{wide}"><button class="zoom">{image}</button>'
            f"<figcaption>{escape(text)}</figcaption></figure>"
        )
        parts.append(_measured(figure) if path.stem == "pipeline" else figure)
    return "\n".join(parts) or '<p class="gap">No figure has been built yet.</p>'


def _run(content: Content) -> str:
    blocks = [_measured(_times(content.timings))]
    settings = [
        f"<tr><th scope=row>{escape(k)}</th><td>{escape(v)}</td><td>{escape(p)}</td><td>{escape(rows)}</td></tr>"
        for k, v, p, rows in content.changed
    ]
    blocks.append(
        "<h3>Settings that differ from the paper's</h3>"
        + (
            '<div class="scroll"><table class="plain"><thead><tr><th>Setting</th><th>This run</th><th>Paper</th>'
            f"<th>Rows</th></tr></thead><tbody>{''.join(settings)}</tbody></table></div>"
            if settings
            else "<p>None: every setting that these rows depend on has the paper's value.</p>"
        )
    )
    items = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in content.versions.items())
    blocks.append(f'<h3>Versions</h3><dl class="versions">{items}</dl>')
    if content.missing:
        items = "".join(f"<li>{escape(text)}</li>" for text in content.missing)
        blocks.append(f'<h3>Not in this report</h3><ul class="missing">{items}</ul>')
    return "\n".join(f"<div>{block}</div>" for block in blocks)


def _times(timings: list[Timing]) -> str:
    if not timings:
        return "<h3>Times</h3><p class=gap>No benchmark file was found.</p>"
    longest, total = max(t.seconds for t in timings), sum(t.seconds for t in timings)
    rows = []
    for t in timings:
        memory = f"{t.memory_mb:.0f}" if t.memory_mb is not None else "–"
        bar = f'<span class="bar" style="--share:{t.seconds / longest:.4f}"></span>' if longest else ""
        rows.append(
            f'<tr><th scope="row">{escape(t.label)}</th><td data-value="{t.jobs}">{t.jobs}</td>'
            f'<td data-value="{t.seconds:.2f}">{" ".join(_duration(t.seconds))}{bar}</td>'
            f'<td data-value="{t.longest:.2f}">{" ".join(_duration(t.longest))}</td>'
            f'<td data-value="{t.memory_mb or 0:.0f}">{memory}</td></tr>'
        )
    headers = ("Job", "Runs", "Together", "Longest", "Peak memory, MB")
    head = "".join(f'<th scope="col" aria-sort="none"><button>{text}</button></th>' for text in headers)
    jobs = sum(t.jobs for t in timings)
    return f"""<h3>Times</h3>
<p>{jobs} jobs, {" ".join(_duration(total))} in all when added up; jobs run side by side, so you waited less.
Two undisturbed runs on one machine differ in times and memory alone: here, in columns of tables that say so, and in
the picture of the pipeline.</p>
<div class="scroll"><table id="times"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>"""
