"""Recipes beside each other: what a row has otherwise than the published method, or than ours, on one dataset."""

from typing import Any

from fujinsplat.rows.config import Config
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import RecipeName


def settings_of_recipe(config: Config, dataset: str, recipe: RecipeName) -> Any:
    """A dataset's settings under a recipe, whatever the config itself asks for."""
    return config.model_copy(update={"recipe": recipe}).settings_for(dataset)


def deviations(config: Config, row: str, dataset: str, recipe: RecipeName) -> list[tuple[str, str, str]]:
    """`(setting, value of the row, value of the recipe)` wherever they differ, over all that the row depends on."""
    composed = config.rows[row]
    mine, theirs = composed.settings(config.settings_for(dataset)), settings_of_recipe(config, dataset, recipe)
    found = []
    for block in AllSettings.model_fields:
        here, there = getattr(mine, block), getattr(theirs, block)
        for name in type(there).model_fields if block in composed.blocks(mine) else ():
            if getattr(here, name) != getattr(there, name):
                found.append((f"{block}.{name}", str(getattr(here, name)), str(getattr(there, name))))
    return found
