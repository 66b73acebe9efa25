"""`python -m fujinsplat.warmup`: compile every kernel once, ahead of the first job.

Numba compiles a kernel for the argument types it meets, on first use. In a fresh clone the first jobs of a workflow run
side by side, and each would compile the same kernels again. Set-up calls this module instead. It is no command of
`fujinsplat`, whose commands are the stages: nothing depends on it, it only moves the waiting to where it is expected.

The types are right because the stages' own functions run here, on inputs as small as they accept. Parts run
side by side on all cores; with everything compiled all of it takes a few seconds. Beside a CUDA build of torch,
gsplat's kernels are compiled as well.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.runtime import use_threads

# kernels of the flow are made for the registers that a curve's knots fill: these stand for all of the capacity study
CAPACITIES = (16, 8, 32)


def demo_world() -> None:
    """Ray casting, smoke, the camera's demosaicing."""
    from fujinsplat.core.settings import DemoSettings
    from fujinsplat.demo import write_external, write_scene

    least = DemoSettings(width=32, height=32, source_views=2, held_views=1, external=1, points=64)
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder), "Kogarashi", least)
        write_external(Path(folder) / "external", least)


def base_isp() -> None:
    """The Base ISP of pictures and of calibration."""
    import torch

    from fujinsplat.core.settings import IspSettings
    from fujinsplat.isp import BaseISP, develop
    from fujinsplat.isp.calibration import Batch, Terms, loss_fused

    settings, base = IspSettings(), BaseISP()
    pixels, patches, probes = torch.rand(8, 3), torch.rand(2, 3), torch.rand(4, 3)
    batch = Batch(torch.cat([pixels, patches.repeat(4, 1), probes]), pixels, patches, 4)
    loss_fused(base, batch, Terms.of(base, settings), settings)[0].backward()
    develop(base, torch.rand(2, 2, 3).numpy())


def flow_single() -> None:
    """The flow in float32 with its gradient and its picture term: fitting, controllers, development."""
    import torch

    from fujinsplat.actions.fit import fit
    from fujinsplat.core.settings import ActionsSettings

    for M in CAPACITIES:
        fit(torch.rand(1, 8, 3), torch.rand(1, 8, 3), ActionsSettings(steps=1, pixels=8), M=M)


def flow_double() -> None:
    """The flow in float64 in both directions: synthesis and analysis."""
    import torch

    from fujinsplat.flow import apply, invert, zeros

    colours = torch.rand(8, 3, dtype=torch.float64)
    for M in CAPACITIES:
        action = zeros(M=M).double()
        invert(apply(colours, action, M=M), action, M=M)


def gaussians() -> None:
    """Rasteriser and training loss, with their gradients."""
    import numpy as np
    import torch

    from fujinsplat.splat.loss import display, photometric_loss
    from fujinsplat.splat.model import Gaussians

    rng = np.random.default_rng(0)
    model = Gaussians.from_points(rng.random((8, 3), np.float32), rng.integers(0, 255, (8, 3), np.uint8), 3, "cpu")
    viewmat, camera = torch.eye(4), torch.tensor([[8.0, 0, 8], [0, 8, 8], [0, 0, 1]])
    viewmat[2, 3] = 2
    for with_depth in (False, True):
        linear, _, info = model.render(viewmat, camera, 16, 16, with_depth=with_depth)
        loss = photometric_loss(display(linear), torch.rand(16, 16, 3), 0.2)
        torch.autograd.grad(loss + info["depth"].mean() if with_depth else loss, list(model.parameters.values()))


def channels() -> None:
    """The rasteriser of any number of channels, with its gradients: models with a medium."""
    import torch

    from fujinsplat.splat.raster.channels import rasterize_channels

    means, camera = torch.rand(8, 3) + torch.tensor([0, 0, 2.0]), torch.tensor([[8.0, 0, 8], [0, 8, 8], [0, 0, 1]])
    leaves = (means, torch.rand(8, 4), torch.rand(8, 3), torch.rand(8), torch.rand(8, 6))
    for leaf in leaves:
        leaf.requires_grad_()
    blended, _, _ = rasterize_channels(*leaves, torch.eye(4), camera, 16, 16)
    torch.autograd.grad(blended.sum(), leaves)


def smoke() -> None:
    """Regressions of view pairs, tracks, and the fit."""
    import numpy as np
    import torch

    from fujinsplat.smoke import kernels

    cams = np.tile(np.concatenate([np.eye(3).ravel(), [0, 0, 0], [8, 8, 8, 8]]), (2, 1))
    views, depth = torch.rand(2, 16, 16, 3).numpy(), np.ones((2, 16, 16), np.float32)
    trusted, pairs = np.ones((2, 16, 16), np.bool_), np.array([[0, 1], [1, 0]])
    kernels.regress_pairs(views, depth, trusted, cams, pairs, 1, 2, 2, 8)
    tracks = kernels.find_tracks(views, depth, trusted, cams, pairs[:, 1:].copy(), 4, 1, 2)
    unknowns = np.ones(2 * (4 + 4 + kernels.LEVEL) + 3)
    n, weight = len(unknowns), np.ones(len(tracks[1]))
    kernels.consensus_equations(
        *tracks, unknowns, (2, 2, 2, 2), weight, 0.03, 0.3, 0.02, 0.6, 1.0, np.zeros((n, n)), np.zeros(n)
    )


def lenses() -> None:
    """Pictures straightened, RAW and RGB, and laid on one another."""
    import numpy as np

    from fujinsplat.capture.lens import Lens, straighten_raw, straighten_rgb

    lens = Lens("SIMPLE_RADIAL", 16, 16, (16.0, 8.0, 8.0, 0.01))
    straighten_raw(lens, np.zeros((16, 16, 3), np.uint16))
    straighten_rgb(lens, np.zeros((16, 16, 3), np.uint8))


def restorers() -> None:
    """Layer normalisation of a dehazing network."""
    import torch

    from fujinsplat.restore.norm import layer_norm

    for dtype in (torch.float32, torch.bfloat16):
        layer_norm(torch.zeros(1, 8, dtype=dtype), torch.ones(8), torch.zeros(8), 1e-6)


# the longest first, so that the cores finish together
PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part
    for part in (base_isp, gaussians, channels, demo_world, flow_single, flow_double, smoke, lenses, restorers)
}


def compile_part(name: str) -> float:
    """Compile one part in this process; seconds it took."""
    started = time.monotonic()
    PARTS[name]()
    return time.monotonic() - started


def main() -> None:
    """All parts, side by side; a terminal gets a line for each. A process takes several in turn: torch loads once."""
    workers = min(len(os.sched_getaffinity(0)), len(PARTS))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=use_threads, initargs=(1,)) as pool:
        running = {pool.submit(compile_part, name): name for name in PARTS}
        for done in as_completed(running):
            name = running[done].replace("_", " ")
            if error := done.exception():
                pool.shutdown(cancel_futures=True)
                raise UserError(f"the kernels of {name} do not compile: {type(error).__name__}: {error}") from error
            if sys.stderr.isatty():
                print(f"  {name} ({done.result():.0f} s)", file=sys.stderr, flush=True)
    gpu_kernels()


def gpu_kernels() -> None:
    """gsplat's, where torch is a CUDA build."""
    import torch

    if torch.version.cuda is not None:
        from fujinsplat.compat.gsplat_cuda import compile_kernels

        compile_kernels()


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"fujinsplat: {error}")
