"""Rasterisers: a readable reference, fast CPU kernels with hand-written gradients, and gsplat on CUDA."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"rasterize": "engine"})
