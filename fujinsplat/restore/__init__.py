"""2D restorers: smoky pictures in, pictures of the same names and sizes out; the front of the paper's "restorer + 3DGS"
rows [Table 1]."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {"restore": "run", "unavailable": "run", "record": "run", "RestorerSettings": "settings"},
)
