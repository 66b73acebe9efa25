"""`fujinsplat photos --quick` on a folder at camera size: how long a first look takes.

    python -m benchmarks.bench_photos [views] [times] [cores]     (from the project's folder; 24 views of 22 megapixels)

The folder is a demo scene whose RAW files have 1920x1280 pixels, more than twice what structure from motion looks at;
their light is enlarged to the size of a camera's sensor (`times` 3: 5760x3840) and photographed there once more, with
the noise of every single pixel, as RAW and as JPEG of full size, so that decoding, resizing and finding poses cost what
they cost on real photographs. Making the folder is not counted. Beside the time on the clock stand the CPU seconds of
each job, which a busy machine disturbs less.
"""

import csv
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SCENE = "Kogarashi"
SIZE = {"width": 960, "height": 640}  # of the demo's camera pictures; its RAW has twice
GRAIN = 2.0  # what is left of the sensor's noise in a JPEG, of 255


def write_folder(scene: Path, out: Path, times: int) -> None:
    """RAW and JPEG of the scene's source views, both `times` the RAW's sides, as a camera would write them."""
    from PIL import Image

    from fujinsplat.capture.raw import read_raw
    from fujinsplat.core.settings import CaptureSettings
    from fujinsplat.demo.sensor import BLACK, FULL_WELL, READ_NOISE, WHITE, write_dng

    out.mkdir(parents=True)
    for number, raw in enumerate(sorted((scene / "train").glob("*.dng"))):
        rng = np.random.default_rng(number)
        linear = read_raw(raw, CaptureSettings()).linear.astype(np.float32) / 65535
        size = linear.shape[1] * times, linear.shape[0] * times
        planes = [np.asarray(Image.fromarray(linear[..., c]).resize(size, Image.Resampling.BICUBIC)) for c in range(3)]
        light = planes[1].copy()
        light[0::2, 0::2], light[1::2, 1::2] = planes[0][0::2, 0::2], planes[2][1::2, 1::2]
        electrons = np.maximum(light, 0) * np.float32(FULL_WELL)
        electrons += np.sqrt(electrons + READ_NOISE**2) * rng.standard_normal(light.shape, np.float32)
        counts = np.rint(BLACK + electrons * ((WHITE - BLACK) / FULL_WELL))
        write_dng(out / raw.name, np.clip(counts, 0, WHITE).astype(np.uint16))
        with Image.open(raw.with_suffix(".JPG")) as image:
            shown = np.asarray(image.resize(size, Image.Resampling.BICUBIC), np.float32)
        grain = GRAIN * rng.standard_normal((*shown.shape[:2], 1), np.float32)
        picture = Image.fromarray(np.clip(shown + grain, 0, 255).astype(np.uint8))
        picture.save(out / f"{raw.stem}.JPG", quality=95)


def main() -> None:
    from fujinsplat.core.settings import DemoSettings
    from fujinsplat.demo import write_scene
    from fujinsplat.photos.run import Request, run

    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    views, times, cores = (*numbers, *(24, 3, os.cpu_count())[len(numbers) :])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scene(folder / "demo", SCENE, DemoSettings(source_views=views, **SIZE, external=1), cores)
        write_folder(folder / "demo" / SCENE, folder / "card", times)
        started = time.monotonic()
        run(Request(folder / "card", folder / "out", preset="quick", cores=cores))
        clock = time.monotonic() - started
        size = f"{2 * SIZE['width'] * times}x{2 * SIZE['height'] * times}"
        print(f"{views} views of {size}, {cores} cores: {clock:.0f} s from the folder to scene.ply and report.html")
        for file in sorted((folder / "out" / "results" / "photos" / "benchmarks").rglob("*.tsv")):
            with file.open() as stream:
                row = next(csv.DictReader(stream, delimiter="\t"))
            print(f"  {'_'.join(file.parts[-3:-1]):24} {float(row['s']):7.1f} s  {float(row['cpu_time']):7.1f} s CPU")


if __name__ == "__main__":
    main()
