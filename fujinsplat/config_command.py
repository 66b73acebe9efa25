"""`fujinsplat config`: the settings, as a person and as a schema reads them."""

from pathlib import Path
from typing import Annotated

import typer

from fujinsplat.options import stage_app

app = stage_app("Check a config file, or print its JSON schema.")


@app.command()
def schema() -> None:
    """Print the JSON schema of config.yaml (committed as fujinsplat/config.schema.json)."""
    from fujinsplat.configfile import schema

    print(schema(), end="")


@app.command()
def check(config: Annotated[Path, typer.Argument(help="A config.yaml.")] = Path("config.yaml")) -> None:
    """Check a config file without running anything."""
    from fujinsplat.config import Config
    from fujinsplat.configfile import stage_settings

    stage_settings(Config, str(config))
    print(f"{config} is valid")
