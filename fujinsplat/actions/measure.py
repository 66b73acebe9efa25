"""The veil of every pair of a scene, in both coordinates, for the correction distribution."""

from pathlib import Path

import numpy as np

from fujinsplat.actions import veil
from fujinsplat.actions.fit import check_grids, check_twins
from fujinsplat.actions.population import Coordinate, Fit, LeftOut, Pair, ScenePairs
from fujinsplat.core.color import decode, luminance
from fujinsplat.core.progress import progress, say


def measure(scene: str, base, source, clean, percentiles: int = veil.PERCENTILES) -> ScenePairs:
    """Fit `H = t J + (1 - t) c` to each pair of a scene; what cannot be fitted is listed with its reason.

    `raw`: H and J are camera-linear RAW. `base`: the same two RAWs developed by the scene's frozen base (which saw
    smoke only), clamped to [0, 1] as on screen, and decoded to linear light.
    """
    from fujinsplat.isp import develop

    check_twins(source, clean)
    pairs, left_out = [], []
    for stem in progress(sorted(source.stems), f"veil of {scene}", unit="view"):
        hazy_raw, clean_raw = source.raw(stem), clean.raw(stem)
        check_grids(stem, hazy_raw, clean_raw)
        pictures: dict[Coordinate, list[np.ndarray]] = {
            "raw": [hazy_raw, clean_raw],
            "base": [decode(np.clip(develop(base, raw), 0, 1)) for raw in (hazy_raw, clean_raw)],
        }
        fits: dict[Coordinate, Fit] = {}
        for coordinate, (hazy, target) in pictures.items():
            try:
                fits[coordinate] = fit_pair(hazy, target, percentiles)
            except veil.Degenerate as reason:
                left_out.append(LeftOut(scene=scene, view=stem, coordinate=coordinate, reason=str(reason)))
                say(f"{scene}/{stem}: left out in the {coordinate} coordinate: {reason}")
        if fits:
            r, g, b = (float(gain) for gain in source.white_balance(stem))
            pairs.append(Pair(scene=scene, view=stem, white_balance=(r, g, b), **fits))
    return ScenePairs(pairs=pairs, left_out=left_out)


def fit_pair(hazy_linear: np.ndarray, clean_linear: np.ndarray, percentiles: int = veil.PERCENTILES) -> Fit:
    """One pair in one linear coordinate, with the clean capture's median luminance."""
    found = veil.fit(hazy_linear, clean_linear, percentiles)
    median = float(np.median(luminance(clean_linear)))
    if not median > 0:
        raise veil.Degenerate("the clean capture's median is black")
    return Fit(t=found.t, pivot=found.pivot, clean_median=median, residual=found.residual)


def merge(files: list[Path]):
    """The population of several scenes' files."""
    from fujinsplat.actions.population import Population, load_pairs

    scenes = [load_pairs(path) for path in files]
    return Population.of([p for s in scenes for p in s.pairs], [l for s in scenes for l in s.left_out])
