"""Rows compose: inheritance, settings of their own, marks and supervision; contradictions are one sentence."""

from pathlib import Path

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import checked
from fujinsplat.rows.config import Config
from fujinsplat.rows.outline import facts, outline_of
from fujinsplat.workflow import Plan

ROOT = Path(__file__).parents[2]


@pytest.fixture
def values() -> dict:
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def row_facts(values: dict, name: str, dataset: str = "demo"):
    config = checked(Config, values)
    row = config.rows[name]
    return facts(row, row.settings(config.settings_for(dataset)))


def test_the_method_is_written_out_and_the_others_follow_from_it(values):
    config = checked(Config, values)
    assert [part.name for part in config.rows["fujinsplat"].parts] == ["base", "controller", "delta", "gaussians"]
    assert [part.name for part in config.rows["no_delta"].parts] == ["base", "mean", "none", "gaussians"]
    assert config.rows["curves_only"].overlay == {"synthesis": {"action": "curves"}}
    assert config.rows["no_delta"].title != config.rows["fujinsplat"].title, "titles are a row's own"


@pytest.mark.parametrize(
    "name, marks, oracle, clean",
    [
        ("fujinsplat", {"raw", "curve", "coupling", "delta"}, False, "distribution"),
        ("raw_base", set(), False, None),
        ("rgb_input", {"curve", "coupling", "delta"}, False, "distribution"),
        ("curves_only", {"raw", "curve"}, False, "distribution"),
        ("expert_actions", {"curve", "coupling"}, True, "read"),
        ("clean_views", set(), True, "read"),
    ],
)
def test_marks_and_supervision_follow_from_the_parts(values, name, marks, oracle, clean):
    found = row_facts(values, name)
    assert (set(found.marks), found.oracle, found.supervision.get("clean")) == (marks, oracle, clean)
    assert "held" not in found.supervision


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"front": "bsae"}, ["variants.x.front", "'bsae'", "did you mean 'base'?"]),
        ({"model": "gaussian"}, ["variants.x.model", "'gaussians'"]),
        ({"reconcile": {"delta": {"lr_alpah": 1}}, "correction": "controller"}, ["lr_alpah", "'lr_alpha'"]),
        ({"reconcile": {"delta": {"lr_alpha": -1}}, "correction": "controller"}, ["lr_alpha", "greater than 0"]),
        ({"front": {"base": {"brightness": 2}}}, ["brightness", "not a setting of the front base"]),
        ({"front": {"base": {}, "camera": {}}}, ["names 2 parts"]),
        ({"like": "fujinspalt"}, ["variants.x.like", "'fujinsplat'"]),
        ({"like": "x"}, ["circle", "x → x"]),
        ({"paper": "w/o delta"}, ["variants.x.paper", "the paper has no line"]),
        ({"reconcile": "delta"}, ["reconcile delta needs an action per view", "correction none"]),
        ({"settings": {"splat": {"iteration": 3}}}, ["variants.x.settings.splat.iteration", "'iterations'"]),
        ({"settings": {"capture": {"demosaic": "AHD"}}}, ["capture holds for a whole dataset"]),
        ({"settings": {"synthesis": {"pixels": 8}}}, ["synthesis.pixels holds for a whole dataset"]),
    ],
)
def test_a_contradiction_is_one_sentence_with_the_nearest_name(values, row, expected):
    values["variants"]["x"] = row
    with pytest.raises(UserError) as error:
        checked(Config, values)
    assert "\n" not in str(error.value)
    for words in expected:
        assert words in str(error.value), str(error.value)


def test_like_in_a_longer_circle_is_named(values):
    values["variants"] |= {"a": {"like": "b"}, "b": {"like": "c"}, "c": {"like": "a"}}
    with pytest.raises(UserError, match="circle: a → b → c → a"):
        checked(Config, values)


def test_two_rows_with_the_same_parts_are_two_rows_everywhere(values):
    values["variants"]["twin"] = {"like": "fujinsplat", "title": "Twin", "paper": "FujinSplat"}
    outline = outline_of(checked(Config, values), "demo")
    assert outline.of_role("method") == ["fujinsplat", "paper", "twin"]
    from fujinsplat.evaluate.collect import Metrics
    from fujinsplat.evaluate.tables.build import TABLES

    for name in ("main", "seven_scenes", "ablation", "ablation_per_scene"):
        titles = [row.cells[0].value for row in TABLES[name](outline, Metrics({}), Path("results/demo")).rows]
        assert {"FujinSplat", "Twin"} <= set(titles), name
    capacity = TABLES["capacity"](outline, Metrics({}), Path("results/demo"))
    assert sum(row.cells[0].value == "Adopted" for row in capacity.rows) == 3


def test_rows_share_what_their_settings_share(values):
    """Controllers, recipes and bases exist once per set of settings, named after what differs."""
    values["variants"]["slow"] = {"like": "fujinsplat", "settings": {"splat": {"iterations": 9}}}
    values["variants"]["other_base"] = {"like": "fujinsplat", "settings": {"isp": {"joint_steps": 3}}}
    plan = Plan(values)

    def controller(row: str, scene: str = "Kogarashi") -> str:
        return plan.locate("controller", "demo", scene, plan.row_settings("demo", row)).rsplit("/", 1)[1]

    assert controller("fujinsplat") == controller("no_delta") == controller("slow") == "raw.safetensors"
    assert controller("couplings_5") == "raw-K-5.safetensors"
    assert controller("rgb_input") == "rgb.safetensors"
    assert controller("action_draws") == "raw-draws-actions-without-Kogarashi.safetensors"
    base = plan.locate("base", "demo", "Hayate", plan.row_settings("demo", "other_base"))
    assert base == "results/demo/base/joint_steps-3/Hayate.safetensors"
    assert controller("other_base") == "raw-joint_steps-3.safetensors", "a controller learns from bases"
    assert plan.locate("base", "demo", "Hayate", plan.row_settings("demo", "slow")).endswith("base/Hayate.safetensors")


def test_a_files_own_dataset_is_left_alone(values, tmp_path, monkeypatch):
    """A population or controller that the settings name is taken as it is: no rule is asked to make it."""
    monkeypatch.chdir(tmp_path)
    for made in ("population.json", "controller/raw.safetensors"):
        (tmp_path / "results" / "demo" / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / "demo" / made).touch()
    values["datasets"]["mine"] = {
        "root": "captures",
        "scenes": ["kitchen"],
        "clean_twins": False,
        "settings": {
            "actions": {"population": "results/demo/population.json"},
            "controller": {"checkpoint": "results/demo/controller/raw.safetensors"},
        },
    }
    plan = Plan(values)
    for need in ("population", "controller"):
        path = plan.locate(need, "mine", "kitchen", plan.row_settings("mine", "fujinsplat"))
        assert Path(path).is_absolute(), "a path no rule's pattern matches"


def test_differences_from_the_paper_are_computed(values):
    """The published recipe as a row's settings leaves nothing to list but what the dataset overlays."""
    from fujinsplat.rows.outline import differences_from_paper
    from fujinsplat.rows.registries import AllSettings

    assert differences_from_paper(AllSettings.paper()) == []
    names = {name for name, _, _ in differences_from_paper(AllSettings())}
    assert {"synthesis.coordinate", "controller.lr_final"} <= names
    assert not any(name.startswith("synthesis.") for name, _, _ in row_facts(values, "raw_base").differences)
