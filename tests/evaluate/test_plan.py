"""What the rules ask for, on datasets with and without clean twins and held views."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.tables import TABLES
from fujinsplat.workflow import Plan
from fujinsplat.workflow.evaluate import EvaluationPlan


class Wildcards(SimpleNamespace):
    def get(self, name, default=None):
        return getattr(self, name, default)


def plan(settings: dict | None = None, seeds=1, **dataset) -> EvaluationPlan:
    variants = {
        "ours": {"correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
        "raw_base": {"paper": "RAW base only"},
        "k5": {"like": "ours", "settings": {"flow": {"K": 5}}, "paper": "K=5"},
    }
    block = {"root": "data", "scenes": ["Yama", "Kawa"], "settings": settings or {}, **dataset}
    return Plan({"dataset": "mine", "datasets": {"mine": block}, "variants": variants, "seeds": seeds}).evaluate


def test_every_table_there_is_is_asked_for():
    names = {path.split("/")[-1].split(".")[0] for path in plan().tables("mine")}
    assert names == set(TABLES)


def test_a_scene_of_ones_own_needs_neither_clean_twins_nor_held_views():
    own = plan(clean_twins=False, held_views=False)
    wildcards = Wildcards(dataset="mine", scene="Yama", variant="ours")
    inputs = [*own.train_views(wildcards), *own.report_inputs(wildcards)]
    for table in TABLES:
        inputs += own.table_inputs(Wildcards(dataset="mine", table=table))
    for figure in own.figures(wildcards):
        inputs += own.figure_inputs(Wildcards(dataset="mine", figure=figure))
    assert inputs
    assert not [path for path in inputs if "/clean" in path or "/held" in path or "/metrics" in path]
    assert "analysis" not in " ".join(inputs)


def test_every_seed_is_asked_for_of_all_rows_or_of_some():
    scores = plan(seeds=3).scores(Wildcards(dataset="mine"))
    assert len(scores) == 2 * 3 * 3
    assert "results/mine/metrics/Yama/ours@3.csv" in scores
    some = plan(seeds={"ours": 3}).scores(Wildcards(dataset="mine"))
    assert len(some) == 2 * (3 + 1 + 1)
    assert {path.split("/")[-1] for path in some if "@" in path} == {"ours@2.csv", "ours@3.csv"}


@pytest.mark.parametrize("seeds, said", [({"our": 3}, "no variant 'our'"), (0, "seeds"), ({"ours": 0}, "seeds")])
def test_seeds_of_no_row_or_of_no_number_are_refused(seeds, said):
    with pytest.raises(UserError, match=said):
        plan(seeds=seeds)


def test_a_further_seed_trains_everything_of_its_row_again_on_the_same_data():
    """The controller and the splats start from the next seeds; bases, draws and observations are the same files."""
    whole = plan().plan
    names = ("ours", "ours@2", "ours@3")
    jobs = [Wildcards(dataset="mine", scene="Yama", variant=variant) for variant in names]
    seeds = [json.loads(whole.evaluate.about(job))["seeds"] for job in jobs]
    assert [s["splat"] - seeds[0]["splat"] for s in seeds] == [0, 1, 2]
    assert [s["controller"] - seeds[0]["controller"] for s in seeds] == [0, 1, 2]
    opened = [whole.splat.inputs(job) for job in jobs]
    assert [job["developed"].split("/")[-1] for job in opened] == [f"{name}.safetensors" for name in names]
    assert len({job["views"] for job in opened}) == 1
    controllers = [whole.develop.inputs(job)["controller"].split("/")[-1].removesuffix(".safetensors") for job in jobs]
    assert controllers == ["raw", "raw@90203", "raw@90204"]
    for name, expected in zip(controllers, seeds, strict=True):
        trained = Wildcards(dataset="mine", controller=name)
        assert json.loads(whole.controller.settings(trained))["seed"] == expected["controller"]
        settings, scene = whole.controller.training(trained)
        assert whole.synthesis.recipe_name("mine", settings, scene) == "default"


def test_seeds_share_the_actions_of_a_row_that_learns_none():
    opened = [
        plan().plan.splat.inputs(Wildcards(dataset="mine", scene="Yama", variant=v)) for v in ("raw_base", "raw_base@2")
    ]
    assert opened[0] == opened[1]


def test_every_row_of_the_config_has_further_seeds():
    """Whatever its parts, the files a second seed asks for are ones that a rule makes."""
    whole = Plan(yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text()))
    fronts = whole.fronts("demo")
    for name in whole.config.rows:
        job = Wildcards(dataset="demo", scene="Kochi", variant=f"{name}@2")
        assert Path(whole.splat.inputs(job)["views"]).stem in fronts
        controller = whole.develop.inputs(job).get("controller")
        if controller:
            whole.controller.training(Wildcards(dataset="demo", controller=Path(controller).stem))


@pytest.mark.parametrize("table, again", [("main", False), ("settings", True)])
def test_a_setting_reaches_only_the_table_that_shows_it(table, again):
    wildcards = Wildcards(dataset="mine", table=table)
    before, after = (plan(s).table_outline(wildcards) for s in ({}, {"splat": {"iterations": 900}}))
    assert (before != after) == again


def test_figures_follow_the_build():
    wildcards = Wildcards(dataset="mine")
    always = {"training", "pipeline", "mcf"}
    assert set(plan().figures(wildcards)) == {*always, "qualitative", "capacity", "action_family"}
    assert set(plan(held_views=False).figures(wildcards)) == {*always, "action_family"}
    assert set(plan(held_views=False, clean_twins=False).figures(wildcards)) == always
