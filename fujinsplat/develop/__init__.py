"""Apply a controller to a scene: per-view actions and the base output they act on [Sec. 3.3]."""

from fujinsplat.lazy import exports

__getattr__ = exports(__name__, {"Developed": "store", "develop_scene": "scene", "corrected": "scene"})
