"""Grids of pictures: the qualitative comparison and the ablation renders, with the colour chart enlarged.

Pictures are uint8 `[H, W, 3]`, display-encoded. One held view per scene: its first. The hazy input is the training view
whose camera stands nearest to that pose.
"""

from pathlib import Path

import numpy as np

from fujinsplat.capture import HeldViews, read_cameras
from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.collect import read_metrics
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.protocol import fitted, read_picture
from fujinsplat.evaluate.tables.baselines import compared
from fujinsplat.paths import inside
from fujinsplat.report.figures.chart import find_chart

INSET = "#00d5e5"  # the paper's cyan
LOWER_LEFT = (0.02, 0.04)  # corner of an enlarged chart, in shares of the panel
QUALITATIVE_ROLES = ("rgb_base", "raw_base", "method")
ABLATION_ROLES = ("rgb_base", "raw_base", "rgb_input", "curves_only", "couplings_only", "no_delta", "method")
MOST_SCENES = 8


def qualitative(results: Path, outline: Outline):
    """A column per scene, a row per method, as the paper's comparison; charts are enlarged in the corner."""
    scenes = _scenes(results, outline)
    names = _built(results, outline, scenes, QUALITATIVE_ROLES)
    method = outline.method if outline.method in names else None
    names = [*(name for name in names if name != method), *_others(results, outline, scenes, names)]
    names += [method] if method else []
    rows = ["smoky camera", *(outline.title(name) for name in names), "clean capture"]
    panels = {}
    for column, scene in enumerate(scenes):
        stem, clean, where = _held(results, scene)
        smoky = HeldViews(inside(results, "source", scene=scene)).rgb(nearest_source(results, scene, stem))
        pictures = [smoky, *(_render(results, scene, name, stem, clean) for name in names), clean]
        for row, picture in enumerate(pictures):
            panels[row, column] = (picture, where if row else None, None)
    return _grid(panels, rows, scenes, highlight=_method_row(outline, names))


def ablation_renders(results: Path, outline: Outline):
    """A row per scene, a column per variant, each with its PSNR; the input shows linear RAW left of a seam."""
    scenes = _scenes(results, outline)
    names = _built(results, outline, scenes, ABLATION_ROLES)
    columns = ["hazy input\nRAW | camera", *(outline.title(name) for name in names), "clean capture"]
    metrics = read_metrics(results, outline)
    panels = {}
    for row, scene in enumerate(scenes):
        stem, clean, where = _held(results, scene)
        panels[row, 0] = (_seam(results, scene, nearest_source(results, scene, stem)), None, None)
        for column, name in enumerate(names, start=1):
            scores = metrics.of(scene, name)
            number = scores[0].views.get(stem, {}).get("psnr") if scores else None
            text = None if number is None else f"{number:.2f}"
            panels[row, column] = (_render(results, scene, name, stem, clean), where, text)
        panels[row, len(columns) - 1] = (clean, where, None)
    return _grid(panels, scenes, columns, highlight=None, highlight_column=_method_row(outline, names))


def nearest_source(results: Path, scene: str, stem: str) -> str:
    """The source view that stands nearest to the held view `stem` and looks the same way."""
    path = inside(results, "cameras", scene=scene)
    held = {view.stem: view for view in read_cameras(path, "held")}[stem]
    source = read_cameras(path, "source")

    def centre(view) -> np.ndarray:
        return -view.viewmat[:3, :3].T @ view.viewmat[:3, 3]

    reach = np.median([np.linalg.norm(centre(view) - centre(held)) for view in source]) or 1.0
    away = [
        np.linalg.norm(centre(v) - centre(held)) / reach + 1 - v.viewmat[2, :3] @ held.viewmat[2, :3] for v in source
    ]
    return source[int(np.argmin(away))].stem


def _scenes(results: Path, outline: Outline) -> list[str]:
    scenes = [scene for scene in outline.scenes if (inside(results, "held", scene=scene) / "views.json").is_file()]
    if not scenes:
        raise UserError(f"{results} has no held views to draw; build a scene with held views first")
    return scenes[:MOST_SCENES]


def _built(results: Path, outline: Outline, scenes: list[str], wanted: tuple[str, ...]) -> list[str]:
    """The variants of these roles that have renders in every scene."""
    names = [name for role in wanted for name in outline.of_role(role)]
    return [
        name
        for name in names
        if all(inside(results, "renders", scene=scene, variant=name).is_dir() for scene in scenes)
    ]


