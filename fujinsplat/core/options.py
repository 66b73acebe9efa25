"""Options that every stage's command shares."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.errors import UserError

MOST_THREADS = 1024  # more than any machine has cores: a slipped zero is a sentence, not a machine without memory

SettingsOption = Annotated[
    str | None,
    typer.Option("--settings", help="Settings that are not the defaults: inline JSON, or a YAML file."),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, max=MOST_THREADS, envvar="FUJINSPLAT_THREADS", help="CPU threads (default: all cores)."
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", envvar="FUJINSPLAT_DEVICE", help="cpu, cuda or auto.")]

InputsOption = Annotated[
    list[str] | None, typer.Option("--input", help="NAME=PATH of an artefact that the part opens; repeat for more.")
]


def named_paths(given: list[str] | None, wanted: tuple[str, ...], who: str) -> dict[str, Path]:
    """`NAME=PATH` options as a dict: exactly what `who` opens, so that nothing can reach further."""
    paths: dict[str, str] = {}
    for item in given or []:
        name, _, path = item.partition("=")
        paths[name] = path
    for name in wanted:
        if not paths.get(name):
            raise UserError(f"{who} needs --input {name}=PATH; it opens {', '.join(wanted) or 'nothing'}")
    for name in paths:
        if name not in wanted:
            raise UserError(f"{who} must not be given --input {name}; it opens {', '.join(wanted) or 'nothing'}")
    return {name: Path(path) for name, path in paths.items()}


def stage_app(help: str) -> typer.Typer:
    """A command group for one stage, in the house style."""
    return typer.Typer(help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
