"""`fujinsplat config`: the settings, as a person and as a schema reads them."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.core.options import stage_app

app = stage_app("Check a config file, print its JSON schema, or what it has otherwise than the paper.")


@app.command()
def schema() -> None:
    """Print the JSON schema of config.yaml (committed as fujinsplat/config.schema.json)."""
    from fujinsplat.rows.config import schema

    print(schema(), end="")


@app.command()
def check(config: Annotated[Path, typer.Argument(help="A config.yaml.")] = Path("config.yaml")) -> None:
    """Check a config file without running anything."""
    from fujinsplat.core.errors import refuse
    from fujinsplat.core.validation import stage_settings
    from fujinsplat.rows.config import Config
    from fujinsplat.workflow.check import missing_inputs

    refuse([f"{config}: {problem}" for problem in missing_inputs(stage_settings(Config, str(config)), config.parent)])
    print(f"{config} is valid")


@app.command()
def differences(
    row: Annotated[list[str] | None, typer.Argument(help="Rows; default: all.")] = None,
    config: Annotated[Path, typer.Option(help="A config.yaml.")] = Path("config.yaml"),
    dataset: Annotated[str | None, typer.Option(help="A dataset; default: the one config.yaml names.")] = None,
) -> None:
    """Print every setting that differs from the paper's value, row by row."""
    from fujinsplat.core.errors import UserError
    from fujinsplat.core.validation import nearest, stage_settings
    from fujinsplat.rows.config import Config
    from fujinsplat.rows.outline import facts

    given = stage_settings(Config, str(config))
    name = dataset or given.dataset
    if name not in given.datasets:
        raise UserError(f"{config} has no dataset {name!r}{nearest(name, given.datasets)}")
    settings = given.settings_for(name)
    for key in row or given.rows:
        if key not in given.rows:
            raise UserError(f"{config} has no row {key!r}{nearest(key, given.rows)}")
        one = given.rows[key]
        for setting, here, paper in facts(one, one.settings(settings)).differences:
            print(f"{key}: {setting} is {here}, the paper's {paper}")


@app.command()
def diff(
    row: Annotated[list[str] | None, typer.Argument(help="Rows; default: the row named as the recipe.")] = None,
    recipe: Annotated[str, typer.Option(help="The recipe to compare with: paper or ours.")] = "paper",
    config: Annotated[Path, typer.Option(help="A config.yaml.")] = Path("config.yaml"),
    dataset: Annotated[str | None, typer.Option(help="A dataset; default: the one config.yaml names.")] = None,
) -> None:
    """Print every setting in which a row differs from a recipe as this dataset would run it; nothing: it is the recipe.

    What a dataset scales (the demo's shorter runs) counts as the dataset's, not as a difference; `config differences`
    shows that, too.
    """
    from fujinsplat.core.errors import UserError
    from fujinsplat.core.validation import nearest, stage_settings
    from fujinsplat.rows.config import Config
    from fujinsplat.rows.recipes import deviations

    if recipe not in ("paper", "ours"):
        raise UserError(f"--recipe is {recipe!r}; it must be paper or ours")
    given = stage_settings(Config, str(config))
    name = dataset or given.dataset
    if name not in given.datasets:
        raise UserError(f"{config} has no dataset {name!r}{nearest(name, given.datasets)}")
    chosen = row or ([recipe] if recipe in given.rows else list(given.rows)[:1])
    for key in chosen:
        if key not in given.rows:
            raise UserError(f"{config} has no row {key!r}{nearest(key, given.rows)}")
        for setting, here, there in deviations(given, key, name, recipe):
            print(f"{key}: {setting} is {here}, in the {recipe} recipe {there}")
