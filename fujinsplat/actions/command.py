"""`fujinsplat actions`: expert actions and the correction distribution."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import DeviceOption, SettingsOption, ThreadsOption, stage_app

app = stage_app("Fit expert actions and the correction distribution.")

Base = Annotated[Path, typer.Option("--base", help="The scene's Base ISP (safetensors).")]
Source = Annotated[Path, typer.Option("--source", help="The scene's smoky source views.")]
Clean = Annotated[Path, typer.Option("--clean", help="Their clean twins.")]
Scene = Annotated[str | None, typer.Option("--scene", help="The scene's name [the folder above SOURCE].")]


@app.command()
def fit(
    base: Base,
    source: Source,
    clean: Clean,
    out: Annotated[Path, typer.Option("--out", help="The actions (safetensors).")],
    scene: Scene = None,
    flow: Annotated[str | None, typer.Option("--flow", help="Settings of the colour flow: JSON of K and M.")] = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """One expert action per source view, from the base output to the clean camera RGB."""
    from fujinsplat.core.runtime import pick_device, use_threads
    from fujinsplat.core.settings import ActionsSettings, FlowSettings
    from fujinsplat.core.validation import stage_settings

    chosen, size = stage_settings(ActionsSettings, settings), stage_settings(FlowSettings, flow)
    use_threads(threads)
    from fujinsplat.actions.fit import fit_scene
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.progress import say
    from fujinsplat.flow.store import save
    from fujinsplat.isp import load

    name = scene or source.resolve().parent.name
    views = SourceViews(source), SourceViews(clean)
    actions = fit_scene(load(base), *views, chosen, size.K, size.M, pick_device(device), name)
    save(out, actions)
    psnr = actions.extra["psnr"]
    say(f"{name}: {len(psnr)} actions, fit to target {psnr.mean():.2f} dB (worst {psnr.min():.2f})")


@app.command()
def veil(
    base: Base,
    source: Source,
    clean: Clean,
    out: Annotated[Path, typer.Option("--out", help="The scene's fits (JSON).")],
    scene: Scene = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Contrast t and pivot colour of each pair of one scene, in RAW and in the decoded base output."""
    from fujinsplat.core.runtime import use_threads
    from fujinsplat.core.settings import ActionsSettings
    from fujinsplat.core.validation import stage_settings

    chosen = stage_settings(ActionsSettings, settings)
    use_threads(threads)
    from fujinsplat.actions.measure import measure
    from fujinsplat.actions.population import save
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.progress import say
    from fujinsplat.isp import load

    name = scene or source.resolve().parent.name
    found = measure(name, load(base), SourceViews(source), SourceViews(clean), chosen.percentiles)
    save(out, found)
    say(f"{name}: {len(found.pairs)} pairs measured, {len(found.left_out)} fits left out")


@app.command()
def population(
    out: Annotated[Path, typer.Option("--out", help="The correction distribution (JSON).")],
    veils: Annotated[list[Path] | None, typer.Argument(help="What `actions veil` wrote, one file per scene.")] = None,
    use: Annotated[Path | None, typer.Option("--use", help="Check and take this population instead.")] = None,
) -> None:
    """Merge the scenes' fits into population.json, or take a given one (docs/population.md has the schema)."""
    from fujinsplat.actions import measure
    from fujinsplat.actions.population import COORDINATES, load, save
    from fujinsplat.core.errors import UserError
    from fujinsplat.core.progress import say

    if veils and use is None:
        found = measure.merge(veils)
    elif use is not None and not veils:
        found = load(use)
    else:
        raise UserError("give the scenes' files that `actions veil` wrote, or --use POPULATION.json, and not both")
    save(out, found)
    for coordinate in COORDINATES:
        if summary := getattr(found, coordinate):
            say(
                f"{coordinate}: {summary.pairs} pairs, t {summary.t_min:.2f}-{summary.t_max:.2f},"
                f" median {summary.t_median:.2f}; clean median {summary.clean_median:.4f};"
                f" pivot / median {summary.pivot_ratio:.2f}"
            )


@app.command("import")
def import_(
    pairs: Annotated[Path, typer.Argument(help="The authors' raw_population_195.json.")],
    out: Annotated[Path, typer.Option("--out", help="The correction distribution (JSON); see docs/population.md.")],
    white_balance: Annotated[
        Path | None, typer.Option("--white-balance", help="Their camera's white balance (JSON).")
    ] = None,
) -> None:
    """The authors' measured pairs as a population; name the result in `settings: actions: population`."""
    from fujinsplat.actions.authors import import_population
    from fujinsplat.actions.population import save
    from fujinsplat.core.progress import say

    population = import_population(pairs, white_balance)
    save(out, population)
    assert population.raw is not None  # the authors' pairs are RAW
    say(f"{len(population.pairs)} pairs of {len(population.scenes)} scenes, t median {population.raw.t_median:.3f}")
