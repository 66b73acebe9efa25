"""The reason for running a job again names what differs, however long its parameters are."""

import json

from snakemake.persistence import ParamsChange

from fujinsplat.compat.snakemake_reasons import LONGEST, MOST, changes


def recorded(*values) -> set[str]:
    return {repr(value if isinstance(value, str) else json.dumps(value)) for value in values}


def test_blocks_of_settings_are_compared_key_by_key():
    splat, flow = {"iterations": 150, "lr": {"means": 0.1, "sh": 1}}, {"K": 7, "M": 16}
    told = changes(recorded(splat, flow), recorded({"iterations": 200, "lr": {"means": 0.1, "sh": None}}, {"K": 3}))
    assert told == "K: 7, now 3; M: 16, now nothing; iterations: 150, now 200; lr.sh: 1, now null"


def test_of_lists_the_items_are_told_that_only_one_has():
    same = [f"scene {number}" for number in range(100)]
    told = changes(recorded({"scenes": [*same, "a"]}), recorded({"scenes": [*same, "b", "c"]}))
    assert told == 'scenes: ["a"], now ["b", "c"]'
    assert changes(recorded({"scenes": same}), recorded({"scenes": [*same, "d"]})) == 'scenes: nothing, now ["d"]'
    assert changes(recorded({"x": [1, 2]}), recorded({"x": [2, 1]})) == "x: [1, 2], now [2, 1]"


def test_a_long_text_is_cut_and_many_differences_are_counted():
    old = {f"key{number}": number for number in range(20)} | {"long": "x" * 10_000}
    told = changes(recorded(old), recorded({name: "y" * 10_000 for name in old}))
    assert len(told) < (MOST + 1) * (2 * LONGEST + 40) and told.endswith(f"and {len(old) - MOST} more")
    assert len(changes(recorded(old), set())) < 3 * LONGEST, "a parameter that only one of them has"


def test_changed_code_is_called_that():
    assert changes({"'code:12'"}, {"'code:34+files:5'"}) == "the code of this stage, or a file that its parts read"


def test_what_is_no_json_is_shown_as_it_is():
    assert changes(recorded("a path"), recorded("another")) == "'a path', now nothing; nothing, now 'another'"
    assert changes(recorded({"a": 1}), recorded({"a": 1.0})) == "only in how they are written"


def test_snakemake_still_prints_them_whole():
    whole = ParamsChange(only_old={"x" * 5000}, files={"f"})
    assert len(ParamsChange.__str__(whole)) > 5000, "compat/snakemake_reasons.py may go"
