"""Options that every stage's command shares."""

from typing import Annotated

import typer

SettingsOption = Annotated[
    str | None,
    typer.Option("--settings", help="What differs from the paper's values: inline JSON, or a YAML file."),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads (default: all cores).")]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda or auto.")]


def stage_app(help: str) -> typer.Typer:
    """A command group for one stage, in the house style."""
    return typer.Typer(help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
