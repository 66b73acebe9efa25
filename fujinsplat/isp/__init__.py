"""The per-scene Base ISP: what the scene's own camera does to its RAW, haze included, and nothing more.

`BaseISP` maps camera-linear RAW (no white balance) to encoded RGB comparable with the camera's picture / 255.
`develop` runs it over a whole picture, `materialize` makes the 8-bit picture, `save` / `load` keep it.
"""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "BaseISP": "model",
        "PARAMETERS": "model",
        "develop": "picture",
        "materialize": "picture",
        "calibrate": "calibration",
        "clean_fidelity": "fidelity",
        "source_fidelity": "fidelity",
        "import_checkpoint": "storage",
        "save": "storage",
        "load": "storage",
    },
)
