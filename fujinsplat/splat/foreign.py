"""The adapter of other people's radiance fields: a folder with views and poses out, two folders of renders in.

Out goes what NeRF's Blender loaders read: `transforms_{train,test}.json` and `{train,test}/{stem}.png`. Those loaders
take the last channel as alpha, so pictures are RGBA with an alpha of one throughout. They open the pictures of the test
poses as well: these are grey, for held views leave this project for nobody.

In comes, for every source and held pose, `clean/{stem}.png` and `medium/{stem}.png`: without and with the medium.
"""

import json
import math
import shlex
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fujinsplat.capture import Camera, read_cameras
from fujinsplat.capture.cameras import OPENGL_TO_OPENCV
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, write_json, write_tensors
from fujinsplat.core.progress import say
from fujinsplat.restore.external import filled, read_restored, run_program
from fujinsplat.views.store import Views

GREY = 127
KINDS = ("clean", "medium")


def run(inputs, outputs, own) -> None:
    """One scene: export, run the program, keep its pictures where a model would be."""
    source, held = (read_cameras(inputs["cameras"], part) for part in ("source", "held"))
    scene = Path(inputs["cameras"]).absolute().parent.name  # capture/{scene}/cameras.json
    started = time.monotonic()
    with TemporaryDirectory() as name:
        given, made = Path(name) / "input", Path(name) / "output"
        export(given, Views(inputs["views"]), source, held)
        for kind in KINDS:
            (made / kind).mkdir(parents=True)
        parts = filled(own.command, {"{input}": str(given), "{output}": str(made), "{scene}": scene})
        who = f"the program {Path(parts[0]).name} of scene {scene}"
        run_program(parts, own.directory, own.minutes, who)
        wanted = {camera.stem: (camera.height, camera.width) for camera in (*source, *held)}
        pictures = {kind: read_restored(made / kind, wanted, who, f"{{output}}/{kind}") for kind in KINDS}
    tensors = {f"{kind}/{stem}": p for kind, found in pictures.items() for stem, p in found.items()}
    write_tensors(outputs.model, tensors, {"colour": "pictures", "command": own.command})
    _write_nothing(outputs, len(source), time.monotonic() - started)
    say(f"{len(wanted)} poses, with and without medium, from {shlex.join(parts)}")


def export(folder: Path, views: Views, source: list[Camera], held: list[Camera]) -> None:
    """Poses and views as a Blender-style dataset; held views are grey."""
    from PIL import Image

    for part, cameras in (("train", source), ("test", held)):
        (folder / part).mkdir(parents=True)
        for camera in cameras:
            grey = np.full((camera.height, camera.width, 3), GREY, np.uint8)
            picture = views.encoded(camera.stem) if part == "train" else grey
            opaque = np.full((*picture.shape[:2], 1), 255, np.uint8)
            Image.fromarray(np.concatenate([picture, opaque], -1)).save(folder / part / f"{camera.stem}.png")
        write_json(folder / f"transforms_{part}.json", transforms(part, cameras))


def transforms(part: str, cameras: list[Camera]) -> dict:
    """One transforms file: OpenGL camera-to-world poses; intrinsics once, and again for each frame."""
    frames = []
    for camera in cameras:
        pose = np.linalg.inv(camera.viewmat) @ OPENGL_TO_OPENCV
        frames.append({"file_path": f"{part}/{camera.stem}", "transform_matrix": pose.tolist(), **_lens(camera)})
    first = _lens(cameras[0]) if cameras else {}
    angle = 2 * math.atan(first["w"] / (2 * first["fl_x"])) if cameras else 0.0
    return {"camera_angle_x": angle, **first, "frames": frames}


def _lens(camera: Camera) -> dict:
    K = camera.K
    lens = {"fl_x": K[0, 0], "fl_y": K[1, 1], "cx": K[0, 2], "cy": K[1, 2]}
    return {**{name: float(value) for name, value in lens.items()}, "w": camera.width, "h": camera.height}


def _write_nothing(outputs, views: int, seconds: float) -> None:
    """The files of a training that has no Gaussians: an empty PLY, a log of one line, no reconciliation."""
    import torch

    from fujinsplat.splat.model import Gaussians
    from fujinsplat.splat.ply import write_ply

    shapes = {"means": (0, 3), "quats": (0, 4), "scales": (0, 3), "opacities": (0,), "sh0": (0, 1, 3), "shN": (0, 0, 3)}
    empty = Gaussians({name: torch.zeros(shape) for name, shape in shapes.items()})
    write_ply(outputs.ply, empty, ("a radiance field of another program: no Gaussians",))
    entry = {"iteration": 0, "gaussians": 0, "views": views, "seconds": round(seconds, 2)}
    with atomic_file(outputs.log) as temporary:
        temporary.write_text(json.dumps(entry) + "\n")
    write_json(outputs.reconciled, {"delta": False, "alpha": {}, "residual": 0.0})


def stored_pictures(path: Path, kind: str) -> dict[str, np.ndarray] | None:
    """The pictures that a file keeps in place of a model, by stem; None when it is a model."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            if (file.metadata() or {}).get("colour") != "pictures":
                return None
            names = [name for name in file.keys() if name.startswith(f"{kind}/")]
            return {name.removeprefix(f"{kind}/"): file.get_tensor(name) for name in names}
    except (FileNotFoundError, SafetensorError, OSError):
        return None  # the reader of models says what is wrong


def copy_folder(pictures: dict[str, np.ndarray], stems: list[str], path: Path, out: Path) -> int:
    """One `{stem}.png` per wanted pose into `out`, which appears whole."""
    from PIL import Image

    from fujinsplat.core.files import atomic_folder

    missing = [stem for stem in stems if stem not in pictures]
    if missing:
        raise UserError(f"{path} holds no picture of {missing[0]!r}; only held and source poses were rendered")
    with atomic_folder(out, (".png",)) as folder:
        for stem in stems:
            Image.fromarray(pictures[stem]).save(folder / f"{stem}.png")
    return len(stems)
