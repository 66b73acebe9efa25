"""Train, render and export Gaussians."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"rasterize": "raster.engine"})
