"""`fujinsplat synthesis`: base, sample, draw, observe; and acquire, network, basis."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import DeviceOption, SettingsOption, ThreadsOption, stage_app
from fujinsplat.core.runtime import use_threads
from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.core.validation import stage_settings

app = stage_app("Make labelled synthetic RAW observations.")

Folder = Annotated[Path, typer.Argument(help="Folder of smoke-free RAW captures with captures.csv.")]


@app.callback()
def _group() -> None:
    pass


@app.command()
def base(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="The external base's matrix, .json.")],
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Fit the captures' one colour matrix."""
    use_threads(threads)
    given = stage_settings(SynthesisSettings, settings)
    from fujinsplat.core.progress import say
    from fujinsplat.synthesis.external import fit_matrix, save_matrix
    from fujinsplat.synthesis.sheet import read_sheet

    matrix, names, misfit = fit_matrix(read_sheet(folder), given.calibration_captures)
    save_matrix(out, matrix, names, misfit)
    say(f"matrix from {len(names)} captures, relative misfit {misfit:.2%}")


@app.command()
def sample(
    folder: Folder,
    shard: Annotated[str, typer.Option(help="Which shard: 0000, 0001, …")],
    out: Annotated[Path, typer.Option(help="What is kept of the shard's captures, .safetensors.")],
    network: Annotated[Path | None, typer.Option(help="Folder of the depth network, for depth: network.")] = None,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Decode one shard of captures and keep what synthesis needs. A killed run goes on where it stopped."""
    use_threads(threads)
    given = stage_settings(SynthesisSettings, settings)
    from fujinsplat.core.runtime import pick_device
    from fujinsplat.synthesis import captures, sheet

    members = sheet.shard(sheet.read_sheet(folder), given.shard, shard)
    captures.sample(members, out, given, network, pick_device(device) if given.depth == "network" else "cpu")


@app.command()
def draw(
    captures: Annotated[list[Path], typer.Argument(help="All shards of sampled captures.")],
    base: Annotated[Path, typer.Option(help="The external base's matrix.")],
    population: Annotated[Path, typer.Option(help="The correction distribution, population.json.")],
    out: Annotated[Path, typer.Option(help="Draws and labels, .safetensors.")],
    actions: Annotated[
        list[Path] | None, typer.Option(help="Fitted actions, SCENE.safetensors; for draws: actions.")
    ] = None,
    isp: Annotated[
        list[Path] | None, typer.Option(help="Calibrated bases, SCENE.safetensors; for tone: measured.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="JSON: K, M, curves, couplings, labels, coordinate, draws, without.")
    ] = "{}",
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Draw from the correction distribution and compile the labels, for all captures."""
    use_threads(threads)
    given = stage_settings(SynthesisSettings, settings)
    from fujinsplat.synthesis.run import draw_to_file

    draw_to_file(captures, base, population, out, actions or [], isp or [], recipe, given)


@app.command()
def observe(
    captures: Annotated[Path, typer.Argument(help="One shard of sampled captures.")],
    draws: Annotated[Path, typer.Option(help="The recipe's draws.")],
    out: Annotated[Path, typer.Option(help="The shard's observations, .safetensors.")],
    threads: ThreadsOption = None,
) -> None:
    """Make one shard's observations and check their cycles."""
    use_threads(threads)
    from fujinsplat.synthesis.captures import Captures
    from fujinsplat.synthesis.draws import Draws
    from fujinsplat.synthesis.observe import write_shard

    write_shard(Draws.load(draws), Captures.load(captures), out)


@app.command()
def gallery(
    folder: Folder,
    captures: Annotated[list[Path], typer.Option(help="A shard of sampled captures. May be repeated.")],
    draws: Annotated[Path, typer.Option(help="The recipe's draws.")],
    population: Annotated[Path, typer.Option(help="The correction distribution.")],
    out: Annotated[Path, typer.Option(help="The picture, .png.")],
    source: Annotated[Path | None, typer.Option(help="A scene's smoky views.")] = None,
    clean: Annotated[Path | None, typer.Option(help="Their clean twins; read-only analysis.")] = None,
) -> None:
    """Synthetic observations beside real smoke, as the supplement's figure."""
    from fujinsplat.synthesis.gallery import draw_gallery

    draw_gallery(folder, captures, draws, population, out, source, clean)


@app.command()
def network(
    out: Annotated[Path, typer.Option(help="Folder for the network's files.")],
    settings: SettingsOption = None,
) -> None:
    """Fetch the depth network: from a local folder, the hub's cache, or the hub."""
    given = stage_settings(SynthesisSettings, settings)
    from fujinsplat.synthesis.depth import fetch_network

    fetch_network(given.depth_model, given.depth_revision, out)


@app.command()
def acquire(
    folder: Annotated[Path, typer.Argument(help="Where captures and captures.csv go.")],
    server: Annotated[
        str | None, typer.Option(help="Where multilum/raw/SCENE/listing.txt and the files beside it are served.")
    ] = None,
    scenes: Annotated[str | None, typer.Option(help="Scene names: a text file, scenes.json, or its address.")] = None,
    captures: Annotated[int, typer.Option(min=1, help="How many.")] = 1400,
    largest_mb: Annotated[float, typer.Option(min=0.001, help="A file larger than this is refused.")] = 100,
    checksums: Annotated[
        Path | None, typer.Option(help="SHA-256 of every file, as sha256sum writes them; any other file is refused.")
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Write the plan and stop.")] = False,
) -> None:
    """MIT Multi-Illumination: plan its 1,400 captures and download them; a stopped run goes on where it stopped."""
    from fujinsplat.synthesis.acquire import acquire as run

    run(folder, server, scenes, captures, largest_mb, plan_only, checksums)


@app.command(hidden=True)
def basis(
    out: Annotated[Path, typer.Option(help="The polynomials of the capacity settings, .safetensors.")],
    threads: ThreadsOption = None,
) -> None:
    """Make the smooth starts of fitted labels again (some minutes per capacity setting)."""
    use_threads(threads)
    from fujinsplat.synthesis.basis import make_stored

    make_stored(out)
