"""`python -m fujinsplat.compile`: compile every CPU kernel once, ahead of the first job.

Numba compiles a kernel for the argument types it meets, on first use. In a fresh clone the first jobs of a workflow run
side by side, and each would compile the same kernels again. Set-up calls this module instead. It is no command of
`fujinsplat`, whose commands are the stages: nothing depends on it, it only moves the waiting to where it is expected.

The types are right because the stages' own functions run here, on inputs as small as they accept. Parts run
side by side on all cores; with everything compiled all of it takes a few seconds.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from fujinsplat.errors import UserError
from fujinsplat.runtime import use_threads


def demo_world() -> None:
    """Ray casting, smoke, the camera's demosaicing."""
    from fujinsplat.config import DemoSettings
    from fujinsplat.demo import write_external, write_scene

    least = DemoSettings(width=32, height=32, source_views=2, held_views=1, external=1, points=64)
    with tempfile.TemporaryDirectory() as folder:
        write_scene(Path(folder), "Kogarashi", least)
        write_external(Path(folder) / "external", least)


def base_isp() -> None:
    """The Base ISP of pictures and of calibration."""
    import torch

    from fujinsplat.config import IspSettings
    from fujinsplat.isp import BaseISP, develop
    from fujinsplat.isp.calibration import Batch, loss_fused

    settings, base = IspSettings(), BaseISP()
    pixels, patches, probes = torch.rand(8, 3), torch.rand(2, 3), torch.rand(4, 3)
    batch = Batch(torch.cat([pixels, patches.repeat(4, 1), probes]), pixels, patches, 4)
    loss_fused(base, batch, base.front_matrix().detach(), settings)[0].backward()
    develop(base, torch.rand(2, 2, 3).numpy())


def flow_single() -> None:
    """The flow in float32 with its gradient and its picture term: fitting, controllers, development."""
    import torch

    from fujinsplat.actions.fit import fit
    from fujinsplat.config import ActionsSettings

    fit(torch.rand(1, 8, 3), torch.rand(1, 8, 3), ActionsSettings(steps=1, pixels=8))


def flow_double() -> None:
    """The flow in float64 in both directions: synthesis and analysis."""
    import torch

    from fujinsplat.flow import apply, invert, zeros

    colours, action = torch.rand(8, 3, dtype=torch.float64), zeros().double()
    invert(apply(colours, action), action)


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
    linear, _, _ = model.render(viewmat, camera, 16, 16)
    photometric_loss(display(linear), torch.rand(16, 16, 3), 0.2).backward()


# the longest first, so that the cores finish together
PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (base_isp, gaussians, demo_world, flow_single, flow_double)
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


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"fujinsplat: {error}")
