"""Expert actions (one per source pair) and the correction distribution [Sec. 3.3, supp. E, F]."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {"Population": "population", "Veil": "veil", "Degenerate": "veil"},
)
