"""What the Monotone Color Flow promises for every action and every colour [supp. C], on both implementations."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import example, given, settings

from fujinsplat import flow
from fujinsplat.flow import fused, layout, reference

# Numba compiles on first use; that is no property of an example
quick = settings(max_examples=30, deadline=None)
SHAPES = [(7, 16), (5, 8), (9, 22), (11, 32), (0, 2)]
shapes = st.sampled_from(SHAPES)
sides = st.sampled_from([reference, fused])
seeds = st.integers(0, 2**31)
# independent normal coefficients of this deviation: up to where float64 still carries eight stacked curves
realistic = st.floats(0.0, 0.2)


def draw(seed: int, K: int, M: int, scale: float, batch: int = 2, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(batch, layout.size(K, M), generator=generator, dtype=dtype)


def colors(seed: int, count: int = 200, low: float = -1.0, high: float = 2.0, batch: int = 2) -> torch.Tensor:
    """Inside and outside [0, 1], with the corners of the cube among them."""
    generator = torch.Generator().manual_seed(seed)
    inside = torch.rand(batch, count, 3, generator=generator, dtype=torch.float64) * (high - low) + low
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3)
    return torch.cat([inside, corners.expand(batch, -1, -1)], dim=1)


def test_the_paper_has_573_coefficients():
    assert flow.size() == flow.size(K=7, M=16) == 573
    assert flow.curve_size() == 384


@quick
@given(sides, shapes, st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([torch.float32, torch.float64]))
@example(fused, (7, 16), 1e300, torch.float64)
@example(reference, (9, 22), 16777217.0, torch.float64)
def test_the_zero_action_is_exactly_the_identity_tails_included(side, shape, value, dtype):
    value = torch.tensor(value, dtype=torch.float64).clamp(-3e38, 3e38)
    rgb = torch.cat([colors(0), value.expand(2, 1, 3)], dim=1).to(dtype)
    zero = layout.zeros(2, K=shape[0], M=shape[1], dtype=dtype)
    assert torch.equal(side.apply(rgb, zero, *shape), rgb)
    assert torch.equal(side.invert(rgb, zero, *shape), rgb)


@quick
@given(sides, shapes, seeds, realistic)
def test_inverse_and_forward_undo_each_other(side, shape, seed, scale):
    action, rgb = draw(seed, *shape, scale * min(1, 8 / (shape[0] + 1))), colors(seed)
    assert (side.invert(side.apply(rgb, action, *shape), action, *shape) - rgb).abs().max() < 1e-9
    assert (side.apply(side.invert(rgb, action, *shape), action, *shape) - rgb).abs().max() < 1e-9


@quick
@given(sides, seeds, st.floats(0, 3))
def test_one_strong_curve_block_inverts_as_well(side, seed, scale):
    """Compiled labels are of this kind: one steep curve among zero ones, and couplings."""
    curves, couplings = flow.split(draw(seed, 7, 16, scale))
    curves = torch.cat([torch.zeros_like(curves[:, :7]), curves[:, 7:]], dim=1)
    action, rgb = flow.pack(curves, couplings), colors(seed)
    assert (side.invert(side.apply(rgb, action), action) - rgb).abs().max() < 1e-9
    assert (side.apply(side.invert(rgb, action), action) - rgb).abs().max() < 1e-9


@quick
@given(sides, st.sampled_from([2, 8, 16, 22, 32]), seeds, st.floats(0, 20))
def test_curves_strictly_increase_and_fix_0_and_1(side, M, seed, scale):
    """K = 0 leaves a single curve block."""
    action = draw(seed, 0, M, scale)
    steps = torch.linspace(-2, 3, 5001, dtype=torch.float64)[None, :, None].expand(2, -1, 3)
    assert (side.apply(steps, action, 0, M).diff(dim=1) > 0).all()
    assert (side.invert(steps, action, 0, M).diff(dim=1) > 0).all()
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)[None, :, None].expand(2, -1, 3)
    assert (side.apply(ends, action, 0, M) - ends).abs().max() < 1e-13


def jacobians(function, rgb: torch.Tensor) -> torch.Tensor:
    """`[N, 3, 3]` of a map of colours `[N, 3]`."""
    rgb = rgb.clone().requires_grad_()
    out = function(rgb)
    rows = [torch.autograd.grad(out[:, c].sum(), rgb, retain_graph=True)[0] for c in range(3)]
    return torch.stack(rows, dim=1)


@quick
@given(sides, seeds, st.integers(0, 6), st.floats(0, 10))
def test_every_coupling_has_determinant_one(side, seed, stage, scale):
    couplings = torch.zeros(1, 7, 3, 9, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    couplings[:, stage] = scale * torch.randn(3, 9, generator=generator, dtype=torch.float64)
    action = flow.pack(torch.zeros(1, 8, 3, 16, dtype=torch.float64), couplings)
    rgb = colors(seed, batch=1)[0]
    for direction in (side.apply, side.invert):
        determinant = torch.linalg.det(jacobians(lambda x, d=direction: d(x[None], action)[0], rgb))
        assert (determinant - 1).abs().max() < 1e-12


@quick
@given(sides, shapes, seeds, st.floats(0, 0.25))
def test_the_composition_keeps_orientation(side, shape, seed, scale):
    action, rgb = draw(seed, *shape, scale, batch=1), colors(seed, batch=1)[0]
    assert (torch.linalg.det(jacobians(lambda x: side.apply(x[None], action, *shape)[0], rgb)) > 0).all()


@pytest.mark.parametrize("direction", ["apply", "invert"])
@pytest.mark.parametrize(("side", "shape"), [(reference, (2, 5)), (fused, (2, 5)), (fused, (7, 16))])
def test_gradients_are_those_of_finite_differences(side, direction, shape):
    """Away from the knots: the flow is piecewise smooth, and a difference quotient must not straddle a kink."""
    action = draw(3, *shape, 0.1, batch=2).requires_grad_()
    rgb = (0.7 * colors(4, count=6, low=0.02, high=0.98)[:, :6] + 0.013).requires_grad_()
    function = getattr(side, direction)
    assert torch.autograd.gradcheck(lambda x, p: function(x, p, *shape), (rgb, action), eps=1e-7, atol=1e-5)


@quick
@given(sides, seeds, st.floats(-3e38, 3e38), st.floats(-1e30, 1e30), st.sampled_from([torch.float32, torch.float64]))
def test_no_finite_input_gives_nan(side, seed, value, coefficient, dtype):
    action = draw(seed, 7, 16, 1.0) + coefficient * (draw(seed + 1, 7, 16, 1.0) > 1)
    rgb = torch.cat([colors(seed), torch.full((2, 1, 3), value, dtype=torch.float64)], dim=1)
    for direction in (side.apply, side.invert):
        assert not direction(rgb.to(dtype), action.to(dtype)).isnan().any()
