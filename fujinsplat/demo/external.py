"""Smoke-free captures of other rooms for the synthesis stage: a DNG and a depth map each, and a sheet of them all."""

import csv
from pathlib import Path

import numpy as np

from fujinsplat.core.color import luminance
from fujinsplat.core.files import atomic_folder
from fujinsplat.core.settings import DemoSettings
from fujinsplat.demo import sensor
from fujinsplat.demo.parallel import each
from fujinsplat.demo.render import PAD, focus, look
from fujinsplat.demo.rooms_external import other_room, viewpoints
from fujinsplat.demo.weather import stream

VIEWS = 2  # captures per room


def write_external(folder: Path, settings: DemoSettings, threads: int = 1) -> None:
    """Write `folder`, whole or not at all: NAME.dng, NAME.depth.npy (float32 metric z-depth `[H, W]`), captures.csv."""
    seed, count = settings.seed, settings.external
    names = [f"room{k // VIEWS + 1:03d}_{k % VIEWS + 1}" for k in range(count)]

    with atomic_folder(folder) as here:

        def visit(room: int) -> None:
            title = f"external {room}"
            world, low, high = other_room(stream(seed, title, "room"))
            rng = stream(seed, title, "poses")
            cameras = viewpoints(world, low, high, VIEWS, settings.width, settings.height, rng)
            for name, camera in zip(names[room * VIEWS : (room + 1) * VIEWS], cameras, strict=False):
                radiance, depth = look(world, camera)
                clean = focus(sensor.camera_rgb(radiance), 2)
                # exposures as different as a careless photographer's: two stops either way
                middle = 0.05 * 2.0 ** rng.uniform(-1.6, 1.3)
                clean = clean * np.float32(middle / max(float(np.median(luminance(clean))), 1e-6))
                sensor.write_dng(here / f"{name}.dng", sensor.expose(clean, stream(seed, title, name)))
                np.save(here / f"{name}.depth.npy", depth[PAD:-PAD:2, PAD:-PAD:2])

        each(visit, range((count + VIEWS - 1) // VIEWS), threads, "external rooms")
        with (here / "captures.csv").open("w", newline="") as stream_:
            writer = csv.writer(stream_, lineterminator="\n")
            writer.writerow(("name", "path", "split"))
            writer.writerows((name, f"{name}.dng", "train") for name in names)
