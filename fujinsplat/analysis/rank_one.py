"""Rank-one structure of the smoke residual [supp. A].

A smoky and a clean RAW of one pose, developed by the same fixed reference ISP (the file's white balance and colour
matrix, no tone curve), differ by R = S - C, `[pixels, 3]`. If smoke adds one colour at varying strength, R has rank
one. Stages: P1 linear XYZ, P2 linear sRGB, P3 sRGB-encoded. Only the 3x3 Gram matrix of R is decomposed.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fujinsplat.actions.fit import check_grids, check_twins
from fujinsplat.core.color import encode
from fujinsplat.core.metrics import psnr_of_error
from fujinsplat.core.progress import progress

STAGES = ("p1", "p2", "p3")
SRGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# pixel angles are pooled over millions of pixels, so they are kept as counts of this fine a bin (degrees)
BIN = 0.01
TOP = 0.9


@dataclass
class Spectrum:
    """One view at one stage: shares of the residual energy, cumulative `rho [3]`, and the leading direction `[3]`."""

    rho: np.ndarray
    direction: np.ndarray


def spectrum(residual: np.ndarray) -> Spectrum:
    """Of `residual [pixels, 3]`; the direction points to positive sums (smoke adds light). Zero residual: rho is 1."""
    energy, vectors = np.linalg.eigh(residual.T @ residual)
    energy, vectors = np.maximum(energy[::-1], 0), vectors[:, ::-1]
    total = energy.sum()
    rho = np.cumsum(energy) / total if total > 0 else np.ones(3)
    direction = vectors[:, 0]
    return Spectrum(rho, direction if direction.sum() >= 0 else -direction)


def angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Acute angle between directions in degrees; `a [..., 3]` against `b [3]`."""
    cosine = np.abs(a @ b) / np.maximum(np.linalg.norm(a, axis=-1) * np.linalg.norm(b), 1e-300)
    return np.degrees(np.arccos(np.minimum(cosine, 1)))


def pairwise_median(directions: np.ndarray) -> float | None:
    """Median acute angle between all pairs of `directions [n, 3]`."""
    pairs = [float(angle(directions[i], directions[j])) for i, j in combinations(range(len(directions)), 2)]
    return float(np.median(pairs)) if pairs else None


def reference_isp(views, stem: str, fallback: np.ndarray) -> np.ndarray:
    """RAW to linear sRGB as one row matrix `[3, 3]`: white balance, then the file's colour matrix (or `fallback`)."""
    matrix = views.camera_matrix(stem)
    return fallback if matrix is None else views.white_balance(stem)[:, None] * matrix.T


def stages(raw: np.ndarray, front: np.ndarray) -> dict[str, np.ndarray]:
    """RAW `[..., 3]` at the three stages, `[pixels, 3]` float64."""
    linear = raw.reshape(-1, 3).astype(np.float64) @ front
    return {"p1": linear @ SRGB_TO_XYZ.T, "p2": linear, "p3": encode(np.clip(linear, 0, 1))}


class AngleCounts:
    """A histogram of angles that many views add to."""

    def __init__(self):
        self.counts = np.zeros(round(90 / BIN) + 1, np.int64)

    def add(self, angles: np.ndarray) -> None:
        self.counts += np.bincount((angles / BIN).astype(np.int64), minlength=len(self.counts))

    def quantile(self, q: float) -> float | None:
        total = self.counts.sum()
        return float(np.searchsorted(np.cumsum(self.counts), q * total) * BIN) if total else None


def study_scene(source, clean, base, pixel_angles: dict[str, AngleCounts]) -> dict:
    """All views of one scene: mean rho per stage, PSNR in P1 before and after, and the directions of every view."""
    check_twins(source, clean)
    fallback = base.front_matrix().detach().double().numpy()
    rows, directions = [], {stage: [] for stage in STAGES}
    for stem in progress(sorted(source.stems), "rank-one structure", unit="view"):
        smoke_raw, clean_raw = source.raw(stem), clean.raw(stem)
        check_grids(stem, smoke_raw, clean_raw)
        front = reference_isp(source, stem, fallback)
        smoky, target = stages(smoke_raw, front), stages(clean_raw, front)
        row = {}
        for stage in STAGES:
            residual = smoky[stage] - target[stage]
            found = spectrum(residual)
            row[f"rho1_{stage}"], row[f"rho2_{stage}"] = float(found.rho[0]), float(found.rho[1])
            directions[stage].append(found.direction)
            size = np.linalg.norm(residual, axis=1)
            strong = residual[(size >= np.quantile(size, TOP)) & (size > 0)]
            pixel_angles[stage].add(angle(strong, found.direction))
            if stage == "p1":
                # the oracle knows each pixel's strength along the one direction
                rest = residual - np.outer(residual @ found.direction, found.direction)
                row["psnr_before"], row["psnr_after"] = (psnr_of_error(float(np.mean(r**2))) for r in (residual, rest))
        rows.append(row)
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {"means": means, "directions": {stage: np.array(d) for stage, d in directions.items()}}


