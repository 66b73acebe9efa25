"""`fujinsplat action`: look at one colour action, or apply it to a picture."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import ThreadsOption, stage_app

app = stage_app("Look at one colour action, or apply it to a picture.")

ActionFile = Annotated[Path, typer.Argument(help="A safetensors file of actions.", metavar="ACTION")]
ViewOption = Annotated[str | None, typer.Option("--view", help="Which view's action (default: the mean of all).")]


@app.command()
def show(
    action: ActionFile,
    out: Annotated[Path, typer.Option("--out", help="Picture to write; a PDF is written beside it.")],
    view: ViewOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Draw an action: its curves, its couplings, its effect on greys and on a colour grid."""
    from fujinsplat.core.progress import say
    from fujinsplat.core.runtime import use_threads

    use_threads(threads)
    from fujinsplat.core.style import save
    from fujinsplat.flow.figure import draw

    chosen, actions, name = _choose(action, view)
    for path in save(draw(chosen, actions.K, actions.M, name), out):
        say(f"wrote {path}")


@app.command()
def apply(
    image: Annotated[Path, typer.Argument(help="An encoded RGB picture (PNG, JPEG, TIFF).")],
    action: ActionFile,
    out: Annotated[Path, typer.Option("--out", help="Picture to write.")],
    view: ViewOption = None,
    invert: Annotated[bool, typer.Option("--invert", help="Undo the action instead.")] = False,
    threads: ThreadsOption = None,
) -> None:
    """Develop a picture with an action; the result is clipped to what the file can hold."""
    from fujinsplat.core.runtime import use_threads

    use_threads(threads)
    from fujinsplat.flow.picture import develop

    chosen, actions, _ = _choose(action, view)
    develop(image, out, chosen, actions.K, actions.M, invert)


def _choose(path: Path, view: str | None):
    """The action `[P]` asked for, the file it came from, and what to call it."""
    from fujinsplat.flow.layout import average
    from fujinsplat.flow.store import load

    actions = load(path)
    if view is not None:
        return actions.of(view), actions, f"{path.stem}, view {view}"
    count = len(actions.action)
    return average(actions.action), actions, path.stem if count == 1 else f"{path.stem}, mean of {count} views"
