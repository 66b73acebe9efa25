"""The camera's own RGB of the smoke-free twins: an oracle, the upper end of any correction [supp. K]."""

from pathlib import Path

from fujinsplat.core.parts import Front


def make(inputs: dict[str, Path], settings, device: str):
    """The camera RGB of the clean twins, 8 bit, encoded."""
    from fujinsplat.views.store import camera_pictures

    return camera_pictures(inputs["clean"])


PART = Front(name="clean", run=make, needs=("clean",))
