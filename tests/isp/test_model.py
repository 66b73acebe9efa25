"""Properties of the six modules, in the reference."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fujinsplat.core import color
from fujinsplat.isp import BaseISP, reference

# twice what calibration allows: beyond, an increment may vanish in float32 beside the sum of the others
anything = st.floats(-8, 8, width=32)


def test_parameters_and_buffers_have_the_published_names_and_count():
    base = BaseISP()
    assert list(dict(base.named_parameters())) == [
        *("exposure", "white_balance", "generator", "shaper", "g9", "r33", "tone")
    ]
    assert sum(p.numel() for p in base.parameters()) == 111_547
    assert base.r33.numel() == 107_811
    assert set(dict(base.named_buffers())) == {"base_exposure", "base_white_balance", "base_matrix"}


def test_zero_parameters_leave_the_plain_matrix_development():
    balance, matrix = np.log([2.0, 1.0, 1.5]), np.array([[1.4, -0.1, 0.0], [-0.3, 1.3, -0.4], [-0.1, -0.2, 1.4]])
    base = BaseISP(0.3, balance, matrix).double()
    raw = torch.rand(500, 3, dtype=torch.float64)
    gains = np.exp(0.3 + balance - balance.mean())
    expected = color.encode((raw.numpy() * gains) @ matrix)  # row vectors: out = in @ matrix
    assert np.abs(base(raw).detach().numpy() - expected).max() < 1e-6


def test_overall_scale_belongs_to_the_exposure(base, raw):
    before = base.forward_reference(raw)
    with torch.no_grad():
        base.white_balance += 0.7
    assert torch.allclose(base.forward_reference(raw), before, atol=1e-5)
    with torch.no_grad():
        base.exposure += math.log(2)
    assert torch.allclose(base.front_matrix(), 2 * base.front_matrix() / 2)
    assert torch.allclose(base.stages_reference(raw)[0], 2 * base.stages_reference(raw / 2)[0], atol=1e-6)


@given(st.lists(st.floats(-3, 3, width=32), min_size=9, max_size=9))
@settings(max_examples=30, deadline=None)
def test_matrix_stays_invertible_and_keeps_its_orientation(values):
    base = BaseISP().double()
    with torch.no_grad():
        base.generator.copy_(torch.tensor(values).reshape(3, 3))
    expected = math.exp(sum(values[::4]))  # det expm(A) = exp(trace A)
    assert torch.linalg.det(base.front_matrix()).item() == pytest.approx(expected, rel=1e-6)


@given(st.lists(anything, min_size=6, max_size=256), st.sampled_from([1.0, 16.0]))
@settings(max_examples=60, deadline=None)
def test_curves_strictly_increase_at_every_parameter_value(values, length):
    parameter = torch.zeros(3, 256)
    parameter[:, : len(values)] = torch.tensor(values)
    for dtype in (torch.float32, torch.float64):
        deviation = reference.curve_deviation(parameter.to(dtype), length)
        nodes = torch.linspace(0, length, 257, dtype=dtype) + deviation
        assert torch.isfinite(nodes).all()
        assert (nodes.diff(dim=-1) > 0).all()
        assert (deviation[:, [0, -1]] == 0).all()


def test_residual_lattice_is_bounded():
    g9, r33 = torch.zeros(9, 9, 9, 3), torch.full((33, 33, 33, 3), 1e6)
    assert reference.lattice_nodes(g9, r33).abs().max() <= 0.1
    assert reference.lattice_nodes(g9, -r33).min() == pytest.approx(-0.1)
    r33 = torch.full((33, 33, 33, 3), 100.0)
    r33[::2] *= -1  # bounded after it is read: halfway between opposite nodes there is nothing left
    where = torch.tensor([[0.5 / 32, 0.3, 0.7], [0.75 / 32, 0.3, 0.7]])
    assert reference.lattice_action(g9, r33, where).abs().max(dim=1).values.tolist() == pytest.approx(
        [0, 0.1], abs=1e-4
    )


def test_reading_the_refined_coarse_lattice_equals_reading_the_coarse_one():
    coarse = torch.randn(9, 9, 9, 3, dtype=torch.float64)
    where = torch.rand(2000, 3, dtype=torch.float64)
    direct = reference.read_lattice(coarse, where)
    assert torch.allclose(reference.read_lattice(reference.coarse_to_fine(coarse), where), direct, atol=1e-12)


def test_lattice_axes_are_red_green_blue():
    nodes = torch.zeros(33, 33, 33, 3)
    nodes[32, 0, 16] = torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(reference.read_lattice(nodes, torch.tensor([1.0, 0.0, 0.5])), torch.tensor([1.0, 2.0, 3.0]))


def test_coordinate_is_zero_for_negative_input_and_below_one():
    x = torch.tensor([-5.0, -1e-6, 0.0, 0.05, 1.0, 1e4])
    u = reference.coordinate(x)
    assert (u[:3] == 0).all() and u[3] == pytest.approx(0.5) and (u.diff()[2:] > 0).all() and u[-1] < 1


def test_latent_step_is_the_asinh_latent_moved():
    x = torch.linspace(-2, 3, 400, dtype=torch.float64)
    action = torch.linspace(-1.5, 1.5, 400, dtype=torch.float64)
    moved = reference.SCALE * torch.sinh(torch.asinh(x / reference.SCALE) + action)
    assert torch.allclose(reference.latent_step(x, action), moved, atol=1e-12)
    assert torch.equal(reference.latent_step(x, torch.zeros_like(x)), x)


def test_tone_is_the_identity_outside_its_range(base):
    edge = reference.SCALE * math.sinh(reference.TONE_RANGE)
    tone = base.operands().tone
    outside = torch.tensor([[-2 * edge, 1.01 * edge, 1e6]])
    inside = torch.tensor([[0.1, 0.2, -0.1]])
    assert (reference.tone_action(tone, outside) == 0).all()
    assert (reference.tone_action(tone, inside) != 0).all()


def test_encoded_output_rises_with_the_raw_of_a_grey_pixel_when_the_lattice_rests():
    base = BaseISP()
    with torch.no_grad():
        base.tone.copy_(2 * torch.randn(3, 256, generator=torch.Generator().manual_seed(3)))
    grey = torch.linspace(0, 2, 3000)[:, None].expand(-1, 3)
    assert (base.double().forward_reference(grey.double()).diff(dim=0) > 0).all()


def test_gradients_match_finite_differences():
    base = BaseISP(0.2, (0.3, -0.2, -0.1)).double()
    raw = torch.tensor([[0.11, 0.23, 0.31], [0.4, 0.5, 0.2]], dtype=torch.float64, requires_grad=True)
    for parameter in base.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double()
    assert torch.autograd.gradcheck(base, raw)
    small = [base.exposure, base.white_balance, base.generator]
    assert torch.autograd.gradcheck(lambda *_: base(raw.detach()), small)


def test_float64_in_gives_float64_out(base, raw):
    assert base(raw.double()).dtype == torch.float64
    assert base(raw).dtype == torch.float32


def test_shape_of_the_input_is_kept(base):
    picture = torch.rand(5, 7, 3)
    with torch.no_grad():
        assert torch.equal(base(picture), base(picture.reshape(-1, 3)).reshape(5, 7, 3))
        assert base(picture[0, 0]).shape == (3,)
    assert base(picture).shape == (5, 7, 3)
