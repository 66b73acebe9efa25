"""Speed and memory of the Base ISP: plain torch reference against the fused CPU path, in one run.

    python -m benchmarks.bench_isp         (from the project's folder; `make bench` runs every benchmark)

Each row: what, reference seconds, fused seconds, ratio, and what the project asks for. Times of single calls are the
smallest of several repetitions, so that a busy machine disturbs them least; both sides use the same threads.
"""

import subprocess
import sys

from benchmarks.bench_flow import HEIGHT, WIDTH, seconds

MEGAPIXELS = (4000, 6000)  # 24 million pixels
REFERENCE_UPDATES = 50  # of 500: the reference's time per update is constant

_PEAK = """
import resource, numpy as np
from fujinsplat.isp import BaseISP, develop, materialize
raw = np.zeros(({0}, {1}, 3), np.uint16)
raw[:] = np.random.default_rng(0).integers(0, 65535, ({1}, 3), dtype=np.uint16)
picture = materialize(develop(BaseISP(), raw.astype(np.float32) / np.float32(65535)))
assert picture.shape == raw.shape
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


class SmoothViews:
    """Source views in memory: smooth random colours, rendered by a camera with a matrix and a tone curve."""

    def __init__(self, count: int, height: int, width: int):
        import numpy as np

        from fujinsplat.core import color

        self.stems = [f"{index:04d}" for index in range(count)]
        self.matrix = np.array([[1.5, -0.4, -0.1], [-0.2, 1.5, -0.3], [0.0, -0.4, 1.4]])
        self._views = {}
        y, x = np.mgrid[0:height, 0:width].astype(np.float32) / width
        for index, stem in enumerate(self.stems):
            phases = np.random.default_rng(index).uniform(0, 6, (3, 2))
            waves = [np.sin(7 * x + a) * np.cos(9 * y + b) for a, b in phases]
            raw = (0.12 + 0.1 * np.stack(waves, axis=-1)) / self.white_balance(stem)
            linear = np.maximum(raw * self.white_balance(stem) @ self.matrix.T, 0) * 3
            rgb = np.rint(255 * np.clip(color.encode(linear * 1.3 / (linear + 0.6)), 0, 1)).astype(np.uint8)
            self._views[stem] = raw.astype(np.float32), rgb

    def raw(self, stem):
        return self._views[stem][0]

    def rgb(self, stem):
        return self._views[stem][1]

    def white_balance(self, stem):
        import numpy as np

        return np.array([2.3, 1.0, 1.7])

    def camera_matrix(self, stem):
        return self.matrix


def run() -> list[dict]:
    """One dict per measurement: name, reference and fused seconds, ratio, wanted ratio."""
    import torch

    from fujinsplat.core.settings import IspSettings
    from fujinsplat.isp import BaseISP, calibrate, calibration, initial, samples

    torch.manual_seed(0)
    base = BaseISP(0.4, (0.45, -0.3, -0.15), [[1.5, -0.2, 0.0], [-0.4, 1.4, -0.4], [-0.1, -0.2, 1.4]])
    with torch.no_grad():
        for parameter in (base.shaper, base.g9, base.r33, base.tone):
            parameter += 0.2 * torch.randn_like(parameter)
    views = SmoothViews(4, HEIGHT, WIDTH)
    picture = torch.from_numpy(views.raw("0000"))
    settings = IspSettings()
    pixels = picture.reshape(-1, 3)[torch.randint(0, HEIGHT * WIDTH, (8192 + 16384,))]
    rows = []

    def add(name, slow, fast, wanted):
        rows.append({"name": name, "reference": slow, "fused": fast, "ratio": slow / fast, "wanted": wanted})

    def gradients(stages):
        sum(out.sum() for out in stages(pixels)).backward()

    with torch.no_grad():
        slow = seconds(lambda: base.forward_reference(picture), 3)
        fast = seconds(lambda: base(picture), 10)
    add(f"base forward, {WIDTH}x{HEIGHT} float32", slow, fast, "10x")
    slow, fast = seconds(lambda: gradients(base.stages_reference), 5), seconds(lambda: gradients(base.stages), 20)
    add(f"base forward + gradients, {len(pixels)} pixels", slow, fast, None)

    calibrate(
        views, settings.model_copy(update={"warmup_steps": 1, "joint_steps": 1})
    )  # compiled before the clock runs
    fast = seconds(lambda: calibrate(views, settings), 1, warm=0)
    few = settings.model_copy(update={"warmup_steps": 0, "joint_steps": REFERENCE_UPDATES})
    drawn = samples.take(views, few)
    start = initial.initial_state(drawn, few, "the benchmark")
    once = seconds(lambda: calibration.optimise(start, drawn, few, use_reference=True), 1, warm=0)
    updates = settings.warmup_steps + settings.joint_steps
    add(f"calibration of a scene, {updates} updates", once / REFERENCE_UPDATES * updates, fast, "10 s")
    return rows


def peak_gigabytes() -> float:
    """Peak memory of a process that develops one 24-megapixel picture, interpreter and libraries included."""
    done = subprocess.run([sys.executable, "-c", _PEAK.format(*MEGAPIXELS)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    print(f"{'':44s} {'reference':>11s} {'fused':>11s} {'ratio':>8s} {'wanted':>8s}")
    for row in run():
        print(
            f"{row['name']:44s} {row['reference'] * 1e3:8.1f} ms {row['fused'] * 1e3:8.1f} ms"
            f" {row['ratio']:7.1f}x {row['wanted'] or '':>8s}"
        )
    print(f"{'peak memory, one 24-megapixel picture':44s} {'':11s} {peak_gigabytes():8.2f} GB {'':8s} {'1.5 GB':>8s}")


if __name__ == "__main__":
    main()
