"""What a restorer is. The dark channel prior has the values it was published with, fixed before any view is seen."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fujinsplat.core.settings import Count, Fraction, Positive, Settings, setting

Checksum = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


# other people's programs: the paper's four, and any other
EXTERNAL = ("convir", "mb_taylorformer", "promptir", "moce_ir", "other")


class RestorerSettings(Settings):
    """A restorer of pictures: a method of ours, somebody's program, or a folder of its results."""

    by: Literal["dark_channel", "aod_net", "maxim", "convir", "mb_taylorformer", "promptir", "moce_ir", "other"] = (
        setting("dark_channel", "who restores; those that are not ours want a `command` or a `folder`")
    )
    weights: str | None = setting(
        None, "weights file: of aod_net and maxim; of a command, for {weights} and for its checksum in the record"
    )
    sha256: Checksum | None = setting(None, "checksum that the weights must have")
    trained: Literal["indoor", "outdoor"] = setting("indoor", "maxim: the part of RESIDE its weights are trained on")
    precision: Literal["bfloat16", "float32"] = setting(
        "bfloat16", "maxim: arithmetic of its products; 55 dB from float32, which is faster without bf16 instructions"
    )
    command: str | None = setting(
        None, "a program with its arguments; {input}, {output}, {weights} and {scene} are replaced"
    )
    directory: str | None = setting(None, "where the command is started; the current folder when left out")
    minutes: Positive = setting(600, "time that the command may take for one scene")
    folder: str | None = setting(None, "folder of restored pictures, named as the views are; its {scene} is replaced")
    window: Annotated[int, Field(ge=1)] = setting(15, "dark_channel: side of the window (He et al. 2009)")
    omega: Fraction = setting(0.95, "dark_channel: share of the haze that is removed (He et al. 2009)")
    floor: Positive = setting(0.1, "dark_channel: smallest transmission (He et al. 2009)")
    brightest: Fraction = setting(0.001, "dark_channel: share of pixels among which airlight is looked for (He et al.)")
    radius: Count = setting(40, "dark_channel: of the guided filter, in pixels (He et al. 2010)")
    epsilon: Positive = setting(1e-3, "dark_channel: regularisation of the guided filter (He et al. 2010)")

    @model_validator(mode="after")
    def _one_source(self) -> "RestorerSettings":
        given = [name for name in ("command", "folder") if getattr(self, name) is not None]
        if given and self.by not in EXTERNAL:
            raise ValueError(f"`{given[0]}` is given, and {self.by} is a method of ours; remove it, or set by: other")
        if len(given) > 1:
            raise ValueError("both `command` and `folder` are given; choose one")
        if self.command is not None and not all(part in self.command for part in ("{input}", "{output}")):
            raise ValueError("`command` must say where {input} and {output} stand among its arguments")
        if "{weights}" in (self.command or "") and self.weights is None:
            raise ValueError(
                "`command` has {weights}, and no `weights` are given; name the file, or write its path out"
            )
        if self.folder is not None and "{scene}" not in self.folder:  # views of all scenes have the same names
            raise ValueError(
                "`folder` must say where {scene} stands in its path, so that no scene gets another's pictures"
            )
        if self.sha256 is not None and self.weights is None and self.by != "maxim":  # maxim finds what was fetched
            raise ValueError("`sha256` is given without `weights`, so nothing would be checked; name the weights file")
        return self
