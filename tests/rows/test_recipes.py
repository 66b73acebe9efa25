"""The published recipe: one switch for a row, one for a build, and nothing of ours left in it."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import checked
from fujinsplat.rows.artefacts import WHOLE_BLOCKS, WHOLE_SETTINGS
from fujinsplat.rows.config import Config
from fujinsplat.rows.outline import differences_from_paper
from fujinsplat.rows.recipes import deviations
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import recipe_overlay

ROOT = Path(__file__).parents[2]


def config(**changes) -> Config:
    return checked(Config, {**yaml.safe_load((ROOT / "config.yaml").read_text()), **changes})


def test_the_paper_row_is_the_paper_on_realx3d():
    given = config()
    settings = given.rows["paper"].settings(given.settings_for("realx3d"))
    assert differences_from_paper(settings) == []
    assert settings == AllSettings.paper()
    ours = given.rows["fujinsplat"].settings(given.settings_for("realx3d"))
    assert len(differences_from_paper(ours)) >= 10


def test_on_the_demo_only_what_the_dataset_scales_differs():
    given = config()
    assert deviations(given, "paper", "demo", "paper") == []
    settings = given.rows["paper"].settings(given.settings_for("demo"))
    scaled = {f"{block}.{name}" for block, values in given.datasets["demo"].settings.items() for name in values}
    assert {name for name, _, _ in differences_from_paper(settings)} <= scaled
    assert settings.splat.iterations == 2000 and settings.synthesis.coordinate == "raw"


def test_one_switch_for_a_whole_build():
    given = config(recipe="paper")
    for name in ("fujinsplat", "no_delta", "couplings_5", "rgb_input"):
        changed = {setting for setting, _, _ in deviations(given, name, "realx3d", "paper")}
        own = {f"{block}.{key}" for block, values in given.variants[name].settings.items() for key in values}
        assert changed == own
    ours = {setting for setting, _, _ in deviations(config(), "fujinsplat", "realx3d", "paper")}
    assert {"isp.encoding", "synthesis.coordinate", "controller.presentations"} <= ours


def test_realx3d_has_no_setting_that_no_other_world_chose():
    """docs/recipes.md says on which world each was chosen; what the demo (seed 20260) or no world chose is the
    paper's there."""
    lines = (ROOT / "docs" / "recipes.md").read_text().splitlines()
    cells = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    unchosen = {row[0] for row in cells if any(words in row[4] for words in ("not chosen", "demo", "20260"))}
    ours = {setting for setting, _, _ in deviations(config(), "fujinsplat", "realx3d", "paper")}
    assert unchosen and not unchosen & ours


def test_settings_of_a_row_come_on_top_of_its_recipe():
    variants = yaml.safe_load((ROOT / "config.yaml").read_text())["variants"]
    variants["mixed"] = {"like": "paper", "settings": {"synthesis": {"coordinate": "base"}}}
    given = config(variants=variants)
    assert [name for name, _, _ in deviations(given, "mixed", "realx3d", "paper")] == ["synthesis.coordinate"]
    with pytest.raises(UserError, match="recipe"):
        config(recipe="published")


def test_what_a_row_cannot_set_for_itself_has_no_other_value_in_the_paper():
    """Otherwise a row could not be the paper beside rows of our own."""
    for block, values in recipe_overlay("paper").items():
        assert block not in WHOLE_BLOCKS
        assert not set(values) & WHOLE_SETTINGS.get(block, set())


def test_rows_the_paper_trains_without_the_delta_isp_use_the_mean_action():
    rows = config().rows
    for name in ("no_delta", "curves_only", "couplings_only", "reconstruction_objective"):
        assert (rows[name].correction.name, rows[name].reconcile.name) == ("mean", "none"), name
    assert (rows["own_actions"].correction.name, rows["own_actions"].reconcile.name) == ("controller", "none")


def test_leaving_a_scene_out_makes_a_controller_for_each_scene():
    from fujinsplat.workflow import Plan

    plan = Plan(yaml.safe_load((ROOT / "config.yaml").read_text()))
    settings = plan.row_settings("demo", "leave_out")
    names = {plan.controller.name("demo", scene, settings) for scene in ("Kochi", "Nowaki")}
    assert len(names) == 2 and all("without" in name for name in names)
    recipe = plan.synthesis.recipe_name("demo", settings, "Kochi")
    assert plan.synthesis.recipes("demo")[recipe][1] == "Kochi"


def test_the_command_prints_nothing_for_the_paper_row(monkeypatch):
    from fujinsplat.config_command import app

    monkeypatch.chdir(ROOT)
    for dataset in ("demo", "realx3d"):
        done = CliRunner().invoke(app, ["diff", "--recipe", "paper", "--dataset", dataset])
        assert (done.exit_code, done.output) == (0, "")
    assert "synthesis.smoke is room" in CliRunner().invoke(app, ["diff", "fujinsplat"]).output
    assert CliRunner().invoke(app, ["diff", "--recipe", "other"]).exit_code != 0


def test_the_supervision_of_a_scene_that_is_left_out_says_so():
    given = config()
    found = {
        name: given.rows[name].supervision(given.rows[name].settings(given.settings_for("demo"))) for name in given.rows
    }
    assert found["fujinsplat"]["clean"] == found["paper"]["clean"] == "distribution"
    assert found["leave_out"]["clean"] == found["action_draws"]["clean"] == "other scenes"
    assert found["leave_out"]["source"] == "read" and found["expert_actions"]["clean"] == "read"


def test_rgb_base_is_the_original_3dgs_whatever_the_recipe():
    row = config().rows["rgb_base"]
    assert [part.name for part in row.parts] == ["camera", "none", "none", "vanilla"]
    for recipe in ("ours", "paper"):
        splat = row.settings(config(recipe=recipe).settings_for("realx3d"))
        trained = row.model.budget(splat.splat, splat.vanilla)
        assert (trained.iterations, trained.densify_until, trained.lr_horizon) == (30_000, 15_000, 30_000)


def test_the_page_about_recipes_lists_every_choice_with_both_values():
    lines = (ROOT / "docs" / "recipes.md").read_text().splitlines()
    listed = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    ours = AllSettings()
    expected = {
        f"{block}.{name}": (str(getattr(getattr(ours, block), name)), str(value))
        for block, values in recipe_overlay("paper").items()
        for name, value in values.items()
    }
    assert {row[0]: (row[1], row[2]) for row in listed} == expected
    assert all(len(row) == 5 and row[3] and row[4] for row in listed)
