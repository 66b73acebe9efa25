"""`fujinsplat analysis`: the paper's read-only studies. Each writes a table, numbers, a figure and one sentence."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import SettingsOption, ThreadsOption, stage_app

app = stage_app("The paper's read-only studies.")

Sources = Annotated[list[Path], typer.Option("--source", help="Smoky source views of a scene; once per scene.")]
Cleans = Annotated[list[Path], typer.Option("--clean", help="Their clean twins, in the same order.")]
Bases = Annotated[list[Path], typer.Option("--base", help="The scenes' Base ISPs, in the same order.")]
Experts = Annotated[list[Path], typer.Option("--actions", help="The scenes' expert actions, in the same order.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for table.csv, result.json, result.txt and figure.{png,pdf}.")]


def _scenes(sources: list[Path], cleans: list[Path], bases: list[Path]) -> dict[str, tuple]:
    """Scene name (the base file's) to (source views, clean views, base)."""
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.errors import UserError
    from fujinsplat.isp import load

    if not len(sources) == len(cleans) == len(bases):
        raise UserError(
            f"{len(sources)} --source, {len(cleans)} --clean, {len(bases)} --base: give each once per scene"
        )
    return {b.stem: (SourceViews(s), SourceViews(c), load(b)) for s, c, b in zip(sources, cleans, bases, strict=True)}


def _experts(paths: list[Path], count: int) -> dict:
    from fujinsplat.core.errors import UserError
    from fujinsplat.flow.store import load

    if len(paths) != count:
        raise UserError(f"{len(paths)} --actions for {count} scenes: give one per scene")
    experts = {path.stem: load(path) for path in paths}
    if len({(e.K, e.M) for e in experts.values()}) > 1:
        raise UserError("the scenes' actions differ in K or M; fit them with one capacity")
    return experts


def _prepare(settings: str | None, threads: int | None):
    from fujinsplat.core.runtime import use_threads
    from fujinsplat.core.settings import AnalysisSettings
    from fujinsplat.core.validation import stage_settings

    use_threads(threads)
    return stage_settings(AnalysisSettings, settings)


@app.command("rank-one")
def rank_one(source: Sources, clean: Cleans, base: Bases, out: Out, threads: ThreadsOption = None) -> None:
    """Rank-one structure of the smoke residual [supp. A]."""
    _prepare(None, threads)
    from fujinsplat.analysis import published_studies as published
    from fujinsplat.analysis import rank_one
    from fujinsplat.analysis.output import beside, write

    rows, result, directions = rank_one.study(_scenes(source, clean, base))
    theirs = published.RANK_ONE
    write(
        out,
        beside(rows, published.RANK_ONE_SCENES, theirs),
        result,
        {"all": theirs, "scenes": published.RANK_ONE_SCENES},
        rank_one.sentence(result, theirs),
        rank_one.draw(rows, result, directions),
    )


@app.command("base-fidelity")
def base_fidelity(source: Sources, clean: Cleans, base: Bases, out: Out, threads: ThreadsOption = None) -> None:
    """Source-view fidelity of the calibrated bases [supp. B]."""
    _prepare(None, threads)
    from fujinsplat.analysis import fidelity
    from fujinsplat.analysis import published_studies as published
    from fujinsplat.analysis.output import beside, write

    rows, result = fidelity.study(_scenes(source, clean, base))
    theirs = published.FIDELITY
    write(
        out,
        beside(rows, published.FIDELITY_SCENES, theirs),
        result,
        {"all": theirs, "scenes": published.FIDELITY_SCENES},
        fidelity.sentence(result, theirs),
        fidelity.draw(rows, result),
    )


@app.command()
def observability(
    source: Sources,
    clean: Cleans,
    base: Bases,
    actions: Experts,
    out: Out,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="SCENE/VIEW to refit (twice); default: densest, lightest scene.")
    ] = None,
    fit_settings: Annotated[str | None, typer.Option("--fit-settings", help="Settings of the actions stage.")] = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """What the coefficients of an action leave visible in its colours [supp. D]."""
    chosen = _prepare(settings, threads)
    from fujinsplat.analysis import observability
    from fujinsplat.analysis import published_studies as published
    from fujinsplat.analysis.output import write
    from fujinsplat.core.errors import UserError
    from fujinsplat.core.settings import ActionsSettings
    from fujinsplat.core.validation import stage_settings

    scenes = _scenes(source, clean, base)
    pairs = [tuple(given.split("/", 1)) for given in pair or []]
    for given in pairs:
        if len(given) != 2 or given[0] not in scenes or given[1] not in scenes[given[0]][0].stems:
            raise UserError(f"--pair {'/'.join(given)}: give SCENE/VIEW with a scene among {', '.join(scenes)}")
    how = stage_settings(ActionsSettings, fit_settings)
    rows, result, spectra = observability.study(scenes, _experts(actions, len(scenes)), chosen, how, pairs)
    theirs = published.OBSERVABILITY
    write(
        out,
        [*rows, observability.published_row(theirs, published.WHERE)],
        result,
        theirs,
        observability.sentence(result, theirs),
        observability.draw(spectra, result, 3 * chosen.probes**3),
    )


@app.command()
def inverse(
    captures: Annotated[list[Path], typer.Argument(help="All shards of sampled captures.")],
    draws: Annotated[Path, typer.Option(help="The recipe's draws.")],
    out: Out,
    threads: ThreadsOption = None,
) -> None:
    """How well compiled labels undo the veil they stand for [supp. F]."""
    _prepare(None, threads)
    from fujinsplat.analysis import inverse
    from fujinsplat.analysis import published_studies as published
    from fujinsplat.analysis.output import write
    from fujinsplat.synthesis.captures import Captures
    from fujinsplat.synthesis.draws import Draws

    kept = Captures.joined([Captures.load(path) for path in sorted(captures)])
    rows, result = inverse.study(Draws.load(draws), kept)
    write(out, rows, result, published.INVERSE, inverse.sentence(result), inverse.draw(rows))


@app.command()
def family(
    source: Sources, actions: Experts, out: Out, settings: SettingsOption = None, threads: ThreadsOption = None
) -> None:
    """The family of expert actions: energy, vocabulary, classifier [supp. E]."""
    chosen = _prepare(settings, threads)
    from fujinsplat.analysis import family
    from fujinsplat.analysis import published_studies as published
    from fujinsplat.analysis.output import write
    from fujinsplat.capture import SourceViews

    experts = _experts(actions, len(source))
    sources = {name: SourceViews(folder) for name, folder in zip(experts, source, strict=True)}
    rows, result, curves = family.study(experts, sources, chosen)
    theirs = published.FAMILY
    write(
        out,
        family.table(rows, result, theirs),
        result,
        theirs,
        family.sentence(result, theirs),
        family.draw(curves, result),
    )
