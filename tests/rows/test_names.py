"""Names are checked once, at the config's door and in targets: one sentence each."""

import copy
from pathlib import Path

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import checked
from fujinsplat.rows.config import Config
from fujinsplat.rows.names import name_error, row_error
from fujinsplat.workflow import Plan
from fujinsplat.workflow.targets import check_targets

ROOT = Path(__file__).parents[2]
VALUES = yaml.safe_load((ROOT / "config.yaml").read_text())


def sentence(change) -> str:
    values = copy.deepcopy(VALUES)
    change(values)
    with pytest.raises(UserError) as told:
        checked(Config, values)
    assert "\n" not in str(told.value)
    return str(told.value)


BAD = [
    "..",
    ".",
    "-x",
    "--unlock",
    "a/b",
    "a\nb",
    "",
    " a",
    "a ",
    "{scene}",
    "a;b",
    "$(id)",
    "x" * 200,
    "a\0b",
    "a'b",
    "*",
]


@pytest.mark.parametrize("name", BAD)
def test_a_scene_a_row_a_dataset_or_a_group_of_such_a_name_is_refused(name):
    assert "scenes: the scene" in sentence(lambda v: v["datasets"]["demo"].update(scenes=[name]))
    assert "variants: the row" in sentence(lambda v: v["variants"].update({name: {}}))
    assert "datasets: the dataset" in sentence(lambda v: v["datasets"].update({name: v["datasets"]["demo"]}))
    assert "groups: the group" in sentence(lambda v: v["groups"].update({name: ["fujinsplat"]}))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda v: v["variants"].update({"mine@2": {}}), "holds an @, which marks repeated seeds"),
        (lambda v: v["variants"].update({"all": {}}), "means every row"),
        (lambda v: v["variants"].update({"v1.2": {}}), "the row 'v1.2'"),
        (lambda v: v["groups"].update({"all": ["fujinsplat"]}), "means every row"),
        (lambda v: v["groups"].update({"none": []}), "groups.none is empty"),
        (lambda v: v["groups"].update({"two": ["fujinsplat", "fujinsplat"]}), "names a row twice"),
        (lambda v: v["datasets"]["demo"].update(scenes=["Hayate", "Hayate"]), "names a scene twice"),
        (lambda v: v["datasets"]["demo"].update(scenes=["Hayate", "hayate"]), "where case does not count"),
        (lambda v: v["datasets"]["demo"].update(scenes=["external"]), "rename the scene"),
        (lambda v: v["datasets"].update(Demo={**v["datasets"]["demo"], "made_by_demo": False}), "case does not count"),
        (lambda v: v["groups"].update({"fujinsplat": ["raw_base"]}), "groups: 'fujinsplat' is the name of a row, too"),
        (lambda v: v.update(scenes=[]), "at least one"),
        (lambda v: v.update(settings={"isp": {"checkpoint": "{scen}.x"}}), "other braces than {scene}"),
        (lambda v: v.update(settings={"flow": {"K": 10**9}}), "less than or equal to 1000"),
        (lambda v: v.update(settings={"demo": {"width": 10**9}}), "less than or equal to 16384"),
        (lambda v: v.update(settings={"splat": {"iterations": 10**30}}), "less than or equal to 1000000000"),
    ],
)
def test_names_that_mean_something_else_or_stand_there_twice(change, words):
    assert words in sentence(change)


@pytest.mark.parametrize("name", ["Hayate", "room 2", "DSC_0001", "v1.2", "北風", "a-b+c", "7"])
def test_ordinary_scenes_are_accepted(name):
    assert name_error("the scene", name, dots=True) is None


def test_every_row_of_the_config_is_accepted():
    assert not [name for name in VALUES["variants"] if row_error(name)]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(copy.deepcopy(VALUES))


@pytest.mark.parametrize(
    "target, words",
    [
        ("results/demo/metrics/Hayate/fujinsplatt.csv", "there is no row 'fujinsplatt'; did you mean 'fujinsplat'?"),
        ("results/dem/metrics/Hayate/fujinsplat.csv", "there is no dataset 'dem'; did you mean 'demo'?"),
        ("results/dem/whatever", "there is no dataset 'dem'; did you mean 'demo'?"),
        ("results/demo/metrics/Hayat/fujinsplat.csv", "there is no scene of demo 'Hayat'; did you mean 'Hayate'?"),
        ("results/demo/gaussians/Hayate/fujinsplat@1.ply", "is no number from 2 to 9999"),
        ("results/demo/gaussians/Hayate/fujinsplat@99999.ply", "is no number from 2 to 9999"),
        ("results/demo/tables/mainn.csv", "there is no table 'mainn'; did you mean 'main'?"),
    ],
)
def test_a_mistyped_target_names_the_nearest(plan, target, words):
    with pytest.raises(UserError) as told:
        check_targets(plan, [target])
    assert words in str(told.value) and target in str(told.value)


def test_good_targets_pass(plan):
    good = ["results/demo/metrics/Hayate/fujinsplat.csv", "results/demo/metrics/Hayate/fujinsplat@2.csv"]
    good += ["results/demo/report.html", "results/demo/base/K-5/Hayate.safetensors", "results/demo/unknown.xyz"]
    check_targets(plan, good)


def test_shell_words_from_targets_are_quoted_or_cannot_do_harm(plan):
    """Every wildcard that a rule puts into a command is quoted, or bound to letters."""
    import re

    for path in sorted((ROOT / "rules").glob("*.smk")):
        for name in re.findall(r"\{wildcards\.(\w+)\}", path.read_text()):
            assert plan.constraints[name] == "[a-z_]+", f"{path.name}: {name}"
    assert re.fullmatch(plan.constraints["shard"], "0001") and not re.fullmatch(plan.constraints["shard"], "1;id")


@pytest.mark.parametrize("seeds", [101, 10**9, {"fujinsplat": 101}])
def test_more_seeds_than_a_build_plans_are_refused(seeds):
    assert "set at most 100" in sentence(lambda values: values.update(seeds=seeds))
