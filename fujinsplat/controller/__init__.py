"""The scene-agnostic RAW controller: network, training, files [Sec. 3.3, supp. G]."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "Controller": "network",
        "Encoder": "network",
        "PARAMETERS": "network",
        "predict": "presentations",
        "summarise": "network",
        "load": "store",
        "save": "store",
    },
)
