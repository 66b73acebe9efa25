"""The registry of corrections."""

from fujinsplat.core.parts import Correction, Registry
from fujinsplat.develop.corrections import controller, expert, mean, none

CORRECTIONS: Registry[Correction] = Registry(
    "correction", "a colour action per view", none.PART, controller.PART, mean.PART, expert.PART
)
