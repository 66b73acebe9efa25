"""The fused kernels say what the plain torch reference says, gradients included."""

import pytest
import torch

from fujinsplat import flow
from fujinsplat.flow import fused, layout, reference
from fujinsplat.flow.operator import implementation


def sample(K: int, M: int, count: int, dtype: torch.dtype, scale: float = 0.15):
    generator = torch.Generator().manual_seed(K * 100 + M + count)
    rgb = torch.rand(3, count, 3, generator=generator, dtype=torch.float64) * 1.6 - 0.3
    action = scale * torch.randn(3, layout.size(K, M), generator=generator, dtype=torch.float64)
    weight = torch.randn(3, count, 3, generator=generator, dtype=torch.float64)
    return rgb.to(dtype), action.to(dtype), weight.to(dtype)


def everything(side, direction, rgb, action, weight, K, M):
    """Result, colour gradient, coefficient gradient."""
    rgb, action = rgb.clone().requires_grad_(), action.clone().requires_grad_()
    out = getattr(side, direction)(rgb, action, K, M)
    (out * weight).sum().backward()
    return out.detach(), rgb.grad, action.grad


@pytest.mark.parametrize("direction", ["apply", "invert"])
@pytest.mark.parametrize("shape", [(7, 16), (5, 8), (9, 22), (11, 32), (1, 2), (0, 5)])
def test_float64_agrees_to_rounding(direction, shape):
    inputs = sample(*shape, 1003, torch.float64)
    plain, fast = (everything(side, direction, *inputs, *shape) for side in (reference, fused))
    for a, b in zip(plain, fast, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-9 * float(a.abs().max()))


@pytest.mark.parametrize("direction", ["apply", "invert"])
def test_float32_is_as_near_to_the_truth_as_the_reference_is(direction):
    inputs = sample(7, 16, 4096, torch.float32)
    truth = everything(reference, direction, *(x.double() for x in inputs), 7, 16)
    plain, fast = (everything(side, direction, *inputs, 7, 16) for side in (reference, fused))
    for t, a, b in zip(truth, plain, fast, strict=True):
        # a pixel within rounding of a knot may take the neighbouring piece: compare all but the worst few
        errors = [((x.double() - t).abs() / (1 + t.abs())).flatten().quantile(0.999) for x in (a, b)]
        assert errors[1] <= 2 * errors[0] + 1e-6


@pytest.mark.parametrize("count", [0, 1, 7, 8, 15, 16, 17, 33, 8191, 8193])
def test_every_number_of_pixels_is_whole(count):
    """Pixels go through the kernel by registers and tasks; neither may lose or mix any."""
    for dtype in (torch.float32, torch.float64):
        rgb, action, weight = sample(7, 16, count, dtype)
        alone = [fused.apply(rgb[:, i : i + 1], action) for i in range(0, count, max(1, count // 40))]
        together = fused.apply(rgb, action)
        for i, one in zip(range(0, count, max(1, count // 40)), alone, strict=True):
            assert torch.equal(together[:, i : i + 1], one)
        if count:
            plain, fast = (everything(side, "apply", rgb, action, weight, 7, 16)[2] for side in (reference, fused))
            torch.testing.assert_close(fast, plain, rtol=1e-2, atol=1e-3 * float(plain.abs().max()))


def test_any_picture_shape_and_one_action_for_all():
    rgb, action, _ = sample(7, 16, 60, torch.float64)
    picture = rgb.view(3, 4, 5, 3, 3)
    flat = flow.apply(rgb, action)
    assert torch.equal(flow.apply(picture, action), flat.view_as(picture))
    assert torch.equal(flow.apply(picture.transpose(1, 2), action), flat.view_as(picture).transpose(1, 2))
    assert torch.equal(flow.apply(rgb[1], action[1]), flat[1])
    assert torch.equal(flow.invert(rgb[0, 0], action[0]), flow.invert(rgb, action)[0, 0])


def test_float64_colours_or_coefficients_give_float64():
    rgb, action, _ = sample(7, 16, 5, torch.float64)
    assert flow.apply(rgb, action.float()).dtype == flow.apply(rgb.float(), action).dtype == torch.float64
    assert flow.apply(rgb.float(), action.float()).dtype == torch.float32


def test_only_the_gradients_asked_for():
    rgb, action, _ = sample(7, 16, 50, torch.float64)
    action.requires_grad_()
    flow.apply(rgb, action).sum().backward()
    assert rgb.grad is None and action.grad.abs().sum() > 0


def test_gradients_do_not_depend_on_the_number_of_threads():
    import numba

    inputs = sample(7, 16, 9000, torch.float32)
    before = numba.get_num_threads()
    try:
        results = []
        for threads in {1, before}:
            numba.set_num_threads(threads)
            results.append(everything(fused, "apply", *inputs, 7, 16)[2])
    finally:
        numba.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results)


def test_the_device_decides():
    assert implementation(torch.device("cpu")) is fused
    assert implementation(torch.device("meta")) is reference


def test_a_wrong_size_is_named():
    with pytest.raises(ValueError, match=r"K=7 couplings and M=16 segments has 573 coefficients, not 300"):
        flow.apply(torch.zeros(1, 4, 3), torch.zeros(1, 300))
    with pytest.raises(ValueError, match="last axis of 3"):
        flow.apply(torch.zeros(1, 3, 4), flow.zeros(1))
    with pytest.raises(ValueError, match="do not share a batch"):
        flow.apply(torch.zeros(2, 4, 3), flow.zeros(3))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_agrees_with_the_cpu():
    rgb, action, _ = sample(7, 16, 500, torch.float64)
    torch.testing.assert_close(flow.apply(rgb.cuda(), action.cuda()).cpu(), flow.apply(rgb, action))
