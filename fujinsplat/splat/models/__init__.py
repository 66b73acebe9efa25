"""The registry of models."""

from fujinsplat.core.parts import Model, Registry
from fujinsplat.splat.models import foreign, gaussians, seasplat, vanilla, watersplatting

MODELS: Registry[Model] = Registry(
    "model", "what is optimised", gaussians.PART, vanilla.PART, seasplat.PART, watersplatting.PART, foreign.PART
)
