"""`fujinsplat smoke show`: an estimate as files that a person can judge."""

from pathlib import Path

import numpy as np

from fujinsplat.capture import read_cameras
from fujinsplat.core.style import save
from fujinsplat.smoke import pairs
from fujinsplat.smoke.depth import ray_lengths
from fujinsplat.smoke.draw import draw, draw_airlight
from fujinsplat.smoke.estimation import Reduced
from fujinsplat.smoke.light import hazy_light
from fujinsplat.smoke.model import Smoke
from fujinsplat.smoke.settings import SmokeSettings


def draw_smoke(path: Path, source: Path, cameras: Path, base: Path, out: Path) -> list[Path]:
    """`out` (hazy, cleared, transmission, trust) and `{out}.airlight.png` (k against m with the fitted airlight)."""
    from fujinsplat.isp import develop, load

    smoke, isp, settings = Smoke.load(path), load(base), SmokeSettings()
    poses = {camera.stem: camera for camera in read_cameras(cameras, "source")}
    chosen = [poses[stem] for stem in smoke.stems]
    hazy, white_balance = hazy_light(source, chosen)
    balance, name = white_balance.numpy(), path.stem

    def shown(light: np.ndarray) -> np.ndarray:
        return develop(isp, np.clip(light / balance, 0, 1).astype(np.float32))

    files = save(draw(smoke, hazy, shown, name), out)
    depth = smoke.depth * smoke.statistics["scale"] / ray_lengths(chosen)
    small = Reduced(hazy, chosen, depth, smoke.trusted, settings.width)
    partners = pairs.choose_partners(small.cams, settings.partners)
    step = max(1, round(small.depth.shape[2] / 120))
    found = pairs.regressions(small.pictures, small.depth, small.trusted, small.cams, partners, step)
    colour = np.asarray(smoke.statistics["airlight"])
    return [*files, *save(draw_airlight(found.k, found.m, colour, name), out.with_suffix(".airlight.png"))]
