"""The figures that need several stages' results: each takes a results folder and an outline and gives a figure."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"FIGURES": "build", "write_figure": "build"})
