"""Decode a scene once: linear RAW views, camera RGB, cameras, points.

Three commands, one per part of a scene: `source` (smoky views, cameras, points), `clean` (their clean twins) and `held`
(the held references). Each opens the pictures of its own part only. Later stages read what these wrote, through
`SourceViews`, `HeldViews` and `read_cameras`; they never open a RAW file.
"""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "Camera": "cameras",
        "HeldViews": "views",
        "SourceViews": "views",
        "area_resize": "grid",
        "read_cameras": "cameras",
        "read_points": "points",
        "write_points": "points",
    },
)
