"""population.json: merged, summarised, validated."""

import json
import random
import re
from pathlib import Path

import pytest

from fujinsplat.actions import population as P
from fujinsplat.core.errors import UserError

DOCUMENT = Path(__file__).parents[2] / "docs" / "population.md"


def pair(scene: str, view: str, t: float, base: bool = True) -> P.Pair:
    fit = P.Fit(t=t, pivot=(0.1, 0.2, 0.3), clean_median=0.05 + t / 100)
    return P.Pair(scene=scene, view=view, white_balance=(2.0 + t, 1.0, 1.5), raw=fit, base=fit if base else None)


def pairs() -> list[P.Pair]:
    return [pair("A", f"{i:04d}", 0.2 + i / 20) for i in range(5)] + [
        pair("B", f"{i:04d}", 0.8, i > 0) for i in range(3)
    ]


@pytest.fixture
def example() -> dict:
    return json.loads(re.search(r"```json\n(.*?)```", DOCUMENT.read_text(), re.S).group(1))


def test_the_documented_example_is_valid(example, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(example))
    loaded = P.load(tmp_path / "p.json")
    assert loaded.summary("base").pivot_ratio == 1.5
    P.save(tmp_path / "q.json", loaded)
    assert P.load(tmp_path / "q.json") == loaded


def test_every_key_of_the_file_is_documented():
    text = DOCUMENT.read_text()
    for model in (P.Population, P.Pair, P.Fit, P.Summary, P.LeftOut):
        for key in model.model_fields:
            assert re.search(rf"\b{key}\b", text), key


def test_order_changes_nothing(tmp_path):
    shuffled = pairs()
    random.Random(1).shuffle(shuffled)
    P.save(tmp_path / "a.json", P.Population.of(pairs(), []))
    P.save(tmp_path / "b.json", P.Population.of(shuffled, []))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_summaries_are_medians_of_the_usable_fits():
    found = P.Population.of(pairs(), [P.LeftOut(scene="B", view="0000", coordinate="base", reason="saturated")])
    assert found.raw.pairs == 8 and found.base.pairs == 7
    assert found.scenes["A"].raw.t_median == pytest.approx(0.3) and found.scenes["B"].base.pairs == 2
    assert found.raw.t_min == 0.2 and found.raw.t_max == 0.8
    assert found.raw.pivot_ratio == pytest.approx(sorted(p.raw.ratio for p in pairs())[4], rel=0.1)
    assert found.left_out[0].reason == "saturated"


def test_no_usable_pair_is_an_error():
    left_out = [P.LeftOut(scene="A", view="1", coordinate="raw", reason="no contrast in the clean capture")]
    with pytest.raises(UserError, match=r"no pair gives a usable fit \(A/1 raw: no contrast.*actions\.population"):
        P.Population.of([], left_out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["pairs"][0]["raw"].update(t=1.5), r"pairs\.0\.raw\.t is 1\.5"),
        (lambda p: p["pairs"][0]["base"].update(pivot=[0.1, -0.2, 0.3]), r"pairs\.0\.base\.pivot\.1 is -0\.2"),
        (lambda p: p["pairs"][0].pop("white_balance"), r"pairs\.0\.white_balance is missing"),
        (lambda p: p.update(pairs=[]), "pairs"),
        (lambda p: p["base"].update(pivot_ratio=3.0), "base does not summarise the pairs"),
        (lambda p: p.update(raw=None), "raw is null, but its pairs say otherwise"),
        (lambda p: p.update(format="other"), "format"),
    ],
)
def test_mistakes_are_named_by_file_and_key(example, tmp_path, change, message):
    change(example)
    (tmp_path / "mine.json").write_text(json.dumps(example))
    with pytest.raises(UserError, match=rf"(?s)mine\.json: .*{message}.*docs/population\.md"):
        P.load(tmp_path / "mine.json")


def test_a_missing_coordinate_names_the_setting():
    found = P.Population.of([pair("A", "1", 0.4, base=False)], [])
    with pytest.raises(UserError, match=r"no base fits; set synthesis\.coordinate: raw"):
        found.summary("base")
