"""Which trained controller a variant needs, by name. Pure Python: the workflow asks before anything heavy is imported.

`raw` is the method. A name says what differs from it: `rgb`, `raw-reconstruction`, `raw-curves`, `raw-k5`,
`raw-fitted`, `raw-actions-without-Scene`, …
"""

from dataclasses import dataclass

from fujinsplat.config import SynthesisSettings, Variant
from fujinsplat.synthesis.recipe import Recipe

METHOD = "raw"


@dataclass(frozen=True)
class Training:
    """One controller: what it looks at, what it is trained for, and on which observations."""

    input: str
    objective: str
    recipe: Recipe
    name: str


def training(variant: Variant, settings: SynthesisSettings, scene: str | None = None) -> Training | None:
    """The controller of a variant (for one scene, where scenes have controllers of their own), or None without one."""
    if variant.input == "none" or variant.oracle != "none" or not (variant.curves or variant.couplings):
        return None
    recipe = Recipe.of(variant, settings, scene)
    usual = Recipe.of(Variant(), settings, scene)
    parts = [variant.input]
    if variant.objective == "reconstruction":
        parts.append("reconstruction")
    if recipe != usual:
        parts.append(difference(recipe, usual))
    elif recipe.without:
        parts.append(f"without-{recipe.without}")
    return Training(variant.input, variant.objective, recipe, "-".join(parts))


def difference(recipe: Recipe, usual: Recipe) -> str:
    """The parts of the recipe's name that the usual one lacks."""
    if (recipe.labels, recipe.draws, recipe.coordinate) == (usual.labels, usual.draws, usual.coordinate):
        return recipe.name.removeprefix(f"{usual.name}-")
    return recipe.name
