"""Every part of every registry keeps the contract of CONTRIBUTING.md: documented, used by a row, light to import."""

import re
from pathlib import Path

import pytest
import yaml

from fujinsplat.core.settings import Settings
from fujinsplat.core.validation import checked
from fujinsplat.rows.artefacts import ARTEFACTS
from fujinsplat.rows.config import Config
from fujinsplat.rows.registries import KINDS, AllSettings, every_part

ROOT = Path(__file__).parents[2]
PARTS = [pytest.param(part, id=f"{kind}-{part.name}") for kind, registry in KINDS.items() for part in registry]


@pytest.fixture(scope="module")
def config() -> Config:
    return checked(Config, yaml.safe_load((ROOT / "config.yaml").read_text()))


@pytest.mark.parametrize("part", PARTS)
def test_it_says_what_it_is_and_where_it_comes_from(part):
    """One sentence, with a section of the paper or a source in brackets."""
    assert re.search(r"\[.+\]", part.about), f"{part.name}: name its section or source, as [Sec. 3.4] or [source]"
    assert re.fullmatch(r"[a-z][a-z0-9_]*", part.name)


@pytest.mark.parametrize("part", PARTS)
def test_it_opens_known_artefacts_and_has_documented_settings(part):
    assert set(part.opens(AllSettings())) <= set(ARTEFACTS)
    assert set(part.stages) <= set(AllSettings.model_fields)
    assert issubclass(part.Settings, Settings)
    for name, field in part.Settings.model_fields.items():
        assert field.description, f"{part.name}.{name} has no meaning"


@pytest.mark.parametrize("part", PARTS)
def test_a_row_uses_it(part, config):
    assert any(part in row.parts for row in config.rows.values()), f"no row of config.yaml uses {part.name}"


def test_names_are_told_apart():
    """A part's settings are a block of their own, so no two parts with settings, and no stage, may share a name."""
    named = [part.name for part in every_part() if part.has_settings]
    assert len(named) == len(set(named))
    from fujinsplat.core.settings import StageSettings

    assert not set(named) & set(StageSettings.model_fields)


def test_parts_are_light(config):
    """The workflow is planned without torch: a part imports what it works with when it runs."""
    import subprocess
    import sys

    script = (
        "import sys; import fujinsplat.workflow; print([m for m in ('torch', 'numba', 'rawpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
