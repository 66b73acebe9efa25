"""What compiled labels undo, on real captures: no inverse of sixteen increments is exact, and every round trip is."""

import pytest

from fujinsplat.analysis import inverse
from fujinsplat.synthesis.draws import make_draws
from fujinsplat.synthesis.recipe import Recipe


@pytest.fixture(scope="module")
def rows(sampled, population, matrix, settings):
    draws = make_draws(sampled, population, matrix, Recipe(), settings.model_copy(update={"tone": "exposure"}))
    return inverse.study(draws, sampled)[0]


def test_the_contrasts_are_the_papers(rows):
    assert [row["contrast"] for row in rows] == [0.15, 0.25, 0.36, 0.60, 0.90]


def test_labels_undo_veils_and_fitted_ones_better(rows):
    """Thin veils are the published rule's worst bargain: at t = .9 it may cost more than it gives."""
    assert all(row["fitted"] > row["published"] + 5 for row in rows)
    assert all(row["published"] > row["nothing"] + 5 for row in rows if row["contrast"] < 0.5)


def test_every_round_trip_closes_to_numerical_precision(rows):
    assert min(row[f"{name}_round_trip"] for row in rows for name in inverse.COMPILERS) > 200
