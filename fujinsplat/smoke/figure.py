"""An estimate as pictures that a person can judge: hazy and cleared, transmission, trust, the airlight's line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.capture import read_cameras
from fujinsplat.core.style import CHANNELS, WIDE, figure, panel, save
from fujinsplat.smoke import pairs
from fujinsplat.smoke.depth import ray_lengths
from fujinsplat.smoke.estimation import Reduced
from fujinsplat.smoke.light import hazy_light
from fujinsplat.smoke.model import Smoke
from fujinsplat.smoke.settings import SmokeSettings

MOST = 6  # views in one figure
DOTS = 4000  # regressions in the scatter


def chosen_views(smoke: Smoke, most: int = MOST) -> list[int]:
    """From the thinnest smoke to the thickest."""
    order = torch.argsort(
        torch.stack([smoke.transmission_of(view).mean() for view in range(len(smoke))]), descending=True
    )
    places = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def draw(smoke: Smoke, views: Tensor, develop: Callable[[np.ndarray], np.ndarray], name: str):
    """A column per view: hazy, cleared, transmission, trust. `views [V, h, w, 3]` white-balanced camera-linear;
    `develop` takes such a picture to an encoded one (the Base ISP). `fujinsplat.core.style.save` writes it."""
    chosen = chosen_views(smoke)
    height, width = smoke.depth.shape[1:]
    tall = WIDE / len(chosen) * height / width * 4 + 0.9
    fig, axes = figure(4, len(chosen), width=WIDE, height=tall, squeeze=False, layout="constrained")
    top = float(torch.stack([smoke.transmission_of(view) for view in chosen]).max())
    for column, view in zip(axes.T, chosen, strict=True):
        hazy, T = views[view].cpu(), smoke.transmission_of(view).cpu()
        clear = smoke.clear_of(view, views[view]).cpu().clamp_min(0)
        column[0].imshow(np.clip(develop(hazy.numpy()), 0, 1))
        column[1].imshow(np.clip(develop(clear.numpy()), 0, 1))
        shown = column[2].imshow(T.numpy(), vmin=0, vmax=top, cmap="viridis")
        column[3].imshow(smoke.trusted[view].cpu().numpy(), vmin=0, vmax=1, cmap="gray")
        column[0].set_title(f"{smoke.stems[view]}\nT = {float(T.mean()):.2f}")
        for axis in column:
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_visible(False)
    for axis, label in zip(axes[:, 0], ("hazy", "cleared", "transmission", "depth trusted"), strict=True):
        axis.set_ylabel(label)
    fig.colorbar(shown, ax=axes[2, :].tolist(), shrink=0.8)
    fig.suptitle(
        f"{name}: smoke from {len(smoke)} views" + "".join(f"; {w}" for w in smoke.statistics.get("words", []))
    )
    return fig


def draw_airlight(k: np.ndarray, m: np.ndarray, colour: np.ndarray, name: str):
    """m = (1 - k) A of every regression with the fitted line, channel by channel: k `[n]`, m `[n, 3]`, colour `[3]`."""
    fig, axes = figure(1, 3, width=WIDE, height=2.5, layout="constrained")
    some = np.linspace(0, len(k) - 1, min(DOTS, len(k))).astype(int)
    d = 1 - k[some]
    limit = float(np.quantile(np.abs(d), 0.98))
    line = np.array([-limit, limit])
    for c, (axis, (channel, hue)) in enumerate(zip(axes, CHANNELS.items(), strict=True)):
        axis.plot(d, m[some, c], ".", color=hue, alpha=0.2, markersize=2, rasterized=True)
        axis.plot(line, line * colour[c], color="black", linewidth=1)
        axis.set(xlabel="1 − k", xlim=(-limit, limit), ylim=(-1.5 * limit * colour[c], 1.5 * limit * colour[c]))
        panel(axis, "abc"[c], f"{channel}: A = {colour[c]:.4f}")
    axes[0].set_ylabel("m (linear light)")
    fig.suptitle(f"{name}: airlight from {len(k)} regressions of view pairs")
    return fig


def write_figures(path: Path, source: Path, cameras: Path, base: Path, out: Path) -> list[Path]:
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
