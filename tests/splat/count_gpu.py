"""`python tests/splat/count_gpu.py`: what an iteration asks of a GPU, counted on gsplat's twin; a model of its time.

Kernels do not depend on sizes. Bytes are those that torch's operations read and write; three small runs of different
sizes give their share per pixel and per Gaussian. gsplat's own kernels are counted as calls: their time is assumed, and
grows with the Gaussians. The model adds up: bytes over bandwidth, or the time to launch the kernels where that is
longer, and gsplat's part.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

# card: bandwidth GB/s, microseconds to launch a kernel from Python, milliseconds of gsplat's kernels for half a million
# Gaussians and 1.5 megapixels: an assumption for the A100, taken to the others between their bandwidths and arithmetic
CARDS = {"V100": (900, 8.0, 14.0), "A100": (1555, 7.0, 9.0), "RTX 4090": (1008, 5.0, 6.0)}
PIXELS, GAUSSIANS, COLOURS = 1_500_000, 500_000, 300_000
MORE = (1_000_000, 3_000_000)
ITERATIONS, DENSIFYING, MOVING = 18_000, 6_000, 3_000
USED = 0.75  # of the bandwidth, by operations of this kind


def count(width: int, height: int, points: int, iteration: int, folder: Path):
    """One iteration of a run of 40: 8 densifies, 39 does not, 32 lies in the delta-ISP's window."""
    import conftest
    import twin
    from test_cuda_path import QUICK, counted_run

    conftest.WIDTH, conftest.HEIGHT = width, height
    made = conftest.scene_files._get_wrapped_function()

    class Folders:
        def mktemp(self, name: str) -> Path:
            path = folder / f"{name}-{width}-{points}-{iteration}"
            path.mkdir()
            return path

    files = made(Folders())
    if points != 200:
        from plyfile import PlyData

        ply = PlyData.read(files.points)
        some = np.random.default_rng(0).integers(0, 200, points)
        ply["vertex"].data = ply["vertex"].data[some]
        for axis in "xyz":
            ply["vertex"].data[axis] += 0.01 * np.random.default_rng(1).standard_normal(points)
        ply.write(str(files.points))
    with pytest.MonkeyPatch.context() as patch:
        twin.install(patch)
        twin.CALLS.clear()
        settings = QUICK.model_copy(update={"sh_degree": 3, "sh_interval": 1, "grad_threshold": 1.0})
        counting = counted_run(
            files, folder / f"run-{width}-{points}-{iteration}", settings, iteration, reconcile="delta"
        )
    return counting


def main() -> None:
    sizes = [(60, 44, 200), (90, 66, 200), (60, 44, 400)]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, iteration in (("densifying", 8), ("ordinary", 39), ("delta-ISP moving", 32)):
            found = [count(*size, iteration, Path(folder)) for size in sizes]
            kernels = sum(found[0].kernels.values())
            pixels = (found[1].bytes - found[0].bytes) / (90 * 66 - 60 * 44)
            gaussians = (found[2].bytes - found[0].bytes) / 200
            rows[name] = kernels, pixels, gaussians, sum(found[0].waits.values())
    print("| iteration | kernels of torch | bytes per pixel | bytes per Gaussian | waits |\n|---|--:|--:|--:|--:|")
    for name, (kernels, pixels, gaussians, waits) in rows.items():
        print(f"| {name} | {kernels} | {pixels:,.0f} | {gaussians:,.0f} | {waits} |")
    print(f"\n{model(rows)}")


def model(rows: dict) -> str:
    """The table of times: what was counted, for each number of Gaussians and each card."""
    lines = [
        "| Gaussians, card | ordinary | densifying | delta-ISP moving | 18,000 iterations |",
        "|---|--:|--:|--:|--:|",
    ]
    for gaussians in (GAUSSIANS, *MORE):
        for card in CARDS:
            names = ("ordinary", "densifying", "delta-ISP moving")
            times = {name: milliseconds(card, rows, name, gaussians) for name in names}
            rest = ITERATIONS - DENSIFYING - MOVING
            total = DENSIFYING * times["densifying"] + MOVING * times["delta-ISP moving"] + rest * times["ordinary"]
            each = " | ".join(f"{t:.0f} ms" for t in times.values())
            lines.append(f"| {gaussians / 1e6:g} million, {card} | {each} | {total / 6e4:.1f} min |")
    return "\n".join(lines)


def milliseconds(card: str, rows: dict, name: str, number: int = GAUSSIANS) -> float:
    """Of one iteration. What moves with the delta-ISP is developed by colour: the test's pictures have as many colours
    as pixels, a photograph fewer."""
    bandwidth, launch, own = CARDS[card]
    kernels, pixels, gaussians, _ = rows[name]
    ordinary = min(pixels, rows["ordinary"][1])
    moved = ordinary * PIXELS + (pixels - ordinary) * COLOURS + gaussians * number
    return max(moved / (bandwidth * 1e9 * USED) * 1e3 + own * number / GAUSSIANS, kernels * launch / 1e3)


if __name__ == "__main__":
    main()
