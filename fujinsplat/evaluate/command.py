"""`fujinsplat evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import DeviceOption, SettingsOption, ThreadsOption, stage_app

app = stage_app("Score renders and write tables.")


@app.command("score")
def score_command(
    renders: Annotated[Path, typer.Option("--renders", help="Folder of {stem}.png renders.")],
    held: Annotated[Path, typer.Option("--held", help="Folder of the held references.")],
    out: Annotated[
        Path, typer.Option("--out", help="CSV, one row per view; a JSON of the same name stands beside it.")
    ],
    source_renders: Annotated[
        Path | None, typer.Option("--source-renders", help="Folder of renders at source poses, for train PSNR.")
    ] = None,
    clean: Annotated[
        Path | None, typer.Option("--clean", help="Clean twins of the source views, for train PSNR.")
    ] = None,
    medium_renders: Annotated[
        Path | None, typer.Option("--medium-renders", help="Held renders through the model's medium.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", help="The Gaussians, for their checksum.")] = None,
    training_log: Annotated[
        Path | None, typer.Option("--training-log", help="The training's log: time, memory, Gaussians.")
    ] = None,
    about: Annotated[str, typer.Option("--about", help="JSON copied into the JSON: scene, variant, seeds.")] = "{}",
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """PSNR, SSIM and LPIPS of rendered held views, and PSNR of source views against their clean twins."""
    from fujinsplat.core.runtime import pick_device, use_threads

    use_threads(threads)
    import json

    from fujinsplat.core.errors import UserError
    from fujinsplat.core.settings import EvaluateSettings
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.evaluate.scoring import Job, score_scene

    chosen = stage_settings(EvaluateSettings, settings)
    try:
        words = dict(json.loads(about))
    except (ValueError, TypeError) as error:
        raise UserError(f"--about {about}: {error}; give a JSON object") from None
    job = Job(renders, held, source_renders, clean, model, training_log, words, medium_renders)
    summary = score_scene(job, out, chosen, pick_device(device) if chosen.lpips else "cpu")
    mean = summary["mean"]
    typer.echo("  ".join(f"{name} {value:.4f}" for name, value in mean.items() if isinstance(value, float)))


@app.command("tables")
def tables_command(
    results: Annotated[Path, typer.Argument(help="results/{dataset}")],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="A table's name; repeat for more. Default: all.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder; default: tables/ in the results folder.")] = None,
    outline: Annotated[
        str | None,
        typer.Option("--outline", help="A config.yaml (default: the one here), or an outline as inline JSON."),
    ] = None,
) -> None:
    """The paper's tables as CSV, Markdown and LaTeX, from the scores that exist; the others leave a gap."""
    from fujinsplat.evaluate.tables import TABLES, build_table, write_table
    from fujinsplat.rows.outline import read_outline

    build = read_outline(outline, results)
    for name in table or TABLES:
        paths = write_table(build_table(name, build, results), out or results / "tables")
        typer.echo(f"{paths[0].with_suffix('')}.{{csv,md,tex}}")
