"""One scene folder in RealX3D's layout: smoky source views, clean twins, clean held views, poses, points."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fujinsplat.core.color import luminance
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_folder, write_json
from fujinsplat.core.settings import DemoSettings
from fujinsplat.demo import camera as maker
from fujinsplat.demo import cloud, poses, sensor
from fujinsplat.demo.parallel import each
from fujinsplat.demo.render import PAD, Camera, World, focus, look
from fujinsplat.demo.rooms import living_room
from fujinsplat.demo.sensor import PHOTOSITES
from fujinsplat.demo.smoke import Air, Drift, through
from fujinsplat.demo.weather import Weather, contrasts, measure, stream, weather

METER = 64  # width of the small pictures that exposure and smoke are set by


@dataclass(frozen=True)
class Session:
    """What a capture session fixes before the first picture: poses, exposure, air and contrast of each source view."""

    world: World
    source: list[Camera]
    held: list[Camera]
    gain: float
    airs: list[Air]
    contrasts: np.ndarray


def _settle(
    air: Air, camera: Camera, clean: np.ndarray, depth: np.ndarray, target: float, samples: float = 1
) -> tuple[Air, np.ndarray]:
    """The air scaled so that the fitted contrast of these `samples` per pixel is `target`, and the fitted pivot `[3]`.

    The contrast falls steadily with density, nearly as its exponential: false position on (density, log contrast).
    """

    def fitted(density: float) -> tuple[float, np.ndarray]:
        hazy = through(air.scaled(density), camera, clean, depth, samples, 0)
        return measure(np.minimum(hazy, 1), np.minimum(clean, 1))

    goal = np.log(target)
    low, at_low, high = 0.0, 0.0, 1.0
    t, pivot = fitted(high)
    while np.log(max(t, 1e-3)) > goal and high < 1e6:
        low, at_low, high = high, np.log(t), 2 * high
        t, pivot = fitted(high)
    at_high = np.log(max(t, 1e-3))
    density = high
    for _ in range(8):
        if abs(t - target) < 2e-3:
            break
        density = low + (high - low) * min(max((at_low - goal) / (at_low - at_high), 0.05), 0.95)
        t, pivot = fitted(density)
        if t > target:
            low, at_low = density, np.log(t)
        else:
            high, at_high = density, np.log(max(t, 1e-3))
    return air.scaled(density), pivot


def _meter(camera: Camera) -> Camera:
    """The same view as a small picture."""
    scale = min(1.0, METER / camera.width)
    width, height = round(camera.width * scale), round(camera.height * scale)
    return Camera(camera.position, camera.rotation, camera.focal * width / camera.width, width, height)


def _preview(world: World, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Clean camera RGB `[h, w, 3]` and z-depth `[h, w]` of a small picture, as sharp as a large one."""
    radiance, depth = look(world, camera, 1, 0)
    return sensor.camera_rgb(radiance), depth


def stage(name: str, settings: DemoSettings) -> tuple[World, list[Camera], list[Camera]]:
    """The room with its source and held cameras."""
    world, target = living_room(stream(settings.seed, name, "room"))
    rng = stream(settings.seed, name, "poses")
    size = (settings.width, settings.height)
    source = poses.sweep(target, settings.source_views, *size, rng)
    return world, source, poses.between(target, settings.held_views, *size, rng)


