"""The loss curves of one training."""

from pathlib import Path

import numpy as np

from fujinsplat.controller.training import TERMS
from fujinsplat.core.files import atomic_file

WINDOW = 50


def loss_figure(path: Path, history: np.ndarray, objective: str) -> None:
    """`history [steps, terms]`: every term that was used, each update faint and its running median on top."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.0), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(len(history))
    for index, term in enumerate(TERMS):
        values = history[:, index]
        if not (values > 0).any():
            continue
        (line,) = axes.plot(steps, values, alpha=0.25, linewidth=0.6)
        if len(values) >= WINDOW:
            running = np.median(np.lib.stride_tricks.sliding_window_view(values, WINDOW), axis=1)
            axes.plot(steps[WINDOW // 2 :][: len(running)], running, color=line.get_color(), label=term)
        else:
            line.set_label(term)
    axes.set(xlabel="step", ylabel="loss (unweighted)", yscale="log", title=f"controller, {objective} objective")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
