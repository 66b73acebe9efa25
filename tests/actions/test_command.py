"""`fujinsplat actions` on a captured scene, as the rules call it."""

import numpy as np
import pytest

from fujinsplat import flow
from fujinsplat.actions import population as P


def test_fit_veil_and_population(fujinsplat, scene, tmp_path):
    parts = ["--base", scene.base, "--source", scene.source, "--clean", scene.clean, "--scene", "Mine", "--threads", 1]
    fujinsplat(
        "actions", "fit", *parts, "--out", tmp_path / "a.safetensors", "--settings", '{"steps": 20, "pixels": 300}'
    )
    assert flow.load(tmp_path / "a.safetensors").stems == list(scene.veils)

    fujinsplat("actions", "veil", *parts, "--out", tmp_path / "a.veil.json")
    done = fujinsplat("actions", "population", tmp_path / "a.veil.json", "--out", tmp_path / "population.json")
    assert "raw: 4 pairs, t 0.25-0.80" in done.stderr
    found = P.load(tmp_path / "population.json")
    for pair in found.pairs:
        t, pivot = scene.veils[pair.view]
        assert pair.raw.t == pytest.approx(t, rel=0.01) and pair.base.t > 0
        np.testing.assert_allclose(pair.raw.pivot, pivot, rtol=0.01)
        # the base is a diagonal gain here, and in linear light the veil stays a veil
        np.testing.assert_allclose(np.divide(pair.base.pivot, pair.raw.pivot), np.exp(0.5) * gains(), rtol=0.02)
    assert found.white_balance == (2.0, 1.0, 1.6)

    fujinsplat("actions", "population", "--use", tmp_path / "population.json", "--out", tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "population.json").read_bytes()


def gains() -> np.ndarray:
    from tests.actions.conftest import GAINS

    return np.array(GAINS) / np.exp(np.log(GAINS).mean())


def test_mistakes_end_in_one_sentence(fujinsplat, scene, tmp_path):
    done = fujinsplat("actions", "population", "--out", tmp_path / "p.json", code=2)
    assert done.stderr.startswith("fujinsplat: give the scenes' files")
    (tmp_path / "bad.json").write_text("{}")
    done = fujinsplat("actions", "population", "--use", tmp_path / "bad.json", "--out", tmp_path / "p.json", code=2)
    assert "bad.json" in done.stderr and "pairs is missing" in done.stderr and not (tmp_path / "p.json").exists()
