"""`fujinsplat <stage> …`: thin commands, in stage order. Heavy imports happen inside the commands."""

import sys
from importlib import import_module
from typing import Annotated

import typer

from fujinsplat import __version__
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import explained
from fujinsplat.core.gpu import memory_bound
from fujinsplat.core.jobs import as_a_job, last_words
from fujinsplat.core.options import stage_app
from fujinsplat.core.runtime import use_arithmetic

# in the order the data moves; each `fujinsplat.<package>.command` holds a typer app called `app`
STAGES = {
    "demo": "fujinsplat.demo.command",
    "capture": "fujinsplat.capture.command",
    "isp": "fujinsplat.isp.command",
    "action": "fujinsplat.flow.command",
    "actions": "fujinsplat.actions.command",
    "smoke": "fujinsplat.smoke.command",
    "synthesis": "fujinsplat.synthesis.command",
    "controller": "fujinsplat.controller.command",
    "restore": "fujinsplat.restore.command",
    "views": "fujinsplat.views.command",
    "develop": "fujinsplat.develop.command",
    "splat": "fujinsplat.splat.command",
    "export": "fujinsplat.export.command",
    "evaluate": "fujinsplat.evaluate.command",
    "analysis": "fujinsplat.analysis.command",
    "report": "fujinsplat.report.command",
    "config": "fujinsplat.config_command",
    "doctor": "fujinsplat.doctor",
}

# what lowers the need for a GPU's memory, by command
SMALLER = {
    "splat render": "give a smaller --width",
    "controller train": "lower settings.controller.batch",
    "evaluate score": "set settings.evaluate.lpips: false",
    "isp calibrate": "lower settings.isp.pixels",
    "synthesis sample": "lower settings.synthesis.depth_batch",
}


def _say_version(asked: bool) -> None:
    if asked:
        print(f"fujinsplat {__version__}")
        raise typer.Exit


def _group(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def build() -> typer.Typer:
    app = stage_app("RAW photographs taken through smoke in, one clean 3D Gaussian scene out.")
    app.callback()(_group)
    for name, module in STAGES.items():
        app.add_typer(import_module(module).app, name=name)
    app.command("photos")(import_module("fujinsplat.photos.command").photos)
    return app


def memory_remedy(words: list[str]) -> str:
    """What to do when a GPU's memory is full; `words` are the command's. Training says more (`splat/job.py`)."""
    smaller = SMALLER.get(" ".join(words))
    return ", ".join(filter(None, (smaller, "set device: cpu, or use a GPU with more free memory")))


def main() -> None:
    try:
        use_arithmetic()
        with as_a_job(), memory_bound(memory_remedy(sys.argv[1:3])):
            _run()
    except UserError as error:
        last_words(f"fujinsplat: {error}")
        raise SystemExit(2) from None
    except OSError as error:
        sentence = explained(error)
        if sentence is None:
            raise
        last_words(f"fujinsplat: {sentence}")
        raise SystemExit(2) from None


def _run() -> None:
    """The command; its end is an exception, of which only a good one may pass by here."""
    try:
        build()()
    except SystemExit as end:
        if end.code:
            raise
