"""Speed of the Monotone Color Flow: plain torch reference against the fused CPU kernels, in one run.

    python -m benchmarks.bench_flow        (from the project's folder; `make bench` runs every benchmark)

Each row: what, reference seconds, fused seconds, ratio, and the ratio the project asks for. Times are the smallest of
several repetitions, so that a busy machine disturbs them least; both sides use the same threads.
"""

import time
from collections.abc import Callable

HEIGHT, WIDTH = 1189, 1810
BATCH, PIXELS = 16, 4096


def seconds(call: Callable[[], object], repeats: int, warm: int = 1) -> float:
    for _ in range(warm):
        call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def run() -> list[dict]:
    """One dict per measurement: name, reference and fused seconds, ratio, wanted ratio."""
    import torch

    from fujinsplat.flow import fused, layout, reference

    generator = torch.Generator().manual_seed(0)
    picture = torch.rand(1, HEIGHT * WIDTH, 3, generator=generator)
    action = 0.3 * torch.randn(1, layout.size(), generator=generator)
    batch = torch.rand(BATCH, PIXELS, 3, generator=generator)
    actions = 0.3 * torch.randn(BATCH, layout.size(), generator=generator)

    def gradients(direction):
        colors, coefficients = batch.clone().requires_grad_(), actions.clone().requires_grad_()
        direction(colors, coefficients).square().mean().backward()

    rows = []

    def measure(name, wanted, call, repeats=(3, 10)):
        slow, fast = seconds(lambda: call(reference), repeats[0]), seconds(lambda: call(fused), repeats[1])
        rows.append({"name": name, "reference": slow, "fused": fast, "ratio": slow / fast, "wanted": wanted})

    size = f"{WIDTH}x{HEIGHT} float32"
    measure(f"flow forward, {size}", 15, lambda side: side.apply(picture, action))
    measure(f"flow inverse, {size}", 15, lambda side: side.invert(picture, action))
    size = f"{BATCH}x{PIXELS} pixels"
    measure(f"flow forward + gradients, {size}", 5, lambda side: gradients(side.apply), (10, 30))
    measure(f"flow inverse + gradients, {size}", 5, lambda side: gradients(side.invert), (10, 30))
    double = picture.double()
    measure("flow forward, float64", None, lambda side: side.apply(double, action.double()))
    return rows


def expert_fit() -> float:
    """Seconds to fit the expert actions of one scene: 24 views, 4,096 pixels each, 500 steps (20 s or less)."""
    import torch

    from fujinsplat.actions.fit import fit
    from fujinsplat.core.color import encode
    from fujinsplat.core.settings import ActionsSettings

    generator = torch.Generator().manual_seed(0)
    clean_linear = 0.6 * torch.rand(24, PIXELS, 3, generator=generator) ** 2
    smoky_linear = 0.36 * clean_linear + 0.64 * torch.tensor([0.30, 0.35, 0.33])
    pictures = encode(smoky_linear), encode(clean_linear)
    fit(*pictures, ActionsSettings(steps=2))
    return seconds(lambda: fit(*pictures, ActionsSettings()), repeats=1, warm=0)


def main() -> None:
    print(f"{'':44s} {'reference':>11s} {'fused':>11s} {'ratio':>8s} {'wanted':>7s}")
    for row in run():
        wanted = f"{row['wanted']}x" if row["wanted"] else ""
        print(
            f"{row['name']:44s} {row['reference'] * 1e3:8.1f} ms {row['fused'] * 1e3:8.2f} ms"
            f" {row['ratio']:7.1f}x {wanted:>7s}"
        )
    print(f"{'expert fit, 24 views, 500 steps':44s} {'':11s} {expert_fit():8.2f} s           <= 20 s")


if __name__ == "__main__":
    main()
