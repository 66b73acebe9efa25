"""`fujinsplat photos --quick` on a folder at camera size: how long a first look takes.

    python -m benchmarks photos [views] [times]     (from the project's folder; 24 views of 22 megapixels, some minutes)

The folder is a demo scene with RAW files of 1920x1280, more than structure from motion looks at, enlarged to the size
of a camera's files (`times` 3: RAW and JPEG of 5760x3840), so that decoding, resizing and finding poses cost what they
cost on real photographs. Beside the time on the clock stand the CPU seconds of each job, which a busy machine disturbs
less.
"""

import csv
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SCENE = "Kogarashi"
SIZE = {"width": 960, "height": 640}  # of the demo's camera pictures; its RAW has twice


def enlarged(linear: np.ndarray, times: int) -> np.ndarray:
    """[H, W, 3] with `times` the sides, smooth between the pixels."""
    from PIL import Image

    size = linear.shape[1] * times, linear.shape[0] * times
    planes = [
        np.asarray(Image.fromarray(linear[..., c].astype(np.float32)).resize(size, Image.Resampling.BICUBIC))
        for c in range(3)
    ]
    return np.clip(np.stack(planes, -1), 0, 1)


def write_folder(scene: Path, out: Path, times: int) -> None:
    """RAW and JPEG of the scene's source views, both `times` the RAW's sides, as a camera would write them."""
    from PIL import Image

    from fujinsplat.capture.raw import read_raw
    from fujinsplat.core.color import decode, encode
    from fujinsplat.core.settings import CaptureSettings
    from fujinsplat.demo.sensor import BLACK, WHITE, write_dng

    out.mkdir(parents=True)
    for raw in sorted((scene / "train").glob("*.dng")):
        linear = enlarged(read_raw(raw, CaptureSettings()).linear / 65535, times)
        light = linear[..., 1].copy()
        light[0::2, 0::2], light[1::2, 1::2] = linear[0::2, 0::2, 0], linear[1::2, 1::2, 2]
        write_dng(out / raw.name, np.rint(BLACK + light * (WHITE - BLACK)).astype(np.uint16))
        with Image.open(raw.with_suffix(".JPG")) as image:
            shown = enlarged(decode(np.asarray(image) / 255.0), linear.shape[1] // image.width)
        picture = np.rint(encode(shown.astype(np.float64)) * 255).astype(np.uint8)
        Image.fromarray(picture).save(out / f"{raw.stem}.JPG", quality=92)


def main() -> None:
    from fujinsplat.core.settings import DemoSettings
    from fujinsplat.demo import write_scene
    from fujinsplat.photos.run import Request, run

    numbers = [int(word) for word in sys.argv[2:] if word.isdecimal()]
    views, times = (*numbers, *(24, 3)[len(numbers) :])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scene(folder / "demo", SCENE, DemoSettings(source_views=views, **SIZE, external=1), 2)
        write_folder(folder / "demo" / SCENE, folder / "card", times)
        started = time.monotonic()
        run(Request(folder / "card", folder / "out", preset="quick"))
        clock = time.monotonic() - started
        print(
            f"{views} views of {2 * SIZE['width'] * times}x{2 * SIZE['height'] * times}: {clock:.0f} s from the folder "
            "to scene.ply and report.html"
        )
        for file in sorted((folder / "out" / "results" / "photos" / "benchmarks").rglob("*.tsv")):
            with file.open() as stream:
                row = next(csv.DictReader(stream, delimiter="\t"))
            print(f"  {'_'.join(file.parts[-3:-1]):24} {float(row['s']):7.1f} s  {float(row['cpu_time']):7.1f} s CPU")
