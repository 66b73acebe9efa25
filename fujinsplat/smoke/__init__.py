"""Self-calibrated smoke: airlight and transmission of a scene from its own views, and what training makes of them.

No clean twin, no held view, no external capture and no trained network has a part in it.
"""

from fujinsplat.core.lazy import exports

__getattr__ = exports(
    __name__,
    {
        "Smoke": "model",
        "SmokeSettings": "settings",
        "SmokeTargets": "targets",
        "depth_loss": "loss",
        "estimate": "estimation",
        "linear_loss": "loss",
        "merged_depth": "depth",
        "point_depth": "depth",
        "points_from_views": "triangulate",
    },
)
