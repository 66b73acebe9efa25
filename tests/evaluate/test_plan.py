"""What the rules ask for, on datasets with and without clean twins and held views."""

import json
from types import SimpleNamespace

import pytest

from fujinsplat.evaluate.tables import TABLES
from fujinsplat.workflow import Plan
from fujinsplat.workflow.evaluate import EvaluationPlan


class Wildcards(SimpleNamespace):
    def get(self, name, default=None):
        return getattr(self, name, default)


def plan(settings: dict | None = None, **dataset) -> EvaluationPlan:
    variants = {
        "ours": {"correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
        "raw_base": {"paper": "RAW base only"},
        "k5": {"like": "ours", "settings": {"flow": {"K": 5}}, "paper": "K=5"},
    }
    block = {"root": "data", "scenes": ["Yama", "Kawa"], "settings": settings or {}, **dataset}
    return Plan({"dataset": "mine", "datasets": {"mine": block}, "variants": variants}).evaluate


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


def test_repeats_ask_for_every_seed():
    scores = plan({"evaluate": {"repeats": 3}}).scores(Wildcards(dataset="mine"))
    assert len(scores) == 2 * 3 * 3
    assert "results/mine/metrics/Yama/ours@3.csv" in scores


def test_seeds_follow_the_repeat():
    about = [
        json.loads(plan().about(Wildcards(dataset="mine", scene="Yama", variant=variant)))["seeds"]["splat"]
        for variant in ("ours", "ours@2", "ours@3")
    ]
    assert about == [about[0], about[0] + 1, about[0] + 2]


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
