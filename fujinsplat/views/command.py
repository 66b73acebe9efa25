"""`fujinsplat views`."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import DeviceOption, InputsOption, SettingsOption, ThreadsOption, named_paths, stage_app
from fujinsplat.core.runtime import use_threads

app = stage_app("Make the pictures that rows start from.")


@app.callback()
def _group() -> None:
    pass


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="The pictures of every view, .safetensors.")],
    front: Annotated[str, typer.Option(help="Where they come from: a part of the kind `front`.")],
    inputs: InputsOption = None,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Make one scene's pictures. Takes what the front opens, and nothing else."""
    use_threads(threads)
    from fujinsplat.core.runtime import pick_device
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.rows.registries import AllSettings
    from fujinsplat.views.fronts import FRONTS

    part, given = FRONTS[front], stage_settings(AllSettings, settings)
    paths = named_paths(inputs, part.opens(given), f"the front {front!r}")
    from fujinsplat.views.store import Views

    Views.write(out, part.run(paths, given, pick_device(device)), part.name)
