"""Figures of the colour flow: its two blocks [supp. C], and the expert corrections beside predictions [Sec. 3.3]."""

from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json
from fujinsplat.core.style import BLUE, CHANNELS, GREY, VERMILION, WIDE, figure, panel, use_style
from fujinsplat.evaluate.outline import Outline
from fujinsplat.paths import inside

SCENES, VIEWS = 2, 4  # shown beside the energy of the corrections
# a curve that removes a veil: steep behind a flat toe, as labels are
EXAMPLE = np.array([-1.6, -1.5, -1.2, -0.3, 0.7, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05, 0.0, -0.05, -0.1])


def mcf(results: Path, outline: Outline):
    """(a) increments that add up to a curve; (b) a coupling stage, its conditioners, and its Jacobian."""
    import torch

    from fujinsplat.flow.layout import COUPLING_BOUND, KNOTS
    from fujinsplat.flow.reference import couple, curve_slopes

    M = len(EXAMPLE)
    increments = (curve_slopes(torch.from_numpy(EXAMPLE)) / M).numpy()
    nodes = np.concatenate([[0.0], np.cumsum(increments)])
    fig, (curve, update, jacobian) = figure(1, 3, width=WIDE, height=2.5)
    at = np.arange(M + 1) / M
    curve.bar(at[:-1], increments, width=1 / M, align="edge", color=GREY, alpha=0.6, label="increments δ")
    curve.plot(at, nodes, color=BLUE, marker="o", ms=2.5, label="curve C(v)")
    curve.plot([0, 1], [0, 1], color=GREY, ls=":", lw=0.8)
    curve.set(xlabel="v", xlim=(0, 1), ylim=(0, 1))
    curve.legend(loc="center right")
    panel(curve, "a", "softmax increments")

    # stage 1 reads red; one spline per conditioner, and what the stage adds to each channel
    knots = COUPLING_BOUND * torch.tanh(
        torch.stack([s * torch.sin(torch.linspace(0, 2.6 + k, KNOTS)) for k, s in enumerate((0.9, -0.7, 0.5))])
    )
    level = torch.linspace(0, 1, 101).double()
    before = [level[None], torch.full((1, 101), 0.5).double(), torch.full((1, 101), 0.5).double()]
    after = couple(before, knots[None].double(), (0, 1, 2))
    for c, name in enumerate("RGB"):
        update.plot(level, (after[c] - before[c])[0], color=CHANNELS[name], label=f"added to {name}")
    update.axhline(0, color=GREY, lw=0.5)
    update.set(xlabel="R (read, not written)", ylim=(-0.24, 0.24))
    update.legend(loc="lower left")
    panel(update, "b", "triangular update, stage 1")

    point = torch.tensor([0.4, 0.5, 0.6], dtype=torch.float64)
    stage = lambda u: torch.cat(couple([v[None, None] for v in u], knots[None].double(), (0, 1, 2)))[:, 0]  # noqa: E731
    values = torch.autograd.functional.jacobian(stage, point).numpy()
    jacobian.imshow(np.where(values == 0, np.nan, values), cmap="RdBu_r", vmin=-2, vmax=2)
    for row, column in np.ndindex(3, 3):
        jacobian.text(column, row, f"{values[row, column]:.2g}", ha="center", va="center")
    jacobian.set_xticks(range(3), ["R", "G", "B"])
    jacobian.set_yticks(range(3), ["R", "G", "B"])
    jacobian.grid(False)
    panel(jacobian, "c", f"its Jacobian, det = {np.linalg.det(values):.3g}")
    return fig


def action_family(results: Path, outline: Outline):
    """(a) cumulative energy of the expert corrections; (b) base output and corrected output of views of two scenes."""
    from fujinsplat.develop.inspect import corrected
    from fujinsplat.develop.store import Developed
    from fujinsplat.views.store import Views

    study = inside(results, "study", study="family", file="result.json")
    result = read_json(study)["result"]
    if "energy" not in result:
        raise UserError(f"{study} holds no energy of the corrections; run the study again")
    use_style()
    import matplotlib.pyplot as plt

    method, scenes = outline.method, outline.scenes[:SCENES]
    front = outline.rows[method].parts["front"]
    fig = plt.figure(figsize=(WIDE, 0.4 + 1.0 * 2 * len(scenes)))
    left, right = fig.subfigures(1, 2, squeeze=False, width_ratios=[1, 2.2])[0]
    energy = left.subplots()
    count = np.arange(1, len(result["energy"]) + 1)
    energy.semilogx(count, result["energy"], "-o", color=BLUE, ms=2.5, label="all actions")
    energy.semilogx(count, result["energy_centred"], "--s", color=VERMILION, ms=2.5, label="shared mean removed")
    energy.xaxis.set_major_formatter("{x:g}")
    energy.set(xlabel="singular directions", ylabel="cumulative energy", ylim=(0, 1.03))
    energy.legend(loc="lower right")
    panel(energy, "a", "expert corrections")

    axes = right.subplots(2 * len(scenes), VIEWS, squeeze=False)
    for row, scene in enumerate(scenes):
        developed = Developed(inside(results, "developed", scene=scene, variant=method))
        pictures = Views(inside(results, "views", scene=scene, front=front))
        chosen = np.unique(np.linspace(0, len(developed.stems) - 1, VIEWS).astype(int))
        for column in range(VIEWS):
            cells = axes[2 * row : 2 * row + 2, column]
            for ax in cells:
                ax.set(xticks=[], yticks=[])
                ax.grid(False)
            if column >= len(chosen):
                continue
            stem = developed.stems[chosen[column]]
            base = pictures.encoded(stem)
            for ax, picture in zip(
                cells, (base, corrected(base, developed.action(stem), developed.K, developed.M)), strict=True
            ):
                ax.imshow(picture, interpolation="antialiased")
        axes[2 * row, 0].set_ylabel(f"{scene}\nbase", fontsize=6)
        axes[2 * row + 1, 0].set_ylabel("corrected", fontsize=6)
    panel(axes[0, 0], "b", "predictions before 3D")
    return fig
