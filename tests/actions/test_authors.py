"""The authors' population and white balance: files of that shape, and what is said when they are of another."""

import json

import numpy as np
import pytest

from fujinsplat.actions import authors
from fujinsplat.actions.population import load, save
from fujinsplat.core.errors import UserError

COUNTS = {"Akikaze": 25, "Futaba": 23, "Hinoki": 22, "Koharu": 25, "Midori": 26, "Natsume": 25}
COUNTS |= {"Shirohana": 26, "Tsubaki": 23}


def pairs() -> list[dict]:
    random = np.random.default_rng(195)
    return [
        {
            "scene": scene,
            "view": f"{number:04d}",
            "t": float(random.uniform(0.15, 0.9)),
            "pivot": (0.08 * random.uniform(0.8, 1.2, 3)).tolist(),
            "clean_median": 0.0538,
        }
        for scene, count in COUNTS.items()
        for number in range(count)
    ]


def write(path, content) -> str:
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture
def balance(tmp_path):
    return write(tmp_path / "wb.json", {"camera_whitebalance": [2428, 1024, 1700, 1024]})


def test_the_file_of_195_pairs_becomes_a_population(tmp_path, balance):
    rows = pairs()
    population = authors.import_population(write(tmp_path / "raw_population_195.json", {"pairs": rows}), balance)
    assert len(population.pairs) == 195 and population.base is None
    assert population.raw.t_median == pytest.approx(np.median([row["t"] for row in rows]))
    assert population.raw.clean_median == pytest.approx(0.0538)
    assert population.white_balance == pytest.approx((2428 / 1024, 1, 1700 / 1024))
    save(tmp_path / "population.json", population)
    assert load(tmp_path / "population.json") == population
    with pytest.raises(UserError, match=r"no base fits; set synthesis\.coordinate: raw"):
        population.summary("base")


def test_other_ways_of_writing_the_same_pairs(tmp_path, balance):
    rows = pairs()
    plain = authors.import_population(write(tmp_path / "a.json", rows), balance)
    short = [{"scene": r["scene"], "stem": r["view"], "contrast": r["t"], "c": r["pivot"]} for r in rows]
    shared = {"records": short, "clean_median": 0.0538, "white_balance": [2.37109375, 1, 1.66015625]}
    assert authors.import_population(write(tmp_path / "b.json", shared)) == plain
    nested: dict = {}
    for row in rows:
        nested.setdefault(row["scene"], {})[row["view"]] = {k: row[k] for k in ("t", "pivot", "clean_median")}
    assert authors.import_population(write(tmp_path / "c.json", {"pairs": nested}), balance) == plain


@pytest.mark.parametrize("key", ["t", "pivot", "view", "clean_median"])
def test_a_missing_key_is_named(tmp_path, balance, key):
    rows = pairs()
    del rows[3][key]
    with pytest.raises(UserError, match=f"pair 4 lacks {key}"):
        authors.import_population(write(tmp_path / "p.json", rows), balance)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"t": 1.5}, r"pair 1\.t"),
        ({"pivot": [0.1, 0.1]}, r"pair 1\.pivot"),
        ({"pivot": [0.1, -0.1, 0.1]}, r"pair 1\.pivot"),
        ({"view": "0001"}, "Akikaze/0001 twice"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path, balance, change, sentence):
    rows = pairs()
    rows[0].update(change)
    with pytest.raises(UserError, match=sentence):
        authors.import_population(write(tmp_path / "p.json", rows), balance)


def test_other_files_are_refused_with_a_sentence(tmp_path, balance):
    with pytest.raises(UserError, match="lacks white_balance; give --white-balance FILE"):
        authors.import_population(write(tmp_path / "p.json", pairs()))
    for content in ({"actions": []}, [], [1, 2], "text", {"pairs": []}):
        with pytest.raises(UserError, match="is no population"):
            authors.import_population(write(tmp_path / "p.json", content), balance)
    for content in ([2.0, 1.0], [1, 0, 1], {"gains": [1, 1, 1]}, ["a", "b", "c"]):
        with pytest.raises(UserError, match="holds no white balance"):
            authors.read_white_balance(write(tmp_path / "w.json", content))
    with pytest.raises(UserError, match=r"absent\.json"):
        authors.import_population(tmp_path / "absent.json")


def test_the_command_writes_whole_files_or_none(tmp_path, balance):
    from typer.testing import CliRunner

    from fujinsplat.actions.command import app

    given, out = write(tmp_path / "p.json", pairs()), tmp_path / "population.json"
    done = CliRunner().invoke(app, ["import", given, "--white-balance", balance, "--out", str(out)])
    assert done.exit_code == 0 and len(load(out).pairs) == 195
    out.unlink()
    rows = pairs()
    del rows[100]["t"]
    assert CliRunner().invoke(app, ["import", write(tmp_path / "q.json", rows), "--out", str(out)]).exit_code != 0
    assert not out.exists()
