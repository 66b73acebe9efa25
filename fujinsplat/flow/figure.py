"""One picture of one action: its curves, its couplings, and what it does to colours."""

import numpy as np
import torch

from fujinsplat.core.style import BLACK, CHANNELS, GREY, ORANGE, PURPLE, SKY, WIDE, use_style
from fujinsplat.flow.layout import COUPLING_BOUND, KNOTS, channels, probe_grid, split
from fujinsplat.flow.operator import apply
from fujinsplat.flow.reference import curve_tables

NAMES = "RGB"


def draw(action: torch.Tensor, K: int, M: int, title: str = ""):
    """A matplotlib figure of `action [P]`: K + 1 curve panels, K coupling panels, the effect on grey and on a grid."""
    use_style()
    import matplotlib.pyplot as plt

    action = action.detach().cpu().double()
    curves, couplings = split(action, K, M)
    columns = K + 1
    fig = plt.figure(figsize=(max(WIDE, 1.15 * columns + 0.6), 6.6))
    grid = fig.add_gridspec(3, columns, height_ratios=[1, 1, 2.6])
    _curve_row(fig, [grid[0, c] for c in range(columns)], curves, M)
    _coupling_row(fig, [grid[1, c] for c in range(K)], couplings)
    bottom = grid[2, :].subgridspec(1, 3, width_ratios=[1, 1.15, 1.15])
    _grey_panel(fig.add_subplot(bottom[0]), action, K, M)
    _grid_panels(fig.add_subplot(bottom[1]), fig.add_subplot(bottom[2]), action, K, M)
    size = f"rms {action.square().mean().sqrt():.3f}, largest {action.abs().max():.2f}"
    fig.suptitle(f"{title + ': ' if title else ''}{len(action)} coefficients ({size})", fontsize=9)
    return fig


def _curve_row(fig, cells, curves: torch.Tensor, M: int) -> None:
    nodes = curve_tables(curves)[0]
    nodes = torch.cat([nodes, torch.ones_like(nodes[..., :1])], dim=-1).numpy()
    at = np.arange(M + 1) / M
    first = None
    for k, cell in enumerate(cells):
        ax = fig.add_subplot(cell, sharey=first, aspect="equal")
        first = first or ax
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=":")
        for c, name in enumerate(NAMES):
            ax.plot(at, nodes[k, c], color=CHANNELS[name], label=name, lw=1.0, ls=("-", "--", "-.")[c])
        ax.set(title=f"curve {k + 1}", xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1])
        ax.tick_params(labelleft=k == 0)
    assert first is not None
    first.legend(loc="upper left", handlelength=1.2, borderpad=0, labelspacing=0.1)


def _coupling_row(fig, cells, couplings: torch.Tensor) -> None:
    knots = (COUPLING_BOUND * torch.tanh(couplings)).numpy()
    at = np.arange(KNOTS) / (KNOTS - 1)
    first = None
    for k, cell in enumerate(cells):
        ax = fig.add_subplot(cell, sharey=first)
        first = first or ax
        i, j, l = (NAMES[c] for c in channels(k))
        labels = (f"{j} += s({i})", f"{l} += s({i})/2", f"{l} += s({j})/2")
        for m, color in enumerate((SKY, ORANGE, PURPLE)):
            ax.plot(at, knots[k, m], color=color, lw=1.0, label=labels[m], marker=("o", "s", "^")[m], ms=2)
        limit = COUPLING_BOUND * 1.05
        ax.set(title=f"coupling {k + 1}", xlim=(0, 1), ylim=(-limit, limit), xticks=[0, 1])
        ax.set_yticks([-COUPLING_BOUND, 0, COUPLING_BOUND])
        ax.tick_params(labelleft=k == 0)
        ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.18),
            fontsize=5.5,
            handlelength=1.0,
            borderpad=0,
            labelspacing=0.1,
        )


def _grey_panel(ax, action: torch.Tensor, K: int, M: int) -> None:
    """The whole operator along the grey axis, tails included."""
    level = torch.linspace(-0.1, 1.1, 481, dtype=torch.float64)
    out = apply(level[:, None].expand(-1, 3), action, K, M).numpy()
    ax.plot(level, level, color=GREY, lw=0.6, ls=":")
    for c, name in enumerate(NAMES):
        ax.plot(level, out[:, c], color=CHANNELS[name], ls=("-", "--", "-.")[c], label=name)
    for edge in (0, 1):
        ax.axvline(edge, color=BLACK, lw=0.4)
    ax.set(title="greys in, channels out", xlabel="encoded grey", ylabel="encoded result", xlim=(-0.1, 1.1))
    ax.set_ylim(max(-0.6, min(-0.15, out.min())), min(1.6, max(1.15, out.max())))
    ax.legend(loc="upper left")


def _grid_panels(before, after, action: torch.Tensor, K: int, M: int) -> None:
    """The 9^3 probe colours as nine squares (one per blue level), before and after; clipped to what a screen shows."""
    side = 9
    probes = probe_grid(side, dtype=torch.float64)
    for ax, colors, name in (
        (before, probes, "probe colours"),
        (after, apply(probes, action, K, M), "after the action"),
    ):
        cube = colors.clamp(0, 1).reshape(side, side, side, 3).numpy()  # [R, G, B, 3]
        canvas = np.ones((3 * (side + 1) - 1, 3 * (side + 1) - 1, 3))
        for b in range(side):
            top, left = (b // 3) * (side + 1), (b % 3) * (side + 1)
            canvas[top : top + side, left : left + side] = cube[:, :, b].swapaxes(0, 1)[::-1]
        ax.imshow(canvas)
        ax.set(title=name, xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
    before.set_xlabel("each square: R to the right, G upwards; squares: B rises", fontsize=6)
