"""Fidelity of the compiled inverse [supp. F]: how well a label undoes the veil it stands for, and whether it closes.

A veil `H = t J + (1 - t) c` of linear light over external captures, as bright and as coloured as a recipe has them, at
the contrasts that the paper measures (least, median, most) and two between. *Undone*: the compiled action applied to H,
against J; the action is compiled from (c, t) alone, sixteen increments and constant offsets, so it cannot be exact.
*Round trip*: T_p(T_p^-1(J')) against the clamped J', the only cycle that the paper reports; it is exact for any action.
"""

from collections.abc import Sequence

import numpy as np
import torch

from fujinsplat.analysis.published_studies import POPULATION
from fujinsplat.core.color import decode, encode
from fujinsplat.flow import apply, invert
from fujinsplat.synthesis.captures import Captures
from fujinsplat.synthesis.draws import Draws
from fujinsplat.synthesis.labels import Method, compile_labels

CONTRASTS = (POPULATION["t_min"], 0.25, POPULATION["t_median"], 0.60, POPULATION["t_max"])
CAPTURES = 16  # evenly spread
COMPILERS: tuple[Method, ...] = ("published", "fitted")


def _psnr(values: np.ndarray, reference: np.ndarray) -> float:
    return float(-10 * np.log10(max(np.mean((values - reference) ** 2), 1e-30)))


def study(draws: Draws, captures: Captures, contrasts: Sequence[float] = CONTRASTS) -> tuple[list[dict], dict]:
    """A row per contrast: mean PSNR over captures of doing nothing, of each compiler, and the least round trip."""
    rows = [row for row in np.unique(np.linspace(0, len(captures) - 1, CAPTURES).astype(int))]
    members = [(draws.of(captures.names[row])[0], row) for row in rows]
    clean = [
        np.clip(draws.base(i).develop(draws.exposed(i, captures.pixels[r] / 65535), draws.white_balance[i]), 0, 1)
        for i, r in members
    ]
    pivots = draws.pivot[[index for index, _ in members]]
    K, M = draws.recipe.K, draws.recipe.M
    table = []
    for t in contrasts:
        hazy = [encode(t * decode(j) + (1 - t) * pivot) for j, pivot in zip(clean, pivots, strict=True)]
        row = {"contrast": t, "nothing": float(np.mean([_psnr(h, j) for h, j in zip(hazy, clean, strict=True)]))}
        for compiler in COMPILERS:
            labels, floors = compile_labels(pivots, np.full(len(pivots), t), compiler, K=K, M=M)
            undone, closed = [], []
            for label, floor, h, j in zip(labels, floors, hazy, clean, strict=True):
                undone.append(_psnr(apply(torch.from_numpy(h), label, K, M).clamp(0, 1).numpy(), j))
                kept = torch.from_numpy(j).clamp_min(float(floor))
                closed.append(_psnr(apply(invert(kept, label, K, M), label, K, M).numpy(), kept.numpy()))
            row |= {compiler: float(np.mean(undone)), f"{compiler}_round_trip": min(closed)}
        table.append(row)
    return table, {"captures": len(members), "at_median": table[len(table) // 2]}


def sentence(result: dict) -> str:
    row = result["at_median"]
    return (
        f"At the paper's median contrast ({row['contrast']:.2f}) the published rule undoes the veil it stands for "
        f"to {row['published']:.1f} dB and the fitted one to {row['fitted']:.1f} dB, where the veiled picture has "
        f"{row['nothing']:.1f} dB; the round trip of an observation closes at {row['published_round_trip']:.0f} dB "
        "(published: to numerical precision)."
    )


def draw(rows: list[dict]):
    """PSNR against contrast: doing nothing and the two compilers."""
    from fujinsplat.core.style import BLUE, GREY, VERMILION, WIDE, figure

    fig, axes = figure(width=WIDE, height=2.4)
    for name, color, label in (
        ("fitted", BLUE, "fitted compiler"),
        ("published", VERMILION, "published compiler"),
        ("nothing", GREY, "veiled picture"),
    ):
        axes.plot([row["contrast"] for row in rows], [row[name] for row in rows], "o-", color=color, label=label)
    axes.set(xlabel="contrast t of the veil", ylabel="PSNR to the clean capture (dB)")
    axes.legend()
    return fig
