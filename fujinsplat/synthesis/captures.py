"""Decoding external captures, once: what every recipe needs of a capture, in a few hundred kilobytes.

A full-size capture is decoded, measured and dropped; kept are a fixed random choice of its pixels, the four neighbours
each pixel of its 64x64 summary is interpolated from, its white balance, its median, and its range of depth. Synthesis
is a map of single pixels, so that no recipe has to open the RAW files again.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from fujinsplat.core.color import luminance
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.progress import progress
from fujinsplat.core.reading import reader
from fujinsplat.core.settings import CaptureSettings, SynthesisSettings
from fujinsplat.synthesis.depth import depth_range, relative
from fujinsplat.synthesis.sheet import Capture

FORMAT = "fujinsplat captures 3"
MEASURED = 1_000_000  # pixels a median is taken of, at most
REDUCED = (1506, 1006)  # long and short side that a larger capture is area-reduced to before its summary is made


def seed_of(name: str, seed: int, purpose: str) -> np.random.Generator:
    """Randomness of one capture: the same in whatever shard, order or process it is met."""
    digest = hashlib.sha256(f"{purpose}/{seed}/{name}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


@dataclass
class Captures:
    """What is kept of n captures; camera-linear RAW without white balance, uint16 over 65535.

    pixels `[n, N, 3]`; taps `[n, S, S, 2, 2, 3]` (lower and upper neighbour, left and right); blend `[n, 2, S]` their
    vertical and horizontal fractions; white_balance `[n, 3]`; median `[n]` luminance of the whole RAW in [0, 1];
    depth_range `[n]` ln(p90 / p10) of depth. Of the pixels, then of the taps as one list: depth `[n, N + 4 S S]` over
    the capture's median, and place `[n, N + 4 S S, 2]`, down and across in [0, 1].
    """

    pixels: np.ndarray
    taps: np.ndarray
    blend: np.ndarray
    white_balance: np.ndarray
    median: np.ndarray
    depth_range: np.ndarray
    depth: np.ndarray
    place: np.ndarray
    names: list[str]

    def __len__(self) -> int:
        return len(self.names)

    def colours(self, row: int) -> np.ndarray:
        """Pixels and taps of one capture as one list, float64 RAW in [0, 1], `[N + 4 S S, 3]`."""
        return np.concatenate([self.pixels[row], self.taps[row].reshape(-1, 3)]) / 65535

    def split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A list of colours, or of numbers, back to those of the pixels `[N, …]` and of the taps `[S, S, 2, 2, …]`."""
        count = self.pixels.shape[1]
        return values[:count], values[count:].reshape(*self.taps.shape[1:5], *values.shape[1:])

    @classmethod
    def joined(cls, parts: list["Captures"]) -> "Captures":
        arrays = {f: np.concatenate([getattr(p, f) for p in parts]) for f in ARRAYS}
        return cls(**arrays, names=[name for part in parts for name in part.names])

    def save(self, path: Path | str, key: str = "") -> None:
        arrays = {f: np.ascontiguousarray(getattr(self, f)) for f in ARRAYS}
        write_tensors(path, arrays, {"format": FORMAT, "names": json.dumps(self.names), "key": key})

    @classmethod
    @reader("shard of captures", "build it again", place=1)
    def load(cls, path: Path | str, key: str | None = None) -> "Captures":
        """Read a shard; with `key`, only one that was saved under it (KeyError otherwise)."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), "np") as stream:
                notes = stream.metadata() or {}
                if notes.get("format") != FORMAT:
                    raise UserError(f"{path} is not a shard of captures; build it with `fujinsplat synthesis sample`")
                if key is not None and notes.get("key") != key:
                    raise KeyError(key)
                return cls(**{f: stream.get_tensor(f) for f in ARRAYS}, names=json.loads(notes["names"]))
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; build it with `fujinsplat synthesis sample`") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is not a readable shard of captures ({error}); build it again") from None


ARRAYS = tuple(field.name for field in fields(Captures) if field.name != "names")


def neighbours(length: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bilinear resizing of one axis to `side` points: lower and upper index and the upper one's share, each `[side]`.

    The convention of `torch.nn.functional.interpolate(align_corners=False)`, which makes the real views' summaries.
    """
    position = np.maximum((np.arange(side) + 0.5) * (length / side) - 0.5, 0.0)
    lower = np.minimum(position.astype(np.intp), length - 1)
    upper = np.minimum(lower + 1, length - 1)
    return lower, upper, position - lower


def reduced(raw_u16: np.ndarray) -> np.ndarray:
    """A capture `[H, W, 3]` area-reduced to the published size, where it is larger: source views come area-reduced to
    the camera's picture, and a bilinear summary of full-size RAW would keep noise that theirs has lost."""
    height, width = raw_u16.shape[:2]
    long, short = REDUCED
    size = (long, short) if width >= height else (short, long)
    if width <= size[0] and height <= size[1]:
        return raw_u16
    from fujinsplat.capture.grid import area_resize

    return np.rint(area_resize(raw_u16, min(size[0], width), min(size[1], height))).astype(np.uint16)


