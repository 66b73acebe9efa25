"""Speed of the Gaussian engine: against the prototype and the torch reference, and how cost grows.

    python -m benchmarks splat             (from the project's folder; `make bench` runs every benchmark)

Two sides of a comparison take turns in one process and the smallest time of each counts, so that a busy machine
disturbs both alike. The prototype is used where ../shared/prototypes is present.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

PROTOTYPES = Path(__file__).parents[2] / "shared" / "prototypes"
LEAVES = ("means", "quats", "scales", "opacities", "sh")


def in_turns(*calls: Callable[[], object], repeats: int = 12) -> list[float]:
    """Smallest seconds of each call, taking turns."""
    for call in calls:
        call()
    times = [[] for _ in calls]
    for _ in range(repeats):
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def frustum(width: int, height: int, count: int, seed: int = 0):
    """Gaussians in front of one camera, depth 2 to 8, about 1.6 pixels wide: (arguments of `rasterize`, target)."""
    import torch

    g = torch.Generator().manual_seed(seed)
    focal = 0.9 * width
    K = torch.tensor([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])
    z = 2 + 6 * torch.rand(count, generator=g)
    u = (torch.rand(count, generator=g) * 1.08 - 0.04) * width
    v = (torch.rand(count, generator=g) * 1.08 - 0.04) * height
    size = torch.exp(0.47 + 0.35 * torch.randn(count, 1, generator=g) + 0.3 * torch.randn(count, 3, generator=g))
    scene = {
        "means": torch.stack([(u - width / 2) * z / focal, (v - height / 2) * z / focal, z], -1),
        "quats": torch.nn.functional.normalize(torch.randn(count, 4, generator=g), dim=-1),
        "scales": size * z[:, None] / focal,
        "opacities": 0.1 + 0.8 * torch.rand(count, generator=g),
        "sh": torch.cat([torch.randn(count, 1, 3, generator=g) * 0.8, torch.randn(count, 15, 3, generator=g) * 0.1], 1),
        "viewmat": torch.eye(4),
        "K": K,
        "width": width,
        "height": height,
    }
    return scene, torch.rand(height, width, 3, generator=g)


def forward_backward(scene: dict, target, dtype=None) -> Callable[[], None]:
    """Our rasteriser, both directions."""
    from fujinsplat.splat import rasterize

    arguments = {k: v.detach().clone().to(dtype) if hasattr(v, "detach") else v for k, v in scene.items()}
    leaves = {name: arguments[name].requires_grad_() for name in LEAVES}
    gradient = (target - 0.5).to(dtype)

    def call():
        rasterize(**arguments)[0].backward(gradient)
        for leaf in leaves.values():
            leaf.grad = None

    return call


def prototype_forward_backward(raster, scene: dict, target) -> Callable[[], None]:
    names = dict(zip(("means", "quats", "scales", "opac", "sh"), LEAVES, strict=True))
    leaves = {theirs: scene[ours].detach().clone().requires_grad_() for theirs, ours in names.items()}

    def call():
        image, _ = raster.render(leaves, scene["viewmat"], scene["K"], scene["width"], scene["height"])
        image.backward(target - 0.5)
        for leaf in leaves.values():
            leaf.grad = None

    return call


def iteration(scene: dict, target, render, objective) -> Callable[[], None]:
    """A whole training iteration: activations, render, objective, gradients, Adam."""
    import torch

    raw = {
        "means": scene["means"].clone(),
        "quats": scene["quats"].clone(),
        "scales": scene["scales"].log(),
        "opacities": scene["opacities"].logit(),
        "sh0": scene["sh"][:, :1].clone(),
        "shN": scene["sh"][:, 1:].clone(),
    }
    raw = {name: value.contiguous().requires_grad_() for name, value in raw.items()}
    optimizer = torch.optim.Adam([{"params": [v], "lr": 1e-4} for v in raw.values()], eps=1e-15, fused=True)

    def call():
        image = render(
            raw["means"], raw["quats"], raw["scales"].exp(), raw["opacities"].sigmoid(),
            torch.cat([raw["sh0"], raw["shN"]], 1),
        )  # fmt: skip
        objective(image, target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return call


def kernels() -> None:
    """Forward + backward and whole iterations, against the prototype."""
    import torch

    from fujinsplat.splat import rasterize
    from fujinsplat.splat.loss import photometric_loss

    raster = loss = None
    if PROTOTYPES.is_dir():
        sys.path.insert(0, str(PROTOTYPES))
        raster, loss = import_module("numba_raster"), import_module("numba_loss")
    else:
        print(f"no prototype at {PROTOTYPES}: our times alone")
    print(f"{'':44s} {'prototype':>11s} {'ours':>11s} {'ratio':>8s}  wanted")

    def row(name, ours, theirs):
        times = in_turns(ours, *([theirs] if theirs else []))
        other = f"{times[1] * 1e3:8.2f} ms" if theirs else ""
        ratio = f"{times[1] / times[0]:7.2f}x" if theirs else ""
        print(f"{name:44s} {other:>11s} {times[0] * 1e3:8.2f} ms {ratio:>8s}  {'>= 1x' if theirs else ''}", flush=True)

    for width, height, count in ((256, 192, 5_000), (256, 192, 20_000), (480, 320, 20_000), (480, 320, 50_000)):
        scene, target = frustum(width, height, count)
        theirs = prototype_forward_backward(raster, scene, target) if raster else None
        row(f"forward + backward, {width}x{height}, {count}", forward_backward(scene, target), theirs)
    scene, target = frustum(256, 192, 10_000)
    camera = {name: scene[name] for name in ("viewmat", "K", "width", "height")}
    ours = iteration(scene, target, lambda *a: rasterize(*a, **camera)[0], lambda x, y: photometric_loss(x, y, 0.2))
    theirs = None
    if raster:
        names = ("means", "quats", "scales", "opac", "sh")
        theirs = iteration(
            scene, target,
            lambda *a: raster.render(dict(zip(names, a, strict=True)), *camera.values())[0],
            lambda x, y: loss.loss(x, y, 0.2),
        )  # fmt: skip
    row("whole iteration, 256x192, 10000", ours, theirs)
    scene, target = frustum(64, 48, 1_000)
    slow, fast = in_turns(forward_backward(scene, target, torch.float64), forward_backward(scene, target), repeats=3)
    print(
        f"{'torch reference (float64), 64x48, 1000':44s} {slow * 1e3:8.1f} ms {fast * 1e3:8.2f} ms {slow / fast:7.0f}x"
    )


def growth() -> None:
    """Forward + backward at 480x320 over the number of Gaussians; the picture holds the same total coverage."""
    print(f"\n{'Gaussians, 480x320':>20s} {'ms':>9s} {'us per thousand':>16s}")
    for count in (1_000, 5_000, 20_000, 50_000, 100_000, 200_000, 500_000):
        scene, target = frustum(480, 320, count)
        scene["scales"] = scene["scales"] * min(1.0, (20_000 / count) ** 0.5)
        (taken,) = in_turns(forward_backward(scene, target), repeats=4)
        print(f"{count:20d} {taken * 1e3:9.2f} {taken * 1e9 / count:16.0f}", flush=True)


def write_scene(folder: Path, views: int, points: int = 6_000) -> dict[str, Path]:
    """A scene of 240x160 pictures on disk: renders of random Gaussians from a ring of cameras."""
    import numpy as np
    import torch

    from fujinsplat.capture import Camera
    from fujinsplat.capture.points import write_points
    from fujinsplat.core.files import write_json
    from fujinsplat.develop.store import Developed
    from fujinsplat.splat.model import Gaussians
    from fujinsplat.splat.render import render_encoded

    g = torch.Generator().manual_seed(5)
    count = 20_000
    place = torch.rand(count, 3, generator=g) * torch.tensor([6.0, 4.0, 2.0]) - torch.tensor([3.0, 2.0, -2.5])
    colour = torch.rand(count, 3, generator=g) ** 2
    world = Gaussians(
        {
            "means": place,
            "quats": torch.randn(count, 4, generator=g),
            "scales": -3.2 + 0.3 * torch.randn(count, 3, generator=g),
            "opacities": 1.5 + torch.randn(count, generator=g),
            "sh0": ((colour - 0.5) / 0.28209479177387814)[:, None],
            "shN": torch.zeros(count, 15, 3),
        }
    )
    cameras = []
    for i in range(views + 4):
        angle = 2.4 * i
        viewmat = np.eye(4)
        viewmat[:3, 3] = [-0.8 * np.cos(angle), -0.5 * np.sin(angle), 0.02 * (i % 7)]
        K = np.array([[200.0, 0, 120], [0, 200.0, 80], [0, 0, 1]])
        cameras.append(Camera(f"{i:04d}", 240, 160, K, viewmat))
    base = {c.stem: (render_encoded(world, c).numpy() * 255).round().astype(np.uint8) for c in cameras[:views]}
    actions = 0.02 * np.random.default_rng(0).standard_normal((views, 573))
    Developed.write(folder / "developed.safetensors", actions, base, 7, 16, "benchmark")
    parts = {"source": cameras[:views], "held": cameras[views:]}
    write_json(folder / "cameras.json", {part: [c.to_json() for c in members] for part, members in parts.items()})
    chosen = torch.randperm(count, generator=g)[:points]
    write_points(folder / "points.ply", place[chosen].numpy(), (colour[chosen].sqrt() * 255).to(torch.uint8).numpy())
    return {name: folder / file for name, file in FILES.items()}


FILES = {"developed": "developed.safetensors", "cameras": "cameras.json", "points": "points.ply"}


def command(files: dict[str, Path], out: Path, threads: int, **settings) -> list[str]:
    """The training command as the workflow calls it."""
    outputs = {
        "out": "a.ply",
        "model": "a.safetensors",
        "log": "a.jsonl",
        "alpha": "a.json",
        "checkpoints": "checkpoints",
    }
    options = [f"--{k}={v}" for k, v in files.items()] + [f"--{k}={out / v}" for k, v in outputs.items()]
    start = [sys.executable, "-m", "fujinsplat", "splat", "train", f"--threads={threads}", "--device=cpu"]
    return [*start, *options, "--settings", json.dumps(settings)]


def wall(*commands: list[str]) -> float:
    """Seconds until all commands, started together, have ended."""
    start = time.perf_counter()
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for c in commands]
    for process in running:
        _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(errors)
    return time.perf_counter() - start


def training() -> None:
    """The command itself: start, one demo-sized scene, growth with iterations and views, two side by side."""
    import os

    cores = len(os.sched_getaffinity(0))
    demo = {"max_gaussians": 10_000, "densify_every": 50}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = {}
        for views in (6, 12, 24):
            (folder / str(views)).mkdir()
            files[views] = write_scene(folder / str(views), views)
        nothing = command(files[24], folder / "o", 1, iterations=1, bake_steps=0)
        wall(nothing)
        print(f"\n{'warm start: one iteration, no export':44s} {wall(nothing):8.2f} s   <= 3 s", flush=True)
        scene = wall(command(files[24], folder / "o", cores, iterations=2000, bake_steps=150, **demo))
        print(
            f"{f'one scene: 24 views 240x160, 2000 iterations, {cores} threads':44s} {scene:8.2f} s   <= 40 s",
            flush=True,
        )

        print(f"\n{'growth (1 thread)':>20s} {'seconds':>9s} {'ms per iteration':>17s}")
        fixed = {"bake_steps": 0, "grad_threshold": 1e6, "prune_opacity": 0.0}  # the number of Gaussians stays
        for iterations, views in ((300, 24), (600, 24), (1200, 24), (600, 12), (600, 6)):
            taken = wall(command(files[views], folder / "o", 1, iterations=iterations, **fixed))
            print(f"{f'{iterations} x {views} views':>20s} {taken:9.2f} {taken / iterations * 1e3:17.2f}", flush=True)
        one = wall(command(files[24], folder / "a", 1, iterations=600, **fixed))
        two = wall(*(command(files[24], folder / name, 1, iterations=600, **fixed) for name in "ab"))
        print(f"{'two trainings side by side, one thread each':44s} {2 * one / two:7.2f}x   >= 1.6x", flush=True)


def main() -> None:
    kernels()
    growth()
    training()


if __name__ == "__main__":
    main()
