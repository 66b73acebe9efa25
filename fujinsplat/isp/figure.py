"""A picture of one base that a person can read: gains and matrix, response to grey, curves, what the lattice does."""

import numpy as np
import torch

from fujinsplat.core import color
from fujinsplat.isp import reference
from fujinsplat.isp.model import BaseISP
from fujinsplat.isp.picture import develop


def grey_response(base: BaseISP, levels: np.ndarray) -> np.ndarray:
    """Encoded RGB `[N, 3]` of greys whose display-linear front output is `levels` `[N]`."""
    front = base.front_matrix().detach().double().numpy()
    raw = np.repeat(levels[:, None], 3, axis=1) @ np.linalg.inv(front)
    return develop(base, raw[None])[0]


def draw(base: BaseISP, name: str):
    """The figure; `fujinsplat.core.style.save` writes it."""
    from fujinsplat.core.style import CHANNELS, GREY, WIDE, figure, panel

    fig, axes = figure(2, 3, width=WIDE, height=4.6, layout="constrained")
    operands = reference.Operands(*(t.detach() for t in base.operands()))
    levels = np.linspace(0, 1.2, 400)

    matrix = axes[0, 0]
    front = operands.front.numpy()
    limit = 2 * np.abs(front).max()  # pale enough for the numbers on top
    matrix.imshow(front, cmap="RdBu_r", vmin=-limit, vmax=limit)
    for row, column in np.ndindex(3, 3):
        matrix.text(column, row, f"{front[row, column]:.2f}", ha="center", va="center")
    matrix.set_xticks(range(3), ["R", "G", "B"])
    matrix.set_yticks(range(3), ["raw R", "raw G", "raw B"])
    panel(matrix, "a", "gains and matrix")

    grey, plain = axes[0, 1], color.encode(levels)
    response = grey_response(base, levels)
    grey.plot(levels, plain, color=GREY, linestyle="--", label="sRGB")
    tone, shaper = axes[0, 2], axes[1, 0]
    where = torch.linspace(-1, 4.2, 400)
    for k, (channel, hue) in enumerate(CHANNELS.items()):
        grey.plot(levels, response[:, k], color=hue, label=channel)
        position = (where / (2 * reference.TONE_RANGE) + 0.5)[:, None].expand(-1, 3)
        tone.plot(where, reference.read_curve(operands.tone, position)[:, k], color=hue)
        shaper.plot(np.linspace(0, 1, 257), operands.shaper[k], color=hue)
    grey.set(xlabel="linear grey after the matrix", ylabel="encoded", ylim=(0, 1.05))
    grey.legend()
    panel(grey, "b", "response to grey")
    tone.set(xlabel="latent", ylabel="residual")
    panel(tone, "c", "Tone257")
    shaper.set(xlabel="rational coordinate", ylabel="deviation")
    panel(shaper, "d", "Shaper257")

    # one slice through the lattice's middle: red and green vary, blue rests
    size = reference.lattice_nodes(operands.coarse, operands.fine).norm(dim=-1).numpy()
    shown = axes[1, 1].imshow(size[:, :, reference.FINE // 2].T, origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
    fig.colorbar(shown, ax=axes[1, 1], label="|latent action|")
    axes[1, 1].set(xlabel="R coordinate", ylabel="G coordinate")
    panel(axes[1, 1], "e", "lattice at B = 0.5")

    axes[1, 2].imshow(np.clip(_chart(base), 0, 1))
    axes[1, 2].set_axis_off()
    panel(axes[1, 2], "f", "lattice: off | on")
    for picture in (matrix, axes[1, 1]):
        picture.grid(False)
    fig.suptitle(f"Base ISP of {name}")
    return fig


def _chart(base: BaseISP) -> np.ndarray:
    """Encoded patches `[H, W, 3]`, hue across and saturation down; each split into without and with the lattice."""
    import copy

    from matplotlib.colors import hsv_to_rgb

    hue, saturation = np.meshgrid(np.linspace(0, 1, 9)[:-1], [0.15, 0.35, 0.6, 0.8])
    patches = hsv_to_rgb(np.stack([hue, saturation, np.full_like(hue, 0.75)], axis=-1))
    raw = color.decode(patches) @ np.linalg.inv(base.front_matrix().detach().double().numpy())
    resting = copy.deepcopy(base)
    with torch.no_grad():
        resting.g9.zero_()
        resting.r33.zero_()
    pairs = np.stack([develop(resting, raw), develop(base, raw)], axis=2)  # [4, 8, 2, 3]
    return np.repeat(np.repeat(pairs.reshape(4, 16, 3), 24, axis=0), 12, axis=1)
