"""The network of supplement G."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fujinsplat.controller import PARAMETERS, Controller, Encoder, summarise
from fujinsplat.core.errors import UserError
from fujinsplat.flow.layout import size
from fujinsplat.workflow import Plan


class Wildcards(SimpleNamespace):
    def get(self, name, default=None):
        return getattr(self, name, default)


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


@pytest.mark.parametrize("scaled", [False, True])
def test_every_capacity_starts_from_the_same_encoder_and_trunk(scaled):
    summaries = torch.rand(4, 3, 64, 64) * 0.1 if scaled else None
    one, other = Controller.seeded(90202, 7, 16, summaries), Controller.seeded(90202, 5, 32, summaries)
    for part in ("encoder", "trunk"):
        pairs = zip(getattr(one, part).parameters(), getattr(other, part).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert not any(p.any() for head in (*one.curve_heads, one.coupling_head) for p in head.parameters())
    torch.manual_seed(90202)
    assert torch.equal(one.encoder[0].weight, Controller().encoder[0].weight) != scaled  # torch's own, or not


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


def plan(row: dict, settings: dict | None = None) -> Plan:
    """One row of `mine`, which changes what the method has."""
    method = {"correction": "controller", "reconcile": "delta"}
    block = {"root": "data", "scenes": ["Hayate", "Yama"], "settings": settings or {}}
    rows = {"method": method, "row": {"like": "method", **row}}
    return Plan({"dataset": "mine", "datasets": {"mine": block}, "variants": rows})


def name_of(given: Plan, row: str = "row", scene: str = "Hayate") -> str | None:
    """The controller whose file developing the row opens, or None without one."""
    path = given.develop.inputs(Wildcards(dataset="mine", scene=scene, variant=row)).get("controller")
    return Path(path).name.removesuffix(".safetensors") if path else None


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({}, "raw"),
        ({"reconcile": "none"}, "raw"),
        ({"reconcile": "none", "correction": "mean"}, "raw"),
        ({"settings": {"splat": {"iterations": 900}}}, "raw"),
        ({"settings": {"controller": {"input": "rgb"}}}, "rgb"),
        ({"settings": {"controller": {"objective": "reconstruction"}}}, "raw-objective-reconstruction"),
        ({"settings": {"synthesis": {"action": "curves"}}}, "raw-action-curves"),
        ({"settings": {"synthesis": {"action": "couplings"}}}, "raw-action-couplings"),
        ({"settings": {"flow": {"K": 5}}}, "raw-K-5"),
        ({"settings": {"flow": {"M": 32}}}, "raw-M-32"),
        ({"settings": {"synthesis": {"labels": "fitted"}}}, "raw-labels-fitted"),
        ({"settings": {"synthesis": {"labels": "fitted", "coordinate": "raw"}}}, "raw-labels-fitted-coordinate-raw"),
        ({"settings": {"synthesis": {"draws": "actions"}}}, "raw-draws-actions-without-Hayate"),
        ({"correction": "none", "reconcile": "none"}, None),
        ({"correction": "expert"}, None),
        ({"front": "clean", "correction": "none", "reconcile": "none"}, None),
    ],
)
def test_names(row, name):
    """Different trainings have different names, equal ones share a file; the rule finds its settings by the name."""
    given = plan(row)
    assert name_of(given) == name
    if name:
        settings, _ = given.controller.training(Wildcards(dataset="mine", controller=name))
        mine = given.row_settings("mine", "row")
        assert (settings.controller, settings.synthesis, settings.flow) == (mine.controller, mine.synthesis, mine.flow)


def test_a_controller_that_no_row_needs_is_refused():
    with pytest.raises(UserError, match="no variant needs the controller 'rww'; did you mean 'raw'"):
        plan({}).controller.training(Wildcards(dataset="mine", controller="rww"))


def test_names_follow_the_settings():
    """`raw` is whatever the settings call the method."""
    fitted = {"synthesis": {"labels": "fitted"}}
    assert name_of(plan({}, fitted), "method") == "raw"
    shards = ["results/mine/synthetic/default/0000.safetensors"]
    given = plan({}, fitted)
    given.synthesis.shards = lambda wildcards: ["0000"]
    assert given.controller.shards(Wildcards(dataset="mine", controller="raw")) == shards
    assert name_of(plan({"settings": {"synthesis": {"labels": "published"}}}, fitted)) == "raw-labels-published"
    assert name_of(plan({"settings": fitted}, fitted)) == "raw"
