"""`fujinsplat config check` finds what a build needs of the disk and does not find there."""

from pathlib import Path

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.rows.config import Config
from fujinsplat.workflow import Plan
from fujinsplat.workflow.check import missing_inputs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def config(tmp_path) -> dict:
    (tmp_path / "captures" / "kitchen" / "train").mkdir(parents=True)
    value = yaml.safe_load((ROOT / "config.yaml").read_text())
    value["datasets"]["mine"] = {"root": "captures", "scenes": ["kitchen"], "clean_twins": False, "held_views": False}
    return value | {"dataset": "mine", "build": "raw_base"}


def told(config: dict, folder: Path) -> str:
    return "\n".join(missing_inputs(Config.model_validate(config), folder))


def test_the_shipped_config_has_all_it_needs(tmp_path):
    assert told(yaml.safe_load((ROOT / "config.yaml").read_text()), tmp_path) == ""


def test_a_scene_of_ones_own_has_all_it_needs(config, tmp_path):
    assert told(config, tmp_path) == ""


def test_a_root_or_scene_that_does_not_exist(config, tmp_path):
    config["datasets"]["mine"]["scenes"] = ["kitchen", "cellar"]
    assert "cellar does not exist (it holds kitchen)" in told(config, tmp_path)
    config["datasets"]["mine"]["root"] = "elsewhere"
    assert "datasets.mine.root: elsewhere does not exist" in told(config, tmp_path)


def test_a_controller_that_is_missing_or_cannot_be_trained(config, tmp_path):
    config["build"] = "fujinsplat"
    said = told(config, tmp_path)
    assert "datasets.mine has nothing to train the controller of fujinsplat from; set external" in said
    assert "no population can be measured" in said
    config["datasets"]["mine"]["settings"] = {"controller": {"checkpoint": "c.safetensors"}}
    assert "c.safetensors does not exist" in told(config, tmp_path)
    (tmp_path / "c.safetensors").touch()
    assert told(config, tmp_path) == ""


def test_oracles_of_a_dataset_without_clean_twins(config, tmp_path):
    config["build"] = "clean_views"
    assert "clean_twins: false, and the row clean_views is made from clean twins; build another row" in told(
        config, tmp_path
    )
    config["datasets"]["mine"]["clean_twins"] = True
    assert told(config, tmp_path) == ""


def test_a_restorer_without_its_weights(config, tmp_path):
    config["build"] = "promptir"
    assert "the row promptir cannot be built here: " in told(config, tmp_path)
    weights = {"by": "aod_net", "weights": "w.pth"}
    config["variants"]["aod_net"]["front"] = {"restored": weights}
    config["build"] = "aod_net"
    assert "the row aod_net cannot be built here: " in told(config, tmp_path)
    (tmp_path / "w.pth").touch()  # beside the config, which is not where the command is typed
    assert told(config, tmp_path) == ""
    config["build"] = "baselines"  # of a group, such rows are skipped with a word
    assert "promptir" not in told(config, tmp_path)


def test_captures_and_population_of_the_demo_are_made_on_the_way(config, tmp_path):
    config["build"] = "fujinsplat"
    config["datasets"]["mine"] |= {
        "external": "data/demo/external",
        "settings": {"actions": {"population": "results/demo/population.json"}},
    }
    assert told(config, tmp_path) == ""
    config["datasets"]["mine"]["external"] = "nowhere"
    assert "datasets.mine.external: nowhere does not exist" in told(config, tmp_path)


def test_a_missing_controller_is_one_sentence_while_planning(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config["datasets"]["mine"]["settings"] = {"controller": {"checkpoint": "c.safetensors"}}
    plan = Plan(config | {"build": "fujinsplat"})
    settings = plan.row_settings("mine", "fujinsplat")
    with pytest.raises(UserError, match=r"controller.checkpoint: c.safetensors does not exist; train it first"):
        plan.locate("controller", "mine", "kitchen", settings)
    (tmp_path / "c.safetensors").touch()
    assert plan.locate("controller", "mine", "kitchen", settings) == str(tmp_path / "c.safetensors")
