"""`python -m fujinsplat.compile`: compile every CPU kernel once, ahead of the first job.

Numba compiles a kernel for the argument types it meets, on first use. In a fresh clone the first jobs of a workflow run
side by side, and each would compile the same kernels again. Set-up calls this module instead. It is no command of
`fujinsplat`, whose commands are the stages: nothing depends on it, it only moves the waiting to where it is expected.

The types are right because the stages' own functions run here, on inputs as small as they accept. Parts run in
processes of their own, as many at a time as there are cores; with everything compiled all of it takes a few seconds.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    part.__name__: part for part in (gaussians, demo_world, flow_single, base_isp, flow_double)
}


def run_part(name: str) -> None:
    """Compile one part in a process of its own; a terminal gets one line."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "fujinsplat.compile", name], capture_output=True, text=True)
    if done.returncode:
        raise UserError(
            f"the kernels of {name} do not compile: {(done.stderr.strip() or 'no message').splitlines()[-1]}"
        )
    if sys.stderr.isatty():
        print(f"  kernels: {name.replace('_', ' ')} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)


def main(names: list[str]) -> None:
    """Without names all parts, side by side; with names these, here."""
    if names:
        use_threads(1)
        for name in names:
            PARTS[name]()
        return
    cores = use_threads(None)
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(run_part, PARTS))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(f"fujinsplat: {error}")
