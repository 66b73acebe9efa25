"""The pictures a row starts from, made once per scene and front and shared by all rows of that front."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"Views": "store", "Pictures": "store", "FRONTS": "fronts"})
