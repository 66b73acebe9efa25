"""The delta-ISP: Eq. 4 exactly, zero mean always, alpha within its bounds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fujinsplat.core.settings import PAPER_ITERATIONS
from fujinsplat.splat.reconcilers.delta import DeltaISP, DeltaSettings

PAPER = DeltaSettings(), PAPER_ITERATIONS


def made(seed=0, views=7, size=573, spread=0.3):
    g = torch.Generator().manual_seed(seed)
    return DeltaISP(spread * torch.randn(views, size, generator=g), *PAPER)


def set_alpha(delta, values):
    with torch.no_grad():
        delta.alpha.copy_(torch.as_tensor(values, dtype=torch.float64))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 30), st.lists(st.floats(0, 1), min_size=30, max_size=30))
def test_zero_mean_whatever_alpha(seed, views, alpha):
    delta = made(seed, views, spread=5.0)
    set_alpha(delta, alpha[:views])
    assert float(delta.deltas().detach().mean(0).abs().max()) <= 1e-9
    assert delta.residual() <= 1e-9


def test_equation_four():
    delta = made()
    alpha = np.linspace(0, 1, 7)
    set_alpha(delta, alpha)
    d = delta.displacements.numpy()
    expected = alpha[:, None] * d - (alpha[:, None] * d).sum(0) / 7
    assert np.allclose(delta.deltas().detach().numpy(), expected, atol=1e-15)


def test_from_the_shared_action_to_the_controllers_own():
    g = torch.Generator().manual_seed(1)
    predictions = torch.randn(5, 573, generator=g)
    delta = DeltaISP(predictions, *PAPER)
    assert torch.allclose(delta.actions(), predictions.mean(0).expand(5, -1), atol=1e-6)
    set_alpha(delta, [1.0] * 5)
    assert torch.allclose(delta.actions(), predictions, atol=1e-6)


def test_alpha_stays_in_bounds_and_moves_down_the_gradient():
    delta = made()
    wanted = delta.shared + 0.5 * delta.displacements[2]
    for step in range(400):
        (delta.actions()[2].double() - wanted).square().sum().backward()
        delta.step()
        assert 0 <= float(delta.alpha.detach().min()) and float(delta.alpha.detach().max()) <= 1, step
    assert float(delta.alpha.detach()[2]) > 0.2


def test_resumes_exactly():
    a, b = made(), made()
    for delta in (a, b):
        delta.actions().sum().backward()
        delta.step()
    again = made()
    again.restore(a.state())
    for delta in (b, again):
        delta.actions().square().sum().backward()
        delta.step()
    assert torch.equal(b.alpha, again.alpha)


def test_one_action_for_all_views_leaves_nothing_to_reconcile():
    delta = DeltaISP(torch.ones(4, 573), *PAPER)
    set_alpha(delta, [0.3, 0.9, 0.1, 1.0])
    assert not delta.deltas().any() and delta.residual() == pytest.approx(0, abs=1e-15)