def prepare(name: str, settings: DemoSettings, threads: int) -> Session:
    """Build the room, place the cameras, expose, and fill the air."""
    seed = settings.seed
    world, source, held = stage(name, settings)
    row: Weather = weather(name, seed).varied(settings.thickness, settings.light)

    meters = [_meter(c) for c in source]
    previews = each(lambda c: _preview(world, c), meters, threads, f"{name}: exposure")
    gain = row.exposure / float(np.median([np.median(luminance(clean)) for clean, _ in previews]))
    previews = [(clean * np.float32(gain), depth) for clean, depth in previews]

    rng = stream(seed, name, "smoke")
    drift = Drift(world, rng, front=settings.bank, back=settings.haze)
    targets = contrasts(row, len(source), rng)
    times = np.linspace(0, 1, len(source))
    level = np.array([row.airlight[0], 1.0, row.airlight[1]])
    wanted = level / level.mean() * row.ratio * row.exposure
    colour = wanted
    airs = [drift.at(time, colour) for time in times]
    # the fitted pivot leans towards the room's own colours; further rounds take that back
    for _ in range(3):
        airs = [replace(air, colour=colour) for air in airs]
        settled = each(
            lambda job: _settle(*job), zip(airs, meters, *zip(*previews, strict=True), targets, strict=True), threads,
            f"{name}: smoke",
        )  # fmt: skip
        airs = [air for air, _ in settled]
        colour = colour * np.clip(wanted / np.median([pivot for _, pivot in settled], 0), 0.8, 1.25)
    return Session(world, source, held, gain, airs, targets)


def _refine(session: Session, k: int, clean: np.ndarray, depth: np.ndarray) -> Air:
    """The air of source view k, settled once more on every few photosites of the picture itself."""
    view = session.source[k]
    stride = (PHOTOSITES * view.width // (2 * METER)) | 1
    some = np.s_[stride // 2 :: stride, stride // 2 :: stride]
    few = np.ascontiguousarray(clean[some]), np.ascontiguousarray(depth[PAD:-PAD, PAD:-PAD][some])
    return _settle(session.airs[k], view, *few, session.contrasts[k], PHOTOSITES / stride)[0]


def _capture(folder: Path, stem: str, camera_linear: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Expose, write STEM.dng and STEM.JPG, give the camera's picture."""
    mosaic = sensor.expose(camera_linear, rng, noise)
    picture = maker.develop(mosaic)
    sensor.write_dng(folder / f"{stem}.dng", mosaic)
    maker.write_jpeg(folder / f"{stem}.JPG", picture)
    return picture


def write_scene(root: Path, name: str, settings: DemoSettings, threads: int = 1) -> None:
    """Write `root/name`, whole or not at all. Its content depends on the name and the settings alone."""
    if name in ("", ".", "..", "external") or "/" in name:
        raise UserError(f"{name!r} cannot name a scene folder; choose a plain name other than external")
    with atomic_folder(root / name) as folder:
        session = prepare(name, settings, threads)
        sources, helds = len(session.source), len(session.held)
        stems = [f"{k + 1:04d}" for k in range(sources + helds)]
        for part in ("train", "val", "test"):
            (folder / part).mkdir()

        def shoot(k: int):
            view = (session.source + session.held)[k]
            radiance, depth = look(session.world, view, PHOTOSITES)
            clean = sensor.camera_rgb(radiance) * np.float32(session.gain)
            part = "val" if k < sources else "test"
            sharp = focus(clean)
            _capture(folder / part, stems[k], sharp, settings.noise, stream(settings.seed, name, f"{part} {stems[k]}"))
            if k >= sources:
                return None
            hazy = through(_refine(session, k, sharp, depth), view, clean, depth, PHOTOSITES, PAD)
            rng = stream(settings.seed, name, f"train {stems[k]}")
            picture = _capture(folder / "train", stems[k], focus(hazy), settings.noise, rng)
            return picture, depth[PAD:-PAD:2, PAD:-PAD:2]

        shots = each(shoot, range(sources + helds), threads, f"{name}: pictures")[:sources]
        pictures, depths = zip(*shots, strict=True)
        rng = stream(settings.seed, name, "points")
        points = cloud.find(session.world, session.source, list(pictures), list(depths), settings.points, rng)
        cloud.write_ply(folder / "point3d.ply", points)
        names = [f"{part}/{s}.JPG" for part, s in zip(["train"] * sources + ["test"] * helds, stems, strict=True)]
        cloud.write_colmap(folder / "sparse" / "0", points, session.source + session.held, names)
        write_json(folder / "transforms_train.json", poses.transforms(session.source, stems[:sources], "train"))
        write_json(folder / "transforms_val.json", poses.transforms(session.source, stems[:sources], "val"))
        write_json(folder / "transforms_test.json", poses.transforms(session.held, stems[sources:], "test"))
