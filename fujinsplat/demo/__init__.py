"""The embedded demo world: a miniature of RealX3D made from a seed, in the same layout and with real RAW files.

Rooms (`rooms`, `rooms_external`) are built from furniture and ornaments (`builder`, `furniture`, `ornaments`), ray-cast
(`geometry`, `materials`, `render`), filled with smoke (`smoke`, `weather`), exposed on a sensor (`sensor`) and rendered
by a camera of its own (`camera`). `scene` and `external` write the folders.
"""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__, {"write_scene": "world", "write_external": "external", "SCENES": "weather", "measure": "weather"}
)
