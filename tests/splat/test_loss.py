"""The fused objective against its torch form, for both pictures; the display encoding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fujinsplat.core.color import encode
from fujinsplat.splat.loss import display, photometric_loss, ssim


def pictures(height, width, seed, noise=0.1):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(height, width, 3, generator=g)
    return x, (x + noise * torch.randn(height, width, 3, generator=g)).clamp(0, 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.sampled_from([1, 2, 7, 85, 255, 256, 257, 300]), st.integers(0, 2**31), st.floats(0, 1))
def test_value_and_both_gradients_follow_the_definition(height, width, seed, weight):
    x, y = pictures(height, width, seed)
    fused = [t.clone().requires_grad_() for t in (x, y)]
    plain = [t.double().requires_grad_() for t in (x, y)]
    losses = [photometric_loss(*pair, weight) for pair in (fused, plain)]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=2e-6)
    for loss in losses:
        loss.backward()
    for a, b in zip(fused, plain, strict=True):
        assert (a.grad - b.grad).abs().max() <= 1e-5 * b.grad.abs().max()


def test_the_gradient_of_one_picture_does_not_depend_on_whether_the_other_wants_one():
    x, y = pictures(33, 70, 1)
    alone, together = x.clone().requires_grad_(), x.clone().requires_grad_()
    photometric_loss(alone, y, 0.2).backward()
    photometric_loss(together, y.clone().requires_grad_(), 0.2).backward()
    assert torch.equal(alone.grad, together.grad)


def test_equal_pictures_cost_nothing():
    x, _ = pictures(30, 30, 2)
    assert photometric_loss(x, x.clone(), 0.2).item() == pytest.approx(0, abs=1e-6)
    assert ssim(x.double(), x.double()).item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("dtype", "near", "steep"), [(torch.float64, 1e-12, 1e-9), (torch.float32, 5e-7, 2e-5)])
def test_display_is_clamp_and_encode_with_their_gradient(dtype, near, steep):
    """float64: the torch form; float32: the fused kernel, also where the curve begins, at its knee and at its ends."""
    exact = [0.0, 0.0031308, 1.0, -0.0, 1e-38, 1e-6, 0.9999999]
    linear = torch.cat([torch.linspace(-0.2, 1.3, 9001, dtype=dtype), torch.tensor(exact, dtype=dtype)])
    a, b = linear.clone().requires_grad_(), linear.clone().requires_grad_()
    shown, expected = display(a), encode(b.clamp(0, 1))
    torch.testing.assert_close(shown, expected, rtol=0, atol=near)
    shown.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=2e-6 if dtype == torch.float32 else 0, atol=steep)


def test_display_of_a_diverged_picture_stays_diverged():
    shown = display(torch.tensor([0.5, float("nan"), float("inf"), -float("inf")]))
    assert shown[1].isnan() and shown[2].item() == pytest.approx(1, abs=1e-6) and shown[3] == 0
