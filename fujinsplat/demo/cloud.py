"""What structure from motion through smoke would find: a noisy, uneven point cloud with tracks and outliers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fujinsplat.demo.render import Camera, World, seen

OUTLIERS = 0.03
PIXEL_NOISE = 0.4
DETECTED = 0.7  # not every view's detector fires on a point it could see
ROUNDS = 20


@dataclass(frozen=True)
class Cloud:
    """`xyz [n, 3]` and the camera pictures' `rgb [n, 3]`; `track[v]` are the points view v observes, `at[v]` where."""

    xyz: np.ndarray
    rgb: np.ndarray
    track: list[np.ndarray]
    at: list[np.ndarray]


def project(camera: Camera, xyz: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixel positions `[n, 2]` (pixel centres at +0.5) and whether they lie in the picture, in front of the camera."""
    local = (xyz - camera.position) @ camera.rotation
    z = local[:, 2]
    safe = np.where(z > 1e-3, z, 1.0)
    uv = local[:, :2] / safe[:, None] * camera.focal + 0.5 * np.array([camera.width, camera.height])
    inside = (z > 0.1) & (uv > 0.5).all(1) & (uv < np.array([camera.width, camera.height]) - 0.5).all(1)
    return uv, inside


def _observed(world: World, camera: Camera, xyz: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixel positions and whether the view observes each point; a mismatch is "seen" whatever stands before it."""
    uv, inside = project(camera, xyz)
    check = inside & ~wrong
    inside[check] = seen(*world.arrays[:4], camera.position, xyz[check])
    return uv, inside


def _corners(picture: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Pixels `[count, 2]` (x, y) drawn by local contrast: features live where there is something to see."""
    grey = picture.astype(float).mean(-1)
    dy, dx = np.gradient(grey)
    weight = np.hypot(dx, dy) + 0.4
    weight[:2], weight[-2:], weight[:, :2], weight[:, -2:] = 0, 0, 0, 0
    order = rng.choice(grey.size, count, p=(weight / weight.sum()).ravel())
    return np.stack([order % grey.shape[1], order // grey.shape[1]], 1)


def find(world: World, cameras: list[Camera], pictures: list[np.ndarray], depths: list[np.ndarray], count: int,
         rng: np.random.Generator) -> Cloud:  # fmt: skip
    """Points on surfaces, seen by two source views or more.

    `pictures` are the smoky camera RGB, `depths [H, W]` the z-depth at pixel centres. Depth noise grows with the square
    of the distance, as triangulation's does; a few points are mismatches somewhere else along their ray.
    """
    total = round(count * (1 + OUTLIERS))
    chosen, colours, mistaken = [], [], []
    for _ in range(ROUNDS):
        for view, camera in enumerate(cameras):
            pixels = _corners(pictures[view], rng, max(8, int(1.3 * total / len(cameras))))
            z = depths[view][pixels[:, 1], pixels[:, 0]].astype(float)
            z = z + rng.normal(size=z.shape) * 0.0025 * z * z
            wrong = rng.uniform(size=z.shape) < OUTLIERS / (1 + OUTLIERS)
            z = np.where(wrong, z * np.exp(rng.normal(0, 0.35, z.shape)), z)
            spot = pixels + rng.uniform(0, 1, pixels.shape)
            plane = (spot - 0.5 * np.array([camera.width, camera.height])) / camera.focal
            xyz = camera.position + (np.concatenate([plane, np.ones((len(z), 1))], 1) * z[:, None]) @ camera.rotation.T
            keep = sum(_observed(world, other, xyz, wrong)[1].astype(int) for other in cameras) >= 2
            chosen.append(xyz[keep])
            colours.append(pictures[view][pixels[keep, 1], pixels[keep, 0]])
            mistaken.append(wrong[keep])
        if sum(map(len, chosen)) >= total:
            break
    xyz, rgb, wrong = np.concatenate(chosen), np.concatenate(colours), np.concatenate(mistaken)
    pick = np.sort(rng.permutation(len(xyz))[:total])
    xyz, rgb, wrong = xyz[pick], rgb[pick], wrong[pick]
    track, at = [], []
    for camera in cameras:
        uv, inside = _observed(world, camera, xyz, wrong)
        inside &= rng.uniform(size=len(xyz)) < DETECTED
        track.append(np.flatnonzero(inside))
        at.append(uv[inside] + rng.normal(0, PIXEL_NOISE, (inside.sum(), 2)))
    return Cloud(xyz, rgb, track, at)


def write_ply(path: Path, cloud: Cloud) -> None:
    """x y z red green blue."""
    from plyfile import PlyData, PlyElement

    fields = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("red", "u1"), ("green", "u1"), ("blue", "u1")]
    table = np.empty(len(cloud.xyz), fields)
    for axis, name in enumerate("xyz"):
        table[name] = cloud.xyz[:, axis]
    for channel, name in enumerate(("red", "green", "blue")):
        table[name] = cloud.rgb[:, channel]
    PlyData([PlyElement.describe(table, "vertex")]).write(path)


def write_colmap(folder: Path, cloud: Cloud, cameras: list[Camera], names: list[str]) -> None:
    """A COLMAP model of all cameras (one PINHOLE camera); those beyond the tracks have a pose and no observations."""
    import pycolmap

    first = cameras[0]
    model = pycolmap.Reconstruction()
    pinhole = pycolmap.Camera(
        camera_id=1, model="PINHOLE", width=first.width, height=first.height,
        params=[first.focal, first.focal, first.width / 2, first.height / 2],
    )  # fmt: skip
    model.add_camera_with_trivial_rig(pinhole)
    members: list[list[tuple[int, int]]] = [[] for _ in cloud.xyz]
    for number, (camera, name) in enumerate(zip(cameras, names, strict=True), 1):
        tracked = number <= len(cloud.track)
        keypoints = cloud.at[number - 1] if tracked else np.zeros((0, 2))
        rotation = camera.rotation.T
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(rotation), -rotation @ camera.position)
        image = pycolmap.Image(name=name, keypoints=keypoints, camera_id=1, image_id=number)
        model.add_image_with_trivial_frame(image, pose)
        if tracked:
            for index, point in enumerate(cloud.track[number - 1]):
                members[point].append((number, index))
    for xyz, rgb, observed in zip(cloud.xyz, cloud.rgb, members, strict=True):
        if len(observed) >= 2:
            track = pycolmap.Track([pycolmap.TrackElement(*pair) for pair in observed])
            model.add_point3D(xyz, track, rgb)
    model.update_point_3d_errors()
    folder.mkdir(parents=True)
    model.write_binary(folder)
