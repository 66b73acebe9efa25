"""Train, render and export Gaussians."""

from fujinsplat.lazy import exports

__getattr__ = exports(__name__, {"rasterize": "raster.engine"})
