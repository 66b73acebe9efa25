"""One function for every restorer, and what a plan and a record need to know of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import sha256
from fujinsplat.core.progress import progress
from fujinsplat.restore.settings import EXTERNAL, RestorerSettings

Pictures = dict[str, np.ndarray]


def restore(pictures: Pictures, by: RestorerSettings, scene: str = "") -> Pictures:
    """Pictures by stem, uint8 `[H, W, 3]` encoded RGB, without their smoke: same stems, same sizes, same type."""
    for stem, picture in pictures.items():
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"picture {stem!r} is {picture.dtype} {picture.shape}, not uint8 [H, W, 3]")
    reason = unavailable(by, scene)
    if reason is not None:
        raise UserError(reason)
    if by.weights is not None:
        _checked(Path(by.weights).expanduser(), by)
    if by.folder is not None:
        from fujinsplat.restore.external import by_folder

        return by_folder(pictures, by, scene)
    if by.command is not None:
        from fujinsplat.restore.external import by_command

        return by_command(pictures, by, scene)
    one = _own(by)
    return {stem: one(picture) for stem, picture in progress(pictures.items(), "pictures", len(pictures))}


def _own(by: RestorerSettings) -> Callable[[np.ndarray], np.ndarray]:
    """One of our own methods, which is available, as a function of a picture."""
    if by.by == "dark_channel":
        from fujinsplat.restore import dark_channel

        return lambda picture: dark_channel.restore_picture(picture, by)
    if by.by == "aod_net":
        from fujinsplat.restore import aod_net

        assert by.weights is not None
        weights = aod_net.read_weights(Path(by.weights).expanduser())
        return lambda picture: aod_net.restore_picture(picture, weights)
    from fujinsplat.restore import maxim

    path = maxim.find(by)
    assert path is not None
    expected = by if by.sha256 else by.model_copy(update={"sha256": maxim.CHECKSUMS[by.trained]})
    return maxim.Maxim(_checked(path, expected), by.precision)


def _checked(path: Path, by: RestorerSettings) -> Path:
    if by.sha256 is not None:
        found = sha256(path)
        if found != by.sha256:
            raise UserError(
                f"{path} has the checksum {found[:12]}… and not {by.sha256[:12]}…; get the right weights, "
                "or correct the restorer's `sha256`"
            )
    return path


def unavailable(by: RestorerSettings, scene: str = "") -> str | None:
    """Why this restorer cannot run here, in one sentence; None when it can. Cheap: a plan asks it for every row."""
    if by.by == "maxim":
        from fujinsplat.restore import maxim

        if maxim.find(by) is None:
            return f"MAXIM's weights are absent (54 MB, optional): `fujinsplat restore fetch {by.trained}` gets them"
    if by.by == "aod_net" and by.weights is None:
        return "AOD-Net's weights are in no package: name the file dehazer.pth as the restorer's `weights`"
    if by.by in EXTERNAL and by.command is None and by.folder is None:
        return f"{by.by} is not ours, and neither its `command` nor a `folder` is given: see docs/baselines.md"
    if by.folder is not None:
        folder = Path(by.folder.replace("{scene}", scene)).expanduser()
        if scene and not folder.is_dir():
            return f"the folder of restored pictures {folder} does not exist; restore the pictures into it"
    if by.weights is not None and not Path(by.weights).expanduser().is_file():
        return f"the restorer's weights {by.weights} do not exist; correct the path"
    return None


def files_of(by: RestorerSettings, scene: str) -> list[Path]:
    """What a restorer reads besides the views: its weights and, of a folder, the pictures; those that exist."""
    from fujinsplat.restore.external import SUFFIXES

    weights = _weights(by)
    found = [weights] if weights is not None and weights.is_file() else []
    if by.folder is not None:
        folder = Path(by.folder.replace("{scene}", scene)).expanduser()
        found += sorted(path for path in folder.glob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return found


def _weights(by: RestorerSettings) -> Path | None:
    if by.by == "maxim":
        from fujinsplat.restore import maxim

        return maxim.find(by)
    return Path(by.weights).expanduser() if by.weights else None


def record(by: RestorerSettings) -> dict:
    """What made the pictures: method, settings, and the checksum of the weights where there are any."""
    weights = _weights(by)
    checksum = sha256(weights) if weights is not None and weights.is_file() else None
    return {"by": by.by, "settings": by.model_dump(mode="json"), "weights_sha256": checksum}