def _others(results: Path, outline: Outline, scenes: list[str], shown: list[str]) -> list[str]:
    """The other methods that were run here: restorers, media, other people's programs."""
    names = [name for name in compared(outline) if name not in shown]
    return [
        name
        for name in names
        if all(inside(results, "renders", scene=scene, variant=name).is_dir() for scene in scenes)
    ]


def _rendered(results: Path, scene: str, name: str) -> Path:
    return inside(results, "renders", scene=scene, variant=name)


def _method_row(outline: Outline, names: list[str]) -> int | None:
    return names.index(outline.method) + 1 if outline.method in names else None


def _held(results: Path, scene: str) -> tuple[str, np.ndarray, tuple[int, int, int, int] | None]:
    """The first held view: its stem, its clean picture and where the colour chart is in it."""
    views = HeldViews(inside(results, "held", scene=scene))
    clean = views.rgb(views.stems[0])
    return views.stems[0], clean, find_chart(clean)


def _render(results: Path, scene: str, name: str, stem: str, like: np.ndarray) -> np.ndarray:
    return fitted(read_picture(_rendered(results, scene, name) / f"{stem}.png"), like)


def _seam(results: Path, scene: str, stem: str) -> np.ndarray:
    """Linear RAW left, camera RGB right."""
    from fujinsplat.capture import SourceViews

    views = SourceViews(inside(results, "source", scene=scene))
    picture = views.rgb(stem).copy()
    if (views.folder / f"{stem}.npy").is_file():
        half = picture.shape[1] // 2
        picture[:, :half] = np.rint(np.clip(views.raw(stem)[:, :half], 0, 1) * 255).astype(np.uint8)
        picture[:, half - 1 : half + 1] = 255
    return picture


def _grid(
    panels: dict, rows: list[str], columns: list[str], highlight: int | None, highlight_column: int | None = None
):
    """`panels[row, column]` = (picture, chart box or None, text or None)."""
    from fujinsplat.core.style import BLUE, WIDE, figure

    picture = panels[0, 0][0]
    cell = WIDE / len(columns)
    height = cell * picture.shape[0] / picture.shape[1] * len(rows) + 0.25 + 0.02 * len(rows)
    fig, axes = figure(len(rows), len(columns), width=WIDE, height=height, squeeze=False)
    fig.set_layout_engine("constrained", w_pad=0.01, h_pad=0.01, wspace=0.01, hspace=0.01)
    for (row, column), (picture, box, text) in panels.items():
        ax = axes[row, column]
        ax.imshow(picture, interpolation="antialiased", aspect="auto")
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        chosen = row == highlight or column == highlight_column
        for spine in ax.spines.values():
            spine.set(visible=True, color=BLUE if chosen else "#bbbbbb", linewidth=1.4 if chosen else 0.4)
        taken = _inset(ax, picture, box) if box is not None else None
        if text:
            style = {"facecolor": "black", "alpha": 0.6, "edgecolor": "none", "boxstyle": "round,pad=0.2"}
            x, side = (0.97, "right") if taken == LOWER_LEFT else (0.03, "left")
            ax.text(x, 0.05, text, transform=ax.transAxes, color="white", fontsize=6, ha=side, bbox=style)
    small = 6 if max(map(len, [*rows, *columns])) > 14 or len(columns) > 6 else 7
    for row, name in enumerate(rows):
        axes[row, 0].set_ylabel(name.replace(" ", "\n", 1), fontsize=small, color=BLUE if row == highlight else "black")
    for column, name in enumerate(columns):
        axes[0, column].set_title(name, fontsize=small, color=BLUE if column == highlight_column else "black")
    return fig


def _inset(ax, picture: np.ndarray, box: tuple[int, int, int, int]) -> tuple[float, float]:
    """The chart, enlarged in the corner that is farthest from it, both framed in cyan; returns that corner."""
    from matplotlib.patches import Rectangle

    x, y, width, height = box
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INSET, linewidth=0.6))
    left = 0.62 if x + width / 2 < picture.shape[1] / 2 else LOWER_LEFT[0]
    bottom = LOWER_LEFT[1] if y + height / 2 < picture.shape[0] / 2 else 0.6
    small = ax.inset_axes((left, bottom, 0.36, 0.36))
    small.imshow(picture[y : y + height, x : x + width], interpolation="nearest", aspect="auto")
    small.set(xticks=[], yticks=[])
    small.grid(visible=False)
    for spine in small.spines.values():
        spine.set(visible=True, color=INSET, linewidth=0.8)
    return left, bottom
