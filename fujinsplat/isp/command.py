"""`fujinsplat isp`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fujinsplat.core.options import DeviceOption, SettingsOption, ThreadsOption, stage_app

app = stage_app("Calibrate, import and score the per-scene Base ISP.")

Source = Annotated[Path, typer.Option(help="The scene's source views, as `fujinsplat capture source` wrote them.")]
Out = Annotated[Path, typer.Option(help="The base (safetensors).")]


@app.command()
def calibrate(
    source: Source,
    out: Out,
    fidelity: Annotated[Path | None, typer.Option(help="PSNR and SSIM against the camera (JSON).")] = None,
    scene: Annotated[str | None, typer.Option(help="The scene's name [the folder above SOURCE].")] = None,
    settings: SettingsOption = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """One scene's base, from its hazy source views alone."""
    from fujinsplat.core.runtime import pick_device, use_threads
    from fujinsplat.core.settings import IspSettings
    from fujinsplat.core.validation import stage_settings

    chosen = stage_settings(IspSettings, settings)
    use_threads(threads)
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.files import write_json
    from fujinsplat.core.progress import say
    from fujinsplat.isp.calibration import calibrate
    from fujinsplat.isp.fidelity import source_fidelity
    from fujinsplat.isp.storage import load, save

    scene = scene or source.resolve().parent.name
    views = SourceViews(source)
    if chosen.checkpoint:
        base = load(chosen.checkpoint.replace("{scene}", scene))
        notes = {**base.notes, "scene": scene}
        say(f"{scene}: {chosen.checkpoint.replace('{scene}', scene)} is used; nothing is calibrated")
    else:
        base, _ = calibrate(views, chosen, pick_device(device))
        notes = {"origin": "calibrated", "scene": scene, "views": str(len(views)), "initial": chosen.initial}
    scores = source_fidelity(base, views)
    save(base, out, **{key: value for key, value in notes.items() if key not in ("kind", "encoding")})
    if fidelity:
        write_json(fidelity, {"scene": scene, "origin": notes.get("origin", "given"), **scores})
    ssim = "" if scores["hazy_ssim"] is None else f", SSIM {scores['hazy_ssim']:.3f}"
    say(f"{scene}: base -> hazy {scores['hazy_psnr']:.2f} dB{ssim} over {len(views)} views")


@app.command("import")
def import_(
    checkpoint: Annotated[Path, typer.Argument(help="The authors' base checkpoint (.pt); tensors alone are read.")],
    out: Out,
    encoding: Annotated[
        Literal["srgb", "none"],
        typer.Option(help="What follows its tone curve; none, the authors': the curve itself ends display-encoded."),
    ] = "none",
) -> None:
    """The authors' base checkpoint as ours; name the result in `settings: isp: checkpoint`."""
    from fujinsplat.isp.storage import import_checkpoint, save

    base = import_checkpoint(checkpoint, encoding)
    save(base, out, **base.notes)


@app.command()
def fidelity(
    base: Annotated[Path, typer.Argument(help="A base (safetensors).")],
    source: Source,
    clean: Annotated[Path | None, typer.Option(help="The clean twins: adds base -> clean and hazy -> clean.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the numbers go (JSON), per view too.")] = None,
    threads: ThreadsOption = None,
) -> None:
    """The fidelity table of supplement B for one scene. Read-only analysis: nothing is fitted to the clean twins."""
    from fujinsplat.core.runtime import use_threads

    use_threads(threads)
    from fujinsplat.capture import SourceViews
    from fujinsplat.core.files import write_json
    from fujinsplat.isp.fidelity import clean_fidelity, source_fidelity
    from fujinsplat.isp.storage import load

    loaded, views = load(base), SourceViews(source)
    scores = source_fidelity(loaded, views)
    if clean:
        against = clean_fidelity(loaded, views, SourceViews(clean))
        rows = [{**a, **b} for a, b in zip(scores["views"], against["views"], strict=True)]
        scores = {**scores, **against, "views": rows}
    titles = {
        "hazy_psnr": "base -> hazy PSNR",
        "hazy_ssim": "base -> hazy SSIM",
        "clean_psnr": "base -> clean PSNR",
        "hazy_clean_psnr": "hazy -> clean PSNR",
        "clean_raw_psnr": "clean RAW through the base -> clean PSNR",
    }
    for name, title in titles.items():
        if scores.get(name) is not None:
            print(f"{title:<42}{scores[name]:8.3f}")
    if out:
        write_json(out, {"scene": loaded.notes.get("scene", base.stem), **scores})


@app.command()
def show(
    base: Annotated[Path, typer.Argument(help="A base (safetensors).")],
    out: Annotated[Path, typer.Option(help="Picture to write; a PDF is written beside it.")],
    threads: ThreadsOption = None,
) -> None:
    """Draw a base: gains and matrix, response to grey, curves, lattice, and what it does to colours."""
    from fujinsplat.core.runtime import use_threads

    use_threads(threads)
    from fujinsplat.core.progress import say
    from fujinsplat.core.style import save
    from fujinsplat.isp.figure import draw
    from fujinsplat.isp.storage import load

    loaded = load(base)
    for path in save(draw(loaded, loaded.notes.get("scene", base.stem)), out):
        say(f"wrote {path}")
