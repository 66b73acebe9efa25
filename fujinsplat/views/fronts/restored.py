"""The camera's smoky RGB, restored picture by picture: the first half of the "2D restorer + 3DGS" rows [Table 1].

`{restored: convir}` names the restorer; where the four of the paper are to be had, and how ours were made, is told in
docs/baselines.md.
"""

from pathlib import Path

from fujinsplat.core.parts import Front
from fujinsplat.restore.settings import RestorerSettings


def make(inputs: dict[str, Path], settings, device: str):
    """8-bit restored source views, encoded, with the checksum of the weights."""
    from fujinsplat.restore import record, restore
    from fujinsplat.views.store import Pictures, camera_pictures

    by, source = settings.restored, inputs["source"]
    scene = source.absolute().parent.name  # capture/{scene}/source
    return Pictures(restore(dict(camera_pictures(source).encoded), by, scene), record(by))


def missing(settings) -> str | None:
    from fujinsplat.restore.run import unavailable

    return unavailable(settings.restored)


def files(settings, scene: str) -> list[Path]:
    from fujinsplat.restore.run import files_of

    return files_of(settings.restored, scene)


PART = Front(
    name="restored",
    run=make,
    needs=("source",),
    Settings=RestorerSettings,
    main="by",
    missing=missing,
    files=files,
)
