"""The Monotone Color Flow: a bounded, invertible colour operator of 573 coefficients [Sec. 3.3, supp. C]."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "apply": "operator",
        "invert": "operator",
        "average": "layout",
        "curve_size": "layout",
        "pack": "layout",
        "probe_grid": "layout",
        "size": "layout",
        "split": "layout",
        "zeros": "layout",
        "Actions": "store",
        "load": "store",
        "save": "store",
    },
)
