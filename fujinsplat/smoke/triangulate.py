"""Points of the smoky views themselves: features of stretched pictures, triangulated with the known poses."""

import tempfile
from pathlib import Path

import numpy as np
from torch import Tensor

from fujinsplat.capture import Camera
from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError

LOW, HIGH = 1.0, 99.0  # percentiles of each channel that are stretched to black and white
LEAST = 100  # points: fewer carry no depth


def stretched(view: np.ndarray) -> np.ndarray:
    """A linear picture `[h, w, 3]` with the smoke's veil stretched away channel by channel: uint8, encoded."""
    low, high = np.percentile(view, (LOW, HIGH), axis=(0, 1))
    return np.rint(255 * encode(np.clip((view - low) / np.maximum(high - low, 1e-9), 0, 1))).astype(np.uint8)


def points_from_views(views: Tensor, cameras: list[Camera], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(xyz float32 `[N, 3]`, rgb uint8 `[N, 3]`) from `views [V, h, w, 3]` (linear) and their cameras.

    Colours are those of the hazy views, encoded: what a training starts from.
    """
    import pycolmap
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        pictures, database, out = Path(folder, "views"), Path(folder, "database.db"), Path(folder, "out")
        pictures.mkdir()
        out.mkdir()
        for view, camera in zip(views, cameras, strict=True):
            Image.fromarray(stretched(view.cpu().numpy())).save(pictures / f"{camera.stem}.png")
        model = _triangulated(pycolmap, pictures, database, out, cameras, seed)
        points = [model.points3D[key] for key in sorted(model.points3D)]
        names = {image.image_id: Path(image.name).stem for image in model.images.values()}
        where = [
            [(names[e.image_id], model.images[e.image_id].points2D[e.point2D_idx].xy) for e in point.track.elements]
            for point in points
        ]
    if len(points) < LEAST:
        raise UserError(
            f"only {len(points)} points were found in the smoky views; use the dataset's points, or photographs that "
            "overlap more"
        )
    index = {camera.stem: k for k, camera in enumerate(cameras)}
    shown = encode(views.clamp(0, 1)).cpu().numpy()
    xyz, rgb = np.stack([p.xyz for p in points]).astype(np.float32), np.empty((len(points), 3), np.uint8)
    height, width = shown.shape[1:3]
    for key, seen in enumerate(where):
        colours = [
            shown[index[stem], min(max(int(y), 0), height - 1), min(max(int(x), 0), width - 1)] for stem, (x, y) in seen
        ]
        rgb[key] = np.rint(255 * np.mean(colours, 0))
    return xyz, rgb


def _triangulated(pycolmap, pictures: Path, database: Path, out: Path, cameras: list[Camera], seed: int):
    """COLMAP's model of the points, the cameras held where they are."""
    pycolmap.set_random_seed(seed)
    quiet = pycolmap.logging.minloglevel
    pycolmap.logging.minloglevel = 2  # its progress; errors are raised
    try:
        pycolmap.extract_features(
            database, pictures, camera_mode=pycolmap.CameraMode.PER_IMAGE, device=pycolmap.Device.cpu,
            reader_options=pycolmap.ImageReaderOptions(camera_model="PINHOLE"),
        )  # fmt: skip
        pycolmap.match_exhaustive(database, device=pycolmap.Device.cpu)
        model = pycolmap.Reconstruction()
        known = {camera.stem: camera for camera in cameras}
        with pycolmap.Database.open(database) as opened:
            for image in opened.read_all_images():
                camera = known[Path(image.name).stem]
                lens = opened.read_camera(image.camera_id)
                lens.params = [camera.K[0, 0], camera.K[1, 1], camera.K[0, 2], camera.K[1, 2]]
                model.add_camera_with_trivial_rig(lens)
                pose = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.viewmat[:3, :3]), camera.viewmat[:3, 3])
                fresh = pycolmap.Image(name=image.name, camera_id=image.camera_id, image_id=image.image_id)
                model.add_image_with_trivial_frame(fresh, pose)
        return pycolmap.triangulate_points(model, database, pictures, out, refine_intrinsics=False)
    finally:
        pycolmap.logging.minloglevel = quiet
