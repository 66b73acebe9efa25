"""Synthetic observations next to real smoke, as the supplement's figure.

All pairs are developed identically: white balance, colour matrix and encoding without a tone curve, at a display
exposure set by their clean frame. Each tile is cut diagonally: camera-linear RAW without white balance above,
developed RGB below.
"""

from pathlib import Path

import numpy as np

from fujinsplat.actions.population import Population
from fujinsplat.actions.population import load as load_population
from fujinsplat.capture import SourceViews
from fujinsplat.capture.raw import read_raw
from fujinsplat.core.color import encode, luminance
from fujinsplat.core.settings import CaptureSettings
from fujinsplat.core.style import BLUE, VERMILION, WIDE, figure, save
from fujinsplat.synthesis.captures import Captures
from fujinsplat.synthesis.draws import Draws
from fujinsplat.synthesis.external import ExternalBase
from fujinsplat.synthesis.observe import hazed
from fujinsplat.synthesis.sheet import Capture, read_sheet
from fujinsplat.synthesis.smoke import field

TILE = 360  # pixels across, at most
DISPLAY_MEDIAN = 0.18  # linear


def tile(raw: np.ndarray, white_balance: np.ndarray, base: ExternalBase, exposure: float) -> np.ndarray:
    """RAW `[H, W, 3]` as one diagonally cut tile, values in [0, 1]."""
    developed = encode(np.clip(exposure * base.linear(raw, white_balance), 0, 1))
    plain = encode(np.clip(exposure * raw, 0, 1))
    height, width = raw.shape[:2]
    rows, columns = np.mgrid[:height, :width]
    return np.where((rows / height + columns / width < 1)[..., None], plain, developed)


def display_exposure(clean_raw: np.ndarray, white_balance: np.ndarray, base: ExternalBase) -> float:
    linear = base.linear(clean_raw, white_balance)
    return DISPLAY_MEDIAN / max(float(np.median(luminance(linear))), 1e-6)


def smaller(picture: np.ndarray) -> np.ndarray:
    stride = max(1, picture.shape[1] // TILE)
    return picture[::stride, ::stride]


def synthetic_pair(
    draws: Draws, index: int, capture: Capture, captures: Captures, row: int
) -> tuple[np.ndarray, np.ndarray]:
    """Clean and smoky tile of one draw; the capture is decoded for it, its depth is the kept taps'."""
    raw = smaller(read_raw(capture.path, CaptureSettings()).linear) / 65535
    height, width = raw.shape[:2]
    down, across = np.mgrid[:height, :width]
    place = np.stack([(down + 0.5) / height, (across + 0.5) / width], axis=-1).reshape(-1, 2)
    taps = captures.split(captures.depth[row])[1][:, :, 0, 0]
    balance, base = draws.white_balance[index], ExternalBase(draws.matrix)
    clean = draws.exposed(index, raw)
    smoky = hazed(draws, index, raw.reshape(-1, 3), field(taps, place), place)[3].reshape(raw.shape)
    exposure = display_exposure(clean, balance, base)
    return tile(clean, balance, base, exposure), tile(smoky, balance, base, exposure)


def real_pair(stem: str, smoky: SourceViews, clean: SourceViews, base: ExternalBase) -> tuple[np.ndarray, np.ndarray]:
    """Clean and smoky tile of one source view, developed as the synthetic ones are."""
    balance = smoky.white_balance(stem)
    clean_raw, smoky_raw = smaller(clean.raw(stem)), smaller(smoky.raw(stem))
    exposure = display_exposure(clean_raw, balance, base)
    return tile(clean_raw, balance, base, exposure), tile(smoky_raw, balance, base, exposure)


def draw_gallery(
    folder: Path,
    shards: list[Path],
    draws_path: Path,
    population_path: Path,
    out: Path,
    source: Path | None,
    clean: Path | None,
) -> None:
    """Two light and two dense draws beside their clean captures, two real views with their twins, and both t."""
    draws, population = Draws.load(draws_path), load_population(population_path)
    files = {capture.name: capture for capture in read_sheet(folder)}
    captures = Captures.joined([Captures.load(shard) for shard in sorted(shards)])
    order = np.argsort(draws.contrast)
    chosen = [order[int(q * (len(order) - 1))] for q in (0.75, 0.9, 0.05, 0.2)]
    rows = []
    for pair in (chosen[:2], chosen[2:]):
        tiles = []
        for index in pair:
            name = draws.capture[index]
            made = synthetic_pair(draws, int(index), files[name], captures, captures.names.index(name))
            tiles += [(made[0], "clean capture"), (made[1], f"synthetic, t = {draws.contrast[index]:.2f}")]
        rows.append(tiles)
    if source and clean:
        rows.append(
            _real_row(
                population,
                SourceViews(source),
                SourceViews(clean),
                Path(source).parent.name,
                ExternalBase(draws.matrix),
            )
        )
    fig, axes = figure(len(rows), 5, width=WIDE, height=1.25 * len(rows), squeeze=False, layout="constrained")
    for row, tiles in zip(axes, rows, strict=True):
        for axis, (picture, title) in zip(row, tiles, strict=False):
            axis.imshow(picture, interpolation="none")
            axis.set_title(title, fontsize=6)
        for axis in row:
            axis.axis("off")
    _histogram(fig, axes, population, draws)
    save(fig, out)


def _real_row(population: Population, smoky: SourceViews, clean: SourceViews, scene: str, base: ExternalBase) -> list:
    """The scene's lightest and densest measured view."""
    fits = {pair.view: pair.raw.t for pair in population.pairs if pair.scene == scene and pair.raw}
    known = sorted((stem for stem in smoky.stems if stem in clean.stems), key=lambda stem: -fits.get(stem, 0.5))
    tiles = []
    for stem in (known[0], known[-1]):
        made = real_pair(stem, smoky, clean, base)
        fitted = f", t = {fits[stem]:.2f}" if stem in fits else ""
        tiles += [(made[0], f"{scene} {stem}, clean"), (made[1], f"{scene} {stem}, smoke{fitted}")]
    return tiles


def _histogram(fig, axes, population: Population, draws: Draws) -> None:
    """Measured t over the pairs and drawn t over the captures; bars mark the medians."""
    grid = axes[0, 0].get_gridspec()
    axis = fig.add_subplot(grid[:, 4])
    coordinate = draws.recipe.coordinate
    measured = [fit.t for fit in population.fits(coordinate)]
    bins = np.linspace(0, 1, 21)
    for values, colour, name in ((measured, BLUE, f"measured ({coordinate})"), (draws.contrast, VERMILION, "drawn")):
        axis.hist(values, bins=bins, density=True, color=colour, alpha=0.5, label=name)
        axis.axvline(float(np.median(values)), color=colour)
    axis.set(xlabel="t", yticks=[])
    axis.set_title("measured and drawn t", fontsize=6)
    axis.legend(fontsize=5, loc="upper left", frameon=False)
