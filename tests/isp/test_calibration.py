"""The paper's updates: objective, schedule, and what they leave alone."""

import numpy as np
import pytest
import torch

from fujinsplat.core.settings import IspSettings
from fujinsplat.isp import calibrate, calibration, initial, objective, samples

from .camera import SimulatedViews
from .conftest import lively
from .test_initial import fidelity

SHORT = IspSettings(warmup_steps=6, joint_steps=14, pixels=1024, patches=4, patch_size=16, jacobian_pixels=16)


@pytest.fixture(scope="module")
def drawn():
    return samples.take(SimulatedViews(), SHORT)


def updated(drawn, settings=SHORT, **how):
    base = initial.initial_state(drawn, settings, "here")
    course = calibration.optimise(base, drawn, settings, **how)
    return base, course


def test_fused_and_reference_objective_agree(drawn):
    base = lively(scale=0.3)
    batch = calibration.batch_of(drawn.views[0], 0, SHORT, "cpu")
    heavy = SHORT.model_copy(update={"weight_lattice": 1e-4, "weight_smooth": 1e-4, "weight_jacobian": 0.5})
    front = base.front_matrix().detach()
    published = heavy.model_copy(update={"jacobian": "output"})
    for initial_front, chosen in ((front, heavy), (0.1 * front, heavy), (front, published)):  # safe, unsafe, unsafe
        found = []
        for loss_of in (calibration.loss_reference, calibration.loss_fused):
            terms = calibration.Terms(initial_front, torch.Generator().manual_seed(1))
            loss, matched = loss_of(base, batch, terms, chosen)
            found.append((loss, matched, torch.autograd.grad(loss, list(base.parameters()))))
        (loss, matched, ours), (plain_loss, plain_matched, theirs) = found
        assert loss.item() == pytest.approx(plain_loss.item(), rel=1e-5)
        assert matched.item() == pytest.approx(plain_matched.item(), rel=1e-5)
        for name, a, b in zip(dict(base.named_parameters()), ours, theirs, strict=True):
            assert (a - b).norm() < 2e-3 * b.norm(), name


def test_fused_and_reference_updates_agree(drawn):
    (fused, course), (plain, plain_course) = updated(drawn), updated(drawn, use_reference=True)
    assert np.allclose(course.losses, plain_course.losses, rtol=0.02, atol=2e-7)  # a level more or less
    raw = torch.from_numpy(drawn.views[0].quiet_raw)
    with torch.no_grad():
        assert (fused(raw) - plain(raw)).abs().mean() < 2e-4


def test_calibration_fits_better_than_its_initial_state_and_keeps_unseen_colours():
    views, clean = SimulatedViews(), SimulatedViews(hazy=False)
    settings = IspSettings(initial="metadata", warmup_steps=30, joint_steps=90, pixels=4096)
    start = initial.initial_state(samples.take(views, settings), settings, "here")
    base, course = calibrate(views, settings)
    assert fidelity(base, views) > fidelity(start, views) + 3
    assert fidelity(base, clean) > fidelity(start, clean) - 0.5
    assert len(course.losses) == 120 and np.mean(course.losses[-20:]) < 0.6 * np.mean(course.losses[:20])


def test_same_seed_same_base_other_seed_another():
    views = SimulatedViews(count=2)
    one, two = calibrate(views, SHORT)[0], calibrate(views, SHORT)[0]
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    other = calibrate(views, SHORT.model_copy(update={"seed": 1}))[0]
    assert not torch.equal(one.g9, other.g9)


def test_warm_up_moves_the_back_alone(drawn):
    start = initial.initial_state(drawn, SHORT, "here")
    only_back = SHORT.model_copy(update={"warmup_steps": 20, "joint_steps": 0})
    base, _ = updated(drawn, only_back)
    for name in ("exposure", "white_balance", "generator"):
        assert torch.equal(getattr(base, name), getattr(start, name))
    for name in ("shaper", "tone", "g9", "r33"):
        assert not torch.equal(getattr(base, name), getattr(start, name))
    base, _ = updated(drawn)
    assert base.generator.abs().max() > 0 and base.exposure.abs() > 0


def test_rates_fall_from_one_towards_their_final_value():
    factors = [calibration.rate_factor(k, 500, 0.05) for k in range(501)]
    assert factors[0] == 1 and factors[500] == pytest.approx(0.05) and (np.diff(factors) < 0).all()
    assert factors[125] == pytest.approx(0.05 + 0.95 * (1 + 2**-0.5) / 2)


def test_every_view_is_read_equally_often():
    order = samples.view_order(7, 500, np.random.default_rng(0))
    counts = np.bincount(order, minlength=7)
    assert counts.sum() == 500 and np.ptp(counts) <= 1
    assert len(samples.view_order(7, 0, np.random.default_rng(0))) == 0


def test_patches_are_squares_at_the_same_places_of_every_view():
    views = SimulatedViews(count=2)
    found = []
    for view in samples.take(views, SHORT).views:
        raw = views.raw(view.stem)
        assert view.patches_raw.shape == (4, 256, 3)
        windows = np.lib.stride_tricks.sliding_window_view(raw, (16, 16, 3))[:, :, 0]
        patch = view.patches_raw[0].reshape(16, 16, 3)
        found.append(np.argwhere((windows[..., 0, 0, 0] == patch[0, 0, 0]) & (windows == patch).all(axis=(2, 3, 4))))
    assert len(found[0]) == 1 and np.array_equal(found[0], found[1])
    tiny = SimulatedViews(count=1, height=20, width=24)
    assert samples.take(tiny, IspSettings()).views[0].patches_raw.shape == (16, 400, 3)


def test_straight_through_quantizer():
    x = torch.tensor([-0.2, 0.1234, 0.5, 1.3], requires_grad=True)
    q = objective.q8(x)
    assert torch.allclose(q * 255, torch.tensor([0.0, 31.0, 128.0, 255.0]), atol=1e-4)
    (grad,) = torch.autograd.grad(q.sum(), x)
    assert torch.equal(grad, torch.ones(4))


def test_range_hinge_is_squared_and_two_sided():
    inside, outside = torch.rand(10, 3), torch.tensor([[-0.2, 0.5, 1.3]])
    assert objective.out_of_range(inside) == 0
    assert objective.out_of_range(outside).item() == pytest.approx((0.04 + 0.09) / 3)


def test_jacobian_safety_is_zero_near_the_front_and_grows_with_every_kind_of_harm():
    front = torch.tensor([[2.0, -0.3, 0.0], [-0.4, 1.5, -0.2], [0.1, -0.3, 1.8]], dtype=torch.float64)
    raw = 0.2 + 0.5 * torch.rand(16, 3, dtype=torch.float64)

    def penalty(change):
        return objective.front_safety(objective.probe(raw, 1e-3) @ front @ change, 1e-3, front).item()

    one = torch.eye(3, dtype=torch.float64)
    assert penalty(one) == 0 and penalty(1.5 * one) == 0 and penalty(0.5 * one) == 0
    assert penalty(20 * one) > penalty(8 * one) > 0.1  # too large a scale
    squeezed = torch.diag(torch.tensor([1.0, 1.0, 0.01], dtype=torch.float64))
    assert penalty(squeezed) > 1  # a direction nearly lost
    assert penalty(torch.diag(torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))) == pytest.approx(1)  # mirrored
    assert penalty(1e6 * one) < 1000  # logarithmic: it cannot dominate