def interpolate(taps: np.ndarray, blend: np.ndarray) -> np.ndarray:
    """Summary `[3, S, S]` of float taps `[S, S, 2, 2, 3]` with fractions `[2, S]`, clamped to [0, 1]."""
    down, across = blend[0][:, None, None], blend[1][None, :, None]
    rows = taps[:, :, 0] * (1 - down)[..., None] + taps[:, :, 1] * down[..., None]
    return np.clip((rows[:, :, 0] * (1 - across) + rows[:, :, 1] * across).transpose(2, 0, 1), 0, 1)


def keep(
    capture: Capture, raw_u16: np.ndarray, white_balance, depth: np.ndarray, settings: SynthesisSettings
) -> Captures:
    """What is kept of one decoded capture, `raw_u16 [H, W, 3]`, and its depth map, which may have another size."""
    height, width = raw_u16.shape[:2]
    flat = raw_u16.reshape(-1, 3)
    random = seed_of(capture.name, settings.seed, "pixels")
    chosen = random.choice(len(flat), settings.pixels, replace=len(flat) < settings.pixels)
    small = reduced(raw_u16)
    top, bottom, down = neighbours(small.shape[0], settings.summary)
    left, right, across = neighbours(small.shape[1], settings.summary)
    rows, columns = np.stack([top, bottom], -1)[:, None, :, None], np.stack([left, right], -1)[None, :, None, :]
    rows, columns = np.broadcast_arrays(rows, columns)
    stride = max(1, int(np.ceil(np.sqrt(len(flat) / MEASURED))))
    seen = raw_u16[::stride, ::stride].astype(np.float64) / 65535
    if np.median(seen[..., 1]) <= 0:
        raise UserError(
            f"{capture.path}: the median of its green channel is 0, so no gain can be set; take it off the sheet"
        )
    down_all = np.concatenate([(chosen // width + 0.5) / height, (rows.ravel() + 0.5) / small.shape[0]])
    across_all = np.concatenate([(chosen % width + 0.5) / width, (columns.ravel() + 0.5) / small.shape[1]])
    depth_rows = (down_all * depth.shape[0]).astype(np.intp)
    depth_columns = (across_all * depth.shape[1]).astype(np.intp)
    return Captures(
        pixels=flat[chosen][None],
        taps=small[rows, columns][None],
        blend=np.stack([down, across])[None],
        white_balance=np.asarray(white_balance, np.float64)[None],
        median=np.array([np.median(luminance(seen))]),
        depth_range=np.array([depth_range(depth)]),
        depth=relative(depth)[depth_rows, depth_columns][None],
        place=np.stack([down_all, across_all], -1).astype(np.float32)[None],
        names=[capture.name],
    )


def sample(
    captures: list[Capture], out: Path, settings: SynthesisSettings, network: Path | None = None, device: str = "cpu"
) -> None:
    """Decode the captures of one shard into `out`.

    Each finished batch is put into an unfinished folder beside `out` at once; the next run takes it from there.
    """
    from fujinsplat.capture.raw import read_raw
    from fujinsplat.synthesis.depth import DepthFiles, DepthNetwork

    depths = DepthFiles() if settings.depth == "files" else DepthNetwork(network, device)
    unfinished = out.with_name(f".{out.name}.unfinished")
    parts: list[Captures] = []
    batch = settings.depth_batch if settings.depth == "network" else 1
    for first in progress(range(0, len(captures), batch), "captures"):
        members = captures[first : first + batch]
        key = _key(members, settings)
        kept = unfinished / f"{first:05d}.safetensors"
        try:
            parts.append(Captures.load(kept, key))
            continue
        except (UserError, KeyError):
            pass
        for capture in members:
            if not capture.path.is_file():
                raise UserError(
                    f"{capture.path} does not exist; the sheet lists it as {capture.name}: add it or drop the row"
                )
        raws = [read_raw(capture.path, CaptureSettings()) for capture in members]
        maps = depths.maps(members, raws)
        kept_now = [
            keep(c, r.linear, r.white_balance, d, settings) for c, r, d in zip(members, raws, maps, strict=True)
        ]
        part = Captures.joined(kept_now)
        part.save(kept, key)
        parts.append(part)
    Captures.joined(parts).save(out)
    for file in sorted(unfinished.glob("*")):
        file.unlink()
    unfinished.rmdir()


def _key(members: list[Capture], settings: SynthesisSettings) -> str:
    """Changes with anything the kept part depends on."""
    own = settings.model_dump(include={"pixels", "summary", "seed", "depth", "depth_model", "depth_revision"})
    stats = [
        (c.name, str(c.path), c.path.stat().st_size, c.path.stat().st_mtime_ns) for c in members if c.path.exists()
    ]
    return hashlib.sha256(json.dumps([own, stats], sort_keys=True).encode()).hexdigest()