def study(scenes: dict[str, tuple]) -> tuple[list[dict], dict, dict[str, dict[str, np.ndarray]]]:
    """`scenes`: name to (source, clean, base). Rows per scene, the result over all scenes, and directions by scene."""
    from fujinsplat.analysis.output import equal_scene_mean

    counts = {stage: AngleCounts() for stage in STAGES}
    rows, directions = [], {}
    for name, views in scenes.items():
        source, clean, base = views
        found = study_scene(source, clean, base, counts)
        directions[name] = found["directions"]
        within = {f"within_{stage}": pairwise_median(found["directions"][stage]) for stage in STAGES[:2]}
        rows.append({"scene": name, **found["means"], **within})
    mean = equal_scene_mean(rows)
    result = {name: value for name, value in mean.items() if name != "scene"}
    for stage in STAGES:
        result[f"pixel_angle_median_{stage}"] = counts[stage].quantile(0.5)
        result[f"pixel_angle_p90_{stage}"] = counts[stage].quantile(0.9)
    for stage in STAGES[:2]:
        centres = np.array([d[stage].mean(axis=0) for d in directions.values()])
        result[f"between_{stage}"] = pairwise_median(centres)
    for name in ("psnr_before", "psnr_after"):
        values = [row[name] for row in rows]
        result[f"{name}_range"] = [min(values), max(values)]
    return [*rows, mean], result, directions


def sentence(result: dict, published: dict) -> str:
    return (
        f"One chromatic direction carries {result['rho1_p1']:.1%} (XYZ), {result['rho1_p2']:.1%} (linear sRGB) and"
        f" {result['rho1_p3']:.1%} (encoded) of the smoke residual's energy; removing it with the oracle strength"
        f" raises agreement with the clean capture from {result['psnr_before']:.2f} to {result['psnr_after']:.2f} dB"
        f" (published on RealX3D: {published['rho1_p1']:.1%}, {published['rho1_p2']:.1%}, {published['rho1_p3']:.1%};"
        f" {published['psnr_before']:.2f} to {published['psnr_after']:.2f} dB)."
    )


def draw(rows: list[dict], result: dict, directions: dict):
    """(a) PSNR before and after per scene; (b) each view's leading direction in XYZ chromaticity."""
    from fujinsplat.core.style import BLUE, GREY, MARKERS, VERMILION, figure, panel

    fig, (left, right) = figure(1, 2, height=2.7, gridspec_kw={"width_ratios": [1.25, 1]})
    scenes = rows[:-1]
    at = np.arange(len(scenes))
    for name, color, marker, label in (
        ("psnr_before", VERMILION, "o", "smoky"),
        ("psnr_after", BLUE, "s", "leading direction removed"),
    ):
        left.plot(at, [row[name] for row in scenes], marker, color=color, label=label)
        left.axhline(result[name], color=color, ls="--", lw=0.9)
    for i, row in enumerate(scenes):
        left.plot([i, i], [row["psnr_before"], row["psnr_after"]], color=GREY, lw=0.8, zorder=0)
    left.set_xticks(at, [row["scene"] for row in scenes], rotation=35, ha="right")
    left.set(ylabel="PSNR to clean, linear XYZ (dB)")
    left.margins(y=0.18)
    left.legend(loc="upper center", ncols=2)
    panel(left, "a", "dashed: equal-scene means")
    for i, (name, by_stage) in enumerate(directions.items()):
        points = by_stage["p1"] / by_stage["p1"].sum(axis=1, keepdims=True)
        marker = MARKERS[i % len(MARKERS)]
        right.plot(points[:, 0], points[:, 1], marker, color=f"C{i % 8}", ms=2.5, alpha=0.6, mew=0)
        centre = points.mean(axis=0)
        right.plot(*centre[:2], marker, color=f"C{i % 8}", ms=7, mec="white", mew=0.7, label=name)
    right.set(xlabel="x of the direction", ylabel="y of the direction")
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.1)
    panel(right, "b", "leading directions, views and scene means")
    return fig
