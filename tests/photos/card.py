"""A camera card made of a demo scene: the smoky files alone, through a bent lens, under scrambled names."""

import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from fujinsplat.capture.layout import find_scene, part_views
from fujinsplat.capture.lens import Lens, colmap_camera
from fujinsplat.capture.poses import read_poses
from fujinsplat.capture.raw import read_raw
from fujinsplat.capture.resample import cubic
from fujinsplat.core.color import decode, encode
from fujinsplat.core.settings import CaptureSettings
from fujinsplat.demo.sensor import BLACK, WHITE, write_dng

BEND = -0.1
ZOOM = 1.06  # the bent picture's focal length over the straight one's: its corners lie within the straight picture


def bent_lens(width: int, height: int, focal: float) -> Lens:
    return Lens("SIMPLE_RADIAL", width, height, (ZOOM * focal, width / 2, height / 2, BEND))


def bend(linear: np.ndarray, focal: float) -> np.ndarray:
    """A pinhole's picture [H, W, 3] as the bent lens shows it, in linear light."""
    height, width = linear.shape[:2]
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    rays = colmap_camera(bent_lens(width, height, focal)).cam_from_img(np.stack([x.ravel(), y.ravel()], -1))
    places = (rays * focal + [width / 2, height / 2]).reshape(height, width, 2).astype(np.float32)
    return cubic(linear.astype(np.float32), places, 1, width, height, np.float32(1)).astype(np.float64)


def mosaic(linear: np.ndarray) -> np.ndarray:
    """Camera-linear [H, W, 3] as the counts of an RGGB sensor."""
    light = linear[..., 1].copy()
    light[0::2, 0::2], light[1::2, 1::2] = linear[0::2, 0::2, 0], linear[1::2, 1::2, 2]
    return np.rint(BLACK + np.clip(light, 0, 1) * (WHITE - BLACK)).astype(np.uint16)


def name_of(number: int) -> str:
    """Names as no sane person would choose them, in another order than the walk around the scene."""
    return [f"{{shot}} {number * 7 % 24:02d}", f"Küche'{number * 7 % 24:02d}\"", f"DSC{number * 7 % 24:05d}"][
        number % 3
    ]


def make_card(root: Path, scene: str, out: Path) -> dict[str, str]:
    """The source views of ROOT/SCENE as a card below `out`; their true stems by the names they have there."""
    found = find_scene(root, scene)
    views = part_views(found, "source")
    focal = next(iter(read_poses(found, (1, 1)).source.values()))
    relative = focal.K[0, 0] / focal.width
    names = {}
    for number, view in enumerate(views):
        folder = out / "DCIM" / f"{100 + number % 2}FUJIN"
        folder.mkdir(parents=True, exist_ok=True)
        raw = read_raw(view.raw, CaptureSettings(demosaic="DHT")).linear / 65535
        write_dng(folder / f"{name_of(number)}.DNG", mosaic(bend(raw, relative * raw.shape[1])))
        with Image.open(view.rgb) as image:
            rgb = decode(np.asarray(image) / 255.0)
        shown = np.rint(encode(bend(rgb, relative * rgb.shape[1])) * 255).astype(np.uint8)
        Image.fromarray(shown).save(folder / f"{name_of(number).lower()}.jpg", quality=95, subsampling=0)
        names[name_of(number)] = view.stem
    return names


def true_scene(root: Path, scene: str, out: Path) -> None:
    """The same bent pictures as a scene folder with the true poses, lens and held views. It brings no points: those are
    triangulated from the smoky views on both sides, so that poses are all that differs."""
    found = find_scene(root, scene)
    names = make_card(root, scene, out / "card")
    home = out / "data" / scene
    (home / "train").mkdir(parents=True)
    for file in (out / "card").rglob("*.*"):
        stem = next(stem for name, stem in names.items() if name.casefold() == file.stem.casefold())
        shutil.move(file, home / "train" / f"{stem}{file.suffix}")
    shutil.copytree(root / scene / "test", home / "test")
    shutil.copy(root / scene / "transforms_test.json", home)
    import json

    value = json.loads((root / scene / "transforms_train.json").read_text())
    value |= {"fl_x": ZOOM * value["fl_x"], "fl_y": ZOOM * value["fl_y"], "k1": BEND, "camera_model": "OPENCV"}
    value.pop("camera_angle_x")
    (home / "transforms_train.json").write_text(json.dumps(value))
    assert len(list((home / "train").iterdir())) == 2 * len(part_views(found, "source"))
