"""Somebody else's program, such as the official SeaThru-NeRF or I2-NeRF: poses and views out, renders in [Table 1].

There are no Gaussians. What the program renders at the held and source poses, with and without its medium, is kept in
place of a model, so that the rest of the workflow treats it like any other row (docs/baselines.md: the contract).
"""

from typing import Any

from pydantic import model_validator

from fujinsplat.core.parts import Model
from fujinsplat.core.settings import Positive, Settings, setting


class ForeignSettings(Settings):
    """How the program is started."""

    command: str | None = setting(None, "a program with its arguments; {input}, {output} and {scene} are replaced")
    directory: str | None = setting(None, "where it is started; the current folder when left out")
    minutes: Positive = setting(1440, "time that it may take for one scene")

    @model_validator(mode="after")
    def _marks(self) -> "ForeignSettings":
        if self.command is not None and not all(part in self.command for part in ("{input}", "{output}")):
            raise ValueError("`command` must say where {input} and {output} stand among its arguments")
        return self


def instead(inputs: Any, outputs: Any, own: ForeignSettings) -> None:
    from fujinsplat.splat.foreign import run

    run(inputs, outputs, own)


def missing(settings: Any) -> str | None:
    if settings.foreign.command is None:
        return "it is somebody else's program, and no command is given: see docs/baselines.md"
    return None


PART = Model(
    name="foreign",
    run=instead,
    needs=("cameras",),
    Settings=ForeignSettings,
    main="command",
    missing=missing,
    medium=True,
    whole_job=True,
)
