"""Rows that need what is not here are left out of groups with a reason, and never silently of a build by name."""

from pathlib import Path

import pytest
import yaml

from fujinsplat.core.validation import checked
from fujinsplat.rows.config import Config
from fujinsplat.rows.outline import outline_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def values(tmp_path, monkeypatch) -> dict:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # no weights were ever fetched
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def test_the_group_of_baselines_runs_what_is_here_and_says_what_is_not(values):
    config = checked(Config, values | {"build": "baselines"})
    assert set(config.skipped) & {"aod_net", "maxim", "convir", "i2_nerf"} == {"aod_net", "maxim", "convir", "i2_nerf"}
    assert "restore fetch" in config.skipped["maxim"]
    for name in ("rgb_base", "dark_channel", "seasplat", "watersplatting", "seasplat_raw"):
        assert name in config.members()
    assert not set(config.members()) & set(config.skipped)
    assert list(outline_of(config, "demo").rows) == config.members()


def test_what_is_given_is_not_skipped(values, tmp_path):
    values["variants"]["convir"]["front"] = {"restored": {"by": "convir", "folder": str(tmp_path / "{scene}")}}
    values["variants"]["i2_nerf"]["model"] = {"foreign": "render {input} {output}"}
    config = checked(Config, values | {"build": "baselines"})
    assert {"convir", "i2_nerf"} <= set(config.members())


def test_a_row_asked_for_by_name_is_not_skipped(values):
    config = checked(Config, values | {"build": "convir"})
    assert config.members() == ["convir"] and not config.skipped


def test_a_group_without_such_rows_skips_nothing(values):
    assert not checked(Config, values | {"build": "main"}).skipped
