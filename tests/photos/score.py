"""Held views of the demo seen by a scene whose poses were found: the two worlds are laid on one another first."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from fujinsplat.capture.cameras import Camera


def centres(cameras: list[Camera]) -> np.ndarray:
    return np.stack([np.linalg.inv(camera.viewmat)[:3, 3] for camera in cameras])


def lay_on(true: list[Camera], found: list[Camera]) -> tuple[float, np.ndarray, np.ndarray]:
    """(scale, rotation, translation) that take the true world to the found one, from cameras of the same views.

    Rotations decide the turn, which camera centres along an arc leave open; centres decide size and place."""
    turns = sum(f.viewmat[:3, :3].T @ t.viewmat[:3, :3] for t, f in zip(true, found, strict=True))
    u, _, vt = np.linalg.svd(turns)
    rotation = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    a, b = centres(true), centres(found)
    a0, b0 = (a - a.mean(0)) @ rotation.T, b - b.mean(0)
    scale = float((a0 * b0).sum() / (a0**2).sum())
    return scale, rotation, b.mean(0) - scale * rotation @ a.mean(0)


def errors(true: list[Camera], found: list[Camera]) -> tuple[float, float]:
    """(median turn in degrees, median distance of centres over the cameras' spread) after laying one on the other."""
    scale, rotation, shift = lay_on(true, found)
    a, b = scale * centres(true) @ rotation.T + shift, centres(found)
    cosines = [
        (np.trace(f.viewmat[:3, :3].T @ t.viewmat[:3, :3] @ rotation.T) - 1) / 2
        for t, f in zip(true, found, strict=True)
    ]
    spread = np.linalg.norm(b - b.mean(0), axis=1).max()
    turned = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    return float(np.median(turned)), float(np.median(np.linalg.norm(a - b, axis=1)) / spread)


def moved(camera: Camera, motion: tuple[float, np.ndarray, np.ndarray]) -> Camera:
    """A camera of the true world in the found one."""
    scale, rotation, shift = motion
    pose = np.linalg.inv(camera.viewmat)
    pose[:3, 3] = scale * rotation @ pose[:3, 3] + shift
    pose[:3, :3] = rotation @ pose[:3, :3]
    return replace(camera, viewmat=np.linalg.inv(pose))


def held_psnr(model: Path, held: list[Camera], pictures: Path) -> float:
    """Mean PSNR of renders at `held` against `pictures`/{stem}.JPG: of a trained model, or of a PLY as viewers show
    it."""
    from fujinsplat.splat.export import viewer_render
    from fujinsplat.splat.model import Gaussians
    from fujinsplat.splat.ply import read_ply
    from fujinsplat.splat.render import render_encoded

    exported, values = model.suffix == ".ply", []
    gaussians, render = (read_ply(model), viewer_render) if exported else (Gaussians.load(model), render_encoded)
    for camera in held:
        with Image.open(pictures / f"{camera.stem}.JPG") as image:
            reference = np.asarray(image) / 255.0
        rendered = render(gaussians, camera.scaled(reference.shape[1], reference.shape[0])).detach().numpy()
        values.append(-10 * np.log10(((rendered - reference) ** 2).mean()))
    return float(np.mean(values))


def names_in(arranged: Path) -> dict[str, str]:
    """The file names on the card (without suffix) by the stems they were given."""
    import os

    return {link.stem: Path(os.readlink(link)).stem for link in (arranged / "train").iterdir()}


def found_and_true(cameras: list[Camera], arranged: Path, card: dict[str, str], true: dict[str, Camera]):
    """The found cameras and the true ones of the same views, in one order."""
    given = {name.casefold(): stem for name, stem in card.items()}
    own = {stem: given[name.casefold()] for stem, name in names_in(arranged).items()}
    return [true[own[camera.stem].casefold()] for camera in cameras], cameras
