"""Speed of the smoke estimate: against plain torch, as a share of a training, and how it grows with views and pixels.

    python -m benchmarks smoke             (from the project's folder; about a minute)

Views are of a wall with procedural colours behind smoke that differs from view to view. All views see all of it, which
is the most work there is: surface points of a demo scene are seen by 15 of 24 views, and its estimates take half of the
share printed here. Seconds are CPU seconds, which a busy machine disturbs least.
"""

import resource
import time
from collections.abc import Callable

SIZES = ((120, 80, 24), (240, 160, 24), (480, 320, 24), (960, 640, 24), (1800, 1197, 26))
VIEWS = ((240, 160, 6), (240, 160, 12), (240, 160, 48), (240, 160, 96))
UPDATES = 5  # estimates of one training
ITERATIONS = 2000


def cpu_seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """Smallest CPU seconds of `call`."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def wall(width: int, height: int, count: int):
    """(views `[V, h, w, 3]`, cameras, depth, trusted): a plane at distance 4, cameras along a line before it."""
    import numpy as np
    import torch

    from fujinsplat.capture import Camera

    y, x = np.mgrid[0:height, 0:width] + 0.5
    K = np.array([[0.9 * width, 0, width / 2], [0, 0.9 * width, height / 2], [0, 0, 1.0]])
    u, v = (x - width / 2) / K[0, 0] * 4, (y - height / 2) / K[1, 1] * 4
    rng = np.random.default_rng(0)
    views, cameras = np.empty((count, height, width, 3), np.float32), []
    for k in range(count):
        shift = 1.5 * (k / max(count - 1, 1) - 0.5)
        viewmat = np.eye(4)
        viewmat[0, 3] = -shift
        cameras.append(Camera(f"{k:03d}", width, height, K, viewmat))
        world = u + shift
        clean = np.stack([0.2 + 0.2 * np.sin(3 * world + c) * np.cos(4 * v - c) for c in range(3)], -1)
        T = np.exp(-(0.8 + 0.3 * rng.normal() + 0.1 * u))[..., None]
        views[k] = clean * T + 0.13 * (1 - T)
    depth = torch.full((count, height, width), 4.0)
    return torch.from_numpy(views), cameras, depth, torch.ones_like(depth, dtype=torch.bool)


def plain_pairs(views, cameras, depth) -> None:
    """Regressions of the first four pairs with torch, every second pixel, without trimming: the kernel's reference."""
    import torch
    import torch.nn.functional as F

    height, width = depth.shape[1:]
    y, x = torch.meshgrid(torch.arange(1, height, 2), torch.arange(1, width, 2), indexing="ij")
    y, x = y.reshape(-1), x.reshape(-1)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        K, z = torch.tensor(cameras[i].K), depth[i][y, x].double()
        local = torch.stack([(x + 0.5 - K[0, 2]) / K[0, 0] * z, (y + 0.5 - K[1, 2]) / K[1, 1] * z, z], -1)
        there = local + torch.tensor(cameras[j].viewmat[:3, 3] - cameras[i].viewmat[:3, 3])
        at = torch.stack([there[:, 0] / z * K[0, 0] + K[0, 2], there[:, 1] / z * K[1, 1] + K[1, 2]], -1)
        place = (at / torch.tensor([width, height]) * 2 - 1)[None, None].float()
        b = F.grid_sample(views[j].permute(2, 0, 1)[None], place, align_corners=False)[0, :, 0].T
        a = views[i][y, x]
        cell = y * 3 // height * 4 + x * 4 // width
        for c in range(12):
            p, q = a[cell == c], b[cell == c]
            dp, dq = p - p.mean(0), q - q.mean(0)
            k = ((dp * dp).sum() / (dq * dq).sum()).sqrt()
            p.mean(0) - k * q.mean(0)


def main() -> None:
    import numpy as np
    import torch

    from fujinsplat.smoke import estimate, kernels

    torch.set_num_threads(1)
    views, cameras, depth, trusted = wall(240, 160, 24)
    pairs = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    arrays = (views.numpy(), depth.numpy(), trusted.numpy(), kernels.pack_cameras(cameras))
    kernels.regress_pairs(*arrays, pairs, 2, 4, 3, 40)
    ours = cpu_seconds(lambda: kernels.regress_pairs(*arrays, pairs, 2, 4, 3, 40), 5)
    plain = cpu_seconds(lambda: plain_pairs(views, cameras, depth), 5)
    print(f"regressions of a pair, 240x160: {ours / 4 * 1e3:.2f} ms, plain torch {plain / 4 * 1e3:.2f} ms", flush=True)

    estimate(views, cameras, depth, trusted)
    print(f"{'views':>18s} {'first s':>8s} {'again s':>8s} {'training %':>10s} {'peak MB':>8s}", flush=True)
    for width, height, count in (*SIZES, *VIEWS):
        views, cameras, depth, trusted = wall(width, height, count)
        first, again = both(views, cameras, depth, trusted)
        share = 100 * (first + (UPDATES - 1) * again) / (ITERATIONS * step_seconds(width, height))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(f"{f'{width}x{height}x{count}':>18s} {first:8.2f} {again:8.2f} {share:10.1f} {peak:8.0f}", flush=True)


def both(*scene) -> tuple[float, float]:
    """CPU seconds of a first estimate, and of one that starts from it."""
    from fujinsplat.smoke import estimate

    start = time.process_time()
    found = estimate(*scene)
    first = time.process_time() - start
    return first, cpu_seconds(lambda: estimate(*scene, previous=found))


def step_seconds(width: int, height: int) -> float:
    """CPU seconds of one whole training iteration of 10,000 Gaussians at this size, with the smoke's own loss."""
    import torch

    from benchmarks.bench_splat import frustum, iteration
    from fujinsplat.smoke.loss import linear_loss
    from fujinsplat.splat import rasterize

    scene, target = frustum(width, height, 10_000)
    scene["sh"] = scene["sh"][:, :4]  # the row's degree 1
    camera = {name: scene[name] for name in ("viewmat", "K", "width", "height")}
    weight = torch.ones(height, width)
    step = iteration(
        scene, target, lambda *a: rasterize(*a, **camera)[0], lambda x, y: linear_loss(x, y, weight, edges=0.2)
    )
    step()
    return cpu_seconds(step, 3)
