"""The registry of fronts."""

from fujinsplat.core.parts import Front, Registry
from fujinsplat.views.fronts import base, camera, clean, cleared, raw, restored

FRONTS: Registry[Front] = Registry(
    "front",
    "the pictures a row starts from",
    base.PART,
    camera.PART,
    clean.PART,
    cleared.PART,
    raw.PART,
    restored.PART,
)
