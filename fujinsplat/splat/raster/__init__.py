"""Rasterisers: a readable reference, fast CPU kernels with hand-written gradients, and gsplat on CUDA."""

from pathlib import Path

from fujinsplat.lazy import exports
from fujinsplat.splat.raster.kernel_cache import forget_stale_kernels

forget_stale_kernels(Path(__file__).parent)

__getattr__ = exports(__name__, {"rasterize": "engine"})
