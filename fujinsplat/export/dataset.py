"""The cleared views of a row as a dataset that other programs take as it is.

`images/{stem}.png`, the cameras as a COLMAP model in `sparse/0` (pinholes: the pictures are straight), and the same as
nerfstudio's `transforms.json` with `sparse_pc.ply`. All three speak of one frame, the scene's own. Portraits that lie
as the sensor did are turned upright, picture and camera.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fujinsplat.capture import Camera, read_cameras, read_points
from fujinsplat.capture.cameras import OPENGL_TO_OPENCV
from fujinsplat.capture.points import write_points
from fujinsplat.core.color import decode
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_folder
from fujinsplat.core.progress import progress
from fujinsplat.develop.store import Developed
from fujinsplat.views.store import Views


def cleared(views: Path, developed: Path) -> Iterator[tuple[str, np.ndarray]]:
    """(stem, float32 [H, W, 3] encoded) of every view of a row: its front's picture under the view's colour action."""
    import torch

    from fujinsplat import flow

    pictures, actions = Views(views), Developed(developed)
    for stem in actions.stems:
        encoded = torch.from_numpy(pictures.encoded(stem).astype(np.float32) / 255)
        action = torch.from_numpy(actions.action(stem))
        if bool(action.any()):
            encoded = flow.apply(encoded[None], action[None], actions.K, actions.M)[0]
        yield stem, encoded.clamp(0, 1).numpy()


def linear_light(source: Path, smoke: Path | None) -> Callable[[str, np.ndarray], np.ndarray]:
    """A function of (stem, encoded picture) that gives the view's cleared light, linear sRGB float [H, W, 3].

    With an estimate of the smoke it is the RAW itself, cleared, with the camera's white balance and matrix; the
    pictures of other rows have gone through a rendering, which is only undone.
    """
    if smoke is None:
        return lambda _, encoded: decode(encoded.astype(np.float64))
    import torch

    from fujinsplat.capture import SourceViews
    from fujinsplat.smoke import Smoke

    views, estimate = SourceViews(source), Smoke.load(smoke)

    def light(stem: str, _: np.ndarray) -> np.ndarray:
        hazy = torch.from_numpy(views.raw(stem) * views.white_balance(stem).astype(np.float32))
        balanced = estimate.clear_of(estimate.stems.index(stem), hazy).numpy()
        matrix = views.camera_matrix(stem)
        return balanced if matrix is None else balanced @ matrix.T

    return light


def write_dataset(
    views: Path,
    developed: Path,
    cameras: Path,
    points: Path,
    out: Path,
    linear: Callable[[str, np.ndarray], np.ndarray] | None = None,
) -> int:
    """The dataset into the folder `out`; how many views it has. `linear`: 16-bit TIFF files of this light as well."""
    from PIL import Image

    known = {camera.stem: camera for camera in read_cameras(cameras)}
    xyz, rgb = read_points(points)
    with atomic_folder(out, (".png", ".tif", ".bin", ".ply", ".json")) as folder:
        (folder / "images").mkdir()
        written: list[Camera] = []
        for stem, encoded in progress(cleared(views, developed), "cleared views", unit="view"):
            camera = known.get(stem)
            if camera is None or encoded.shape[:2] != (camera.height, camera.width):
                raise UserError(f"{cameras} does not fit view {stem!r} of {views}; build both again")
            shown = np.rot90(np.rint(encoded * 255).astype(np.uint8), camera.turns)
            Image.fromarray(shown).save(folder / "images" / f"{stem}.png")
            if linear is not None:
                _write_linear(folder / "linear" / f"{stem}.tif", np.rot90(linear(stem, encoded), camera.turns))
            written.append(camera.upright())
        write_model(folder / "sparse" / "0", written, xyz, rgb)
        write_points(folder / "sparse_pc.ply", xyz, rgb)
        (folder / "transforms.json").write_text(json.dumps(transforms(written), indent=1) + "\n")
    return len(written)


def _write_linear(path: Path, linear: np.ndarray) -> None:
    import tifffile

    path.parent.mkdir(exist_ok=True)
    values = np.rint(np.clip(linear, 0, 1) * 65535).astype(np.uint16)
    tifffile.imwrite(path, values, photometric="rgb", compression=None, metadata=None, description="linear sRGB")


def write_model(folder: Path, cameras: list[Camera], xyz: np.ndarray, rgb: np.ndarray) -> None:
    """A COLMAP model (binary) of pinhole cameras and points without tracks."""
    import pycolmap

    folder.mkdir(parents=True)
    model = pycolmap.Reconstruction()
    lenses: dict[tuple, int] = {}
    for number, camera in enumerate(cameras, start=1):
        params = tuple(float(camera.K[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2)))
        key = (camera.width, camera.height, *params)
        if key not in lenses:
            lenses[key] = len(lenses) + 1
            model.add_camera_with_trivial_rig(
                pycolmap.Camera(
                    model="PINHOLE", width=key[0], height=key[1], params=list(params), camera_id=lenses[key]
                )
            )
        image = pycolmap.Image(image_id=number, name=f"{camera.stem}.png", camera_id=lenses[key])
        motion = pycolmap.Rigid3d(pycolmap.Rotation3d(camera.viewmat[:3, :3]), camera.viewmat[:3, 3])
        model.add_image_with_trivial_frame(image, motion)
    for place, colour in zip(xyz.astype(np.float64), rgb, strict=True):
        model.add_point3D(place, pycolmap.Track(), colour)
    model.write_binary(str(folder))


def transforms(cameras: list[Camera]) -> dict:
    """nerfstudio's transforms.json: camera-to-world with OpenGL axes, intrinsics per frame."""
    frames = [
        {
            "file_path": f"images/{camera.stem}.png",
            "fl_x": camera.K[0, 0],
            "fl_y": camera.K[1, 1],
            "cx": camera.K[0, 2],
            "cy": camera.K[1, 2],
            "w": camera.width,
            "h": camera.height,
            "transform_matrix": (np.linalg.inv(camera.viewmat) @ OPENGL_TO_OPENCV).tolist(),
        }
        for camera in cameras
    ]
    return {"camera_model": "PINHOLE", "ply_file_path": "sparse_pc.ply", "frames": frames}
