"""`fujinsplat report`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import stage_app

app = stage_app("Figures and report.html.")

ResultsArgument = Annotated[Path, typer.Argument(help="results/{dataset}")]
OutlineOption = Annotated[
    str | None, typer.Option("--outline", help="A config.yaml (default: the one here), or an outline as JSON.")
]


@app.command("view")
def view_command(
    ply: Annotated[Path, typer.Argument(help="Gaussians (3DGS PLY).")],
    cameras: Annotated[Path, typer.Option("--cameras", help="cameras.json of the scene.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write.")],
    title: Annotated[str, typer.Option("--title", help="Its title.")] = "Scene",
) -> None:
    """One page with an interactive 3D view; without Node, a page that says how to add it."""
    from fujinsplat.report.viewer import write_view

    write_view(ply, cameras, out, title)


@app.command("page")
def page_command(
    results: ResultsArgument,
    out: Annotated[Path | None, typer.Option("--out", help="Default: report.html in the results folder.")] = None,
    outline: OutlineOption = None,
) -> None:
    """One self-contained page: pictures, 3D views, tables, figures, and what ran."""
    from fujinsplat.report.page import write_report
    from fujinsplat.rows.outline import read_outline

    out = out or results / "report.html"
    content = write_report(results, read_outline(outline, results), out)
    for text in content.missing:
        typer.echo(f"not in the report: {text}", err=True)
    typer.echo(f"{out} ({out.stat().st_size / 1e6:.1f} MB)")


@app.command("figures")
def figures_command(
    results: ResultsArgument,
    figure: Annotated[list[str] | None, typer.Option("--figure", help="A figure's name; repeat for more.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default: figures/ in the results folder.")] = None,
    outline: OutlineOption = None,
) -> None:
    """The paper's figures as PNG and PDF. Without --figure: all that the results allow."""
    from fujinsplat.core.errors import UserError
    from fujinsplat.report.figures import FIGURES, write_figure
    from fujinsplat.rows.outline import read_outline

    build = read_outline(outline, results)
    for name in figure or FIGURES:
        try:
            typer.echo(str(write_figure(name, results, build, out or results / "figures")[0]))
        except UserError as error:
            if figure:
                raise
            typer.echo(f"left out {name}: {error}", err=True)


@app.command("highlights")
def highlights_command(results: ResultsArgument, outline: OutlineOption = None) -> None:
    """The main numbers of a build, and where to look."""
    from fujinsplat.report.highlights import highlights
    from fujinsplat.rows.outline import read_outline

    typer.echo(highlights(results, read_outline(outline, results)))
