"""The network of supplement G."""

import pytest
import torch

from fujinsplat.config import SynthesisSettings, Variant
from fujinsplat.controller import PARAMETERS, Controller, Encoder, summarise
from fujinsplat.controller.names import training
from fujinsplat.flow.layout import size


def test_size_and_identity():
    controller = Controller()
    assert sum(p.numel() for p in controller.parameters()) == PARAMETERS == 1_514_717
    assert (controller(torch.rand(2, 3, 64, 64)) == 0).all()


def test_names_of_the_authors_weights():
    names = {f"encoder.{i}" for i in (0, 2, 4, 6)} | {f"trunk.{i}" for i in (0, 2)}
    names |= {f"curve_heads.{i}" for i in range(8)} | {"coupling_head"}
    assert set(Controller().state_dict()) == {f"{name}.{kind}" for name in names for kind in ("weight", "bias")}


@pytest.mark.parametrize(("K", "M"), [(5, 16), (11, 16), (7, 8), (7, 32)])
def test_other_capacities(K, M):
    assert Controller(K, M)(torch.rand(1, 3, 64, 64)).shape == (1, size(K, M))


def test_heads_are_blocks_of_the_action():
    """Curve head b fills block b of the action, the coupling head the rest."""
    controller = Controller()
    with torch.no_grad():
        controller.curve_heads[3].bias.fill_(1.0)
        controller.coupling_head.bias.fill_(2.0)
    action = controller(torch.rand(1, 3, 64, 64))[0]
    assert (action[3 * 48 : 4 * 48] == 1).all() and (action[384:] == 2).all()
    assert (action[: 3 * 48] == 0).all() and (action[4 * 48 : 384] == 0).all()


def test_encoder_describes():
    assert Encoder()(torch.rand(2, 3, 64, 64)).shape == (2, 2048)


def test_summary_is_clamped_and_bilinear():
    picture = torch.full((40, 50, 3), 0.25)
    picture[..., 2] = 1.5
    summary = summarise(picture)
    assert summary.shape == (3, 64, 64)
    assert (summary[2] == 1).all() and torch.allclose(summary[0], torch.tensor(0.25))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "raw"),
        ({"delta": False}, "raw"),
        ({"delta": False, "shared": True}, "raw"),
        ({"input": "rgb"}, "rgb"),
        ({"objective": "reconstruction"}, "raw-reconstruction"),
        ({"couplings": False}, "raw-curves"),
        ({"curves": False}, "raw-couplings"),
        ({"K": 5}, "raw-k5"),
        ({"M": 32}, "raw-m32"),
        ({"labels": "fitted"}, "raw-fitted"),
        ({"labels": "fitted", "coordinate": "raw"}, "raw-fitted-raw"),
        ({"draws": "actions"}, "raw-actions-without-Hayate"),
        ({"input": "none", "delta": False}, None),
        ({"oracle": "expert"}, None),
    ],
)
def test_names(changes, name):
    """Different trainings have different names, equal ones share a file."""
    made = training(Variant(**changes), SynthesisSettings(), "Hayate")
    assert (made.name if made else None) == name


def test_names_follow_the_settings():
    """`raw` is whatever the settings call the method."""
    settings = SynthesisSettings(labels="fitted")
    assert training(Variant(), settings, "x").name == "raw"
    assert training(Variant(), settings, "x").recipe.name == "fitted"
    assert training(Variant(labels="published"), settings, "x").name == "raw-published"
    assert training(Variant(labels="fitted"), settings, "x").name == "raw"
