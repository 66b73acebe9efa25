"""The camera's own smoky RGB, without our Base ISP [supp. I: RGB base only]."""

from pathlib import Path

from fujinsplat.core.parts import Front


def make(inputs: dict[str, Path], settings, device: str):
    """The camera RGB of the source views, 8 bit, encoded."""
    from fujinsplat.views.store import camera_pictures

    return camera_pictures(inputs["source"])


PART = Front(name="camera", run=make, needs=("source",))
