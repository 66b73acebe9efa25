"""What a trainer uses: losses, targets, and the depth's gradient in the rasteriser."""

import torch

from fujinsplat.smoke import SmokeSettings, SmokeTargets, depth_loss, linear_loss
from fujinsplat.smoke.loss import display_loss


def test_noise_of_the_target_is_no_bias():
    """The best constant under the linear loss is the median of noisy targets, also near black."""
    noise = torch.randn(64, 64, 3, generator=torch.Generator().manual_seed(0)) * 0.05
    values = torch.linspace(0, 0.04, 41)
    losses = [float(linear_loss(torch.full((64, 64, 3), float(v)), 0.02 + noise, torch.ones(64, 64))) for v in values]
    slopes = (values + 0.02) ** 0.58  # the loss divides by the render's slope; the gradient does not see that
    best = values[int(torch.argmin(torch.tensor(losses) * slopes))]
    assert abs(float(best) - 0.02) < 0.003


def test_a_weight_of_nothing_counts_for_nothing():
    rendered = torch.rand(8, 9, 3, requires_grad=True)
    weight = torch.zeros(8, 9)
    weight[2] = 1
    linear_loss(rendered, torch.rand(8, 9, 3), weight).backward()
    assert rendered.grad[2].abs().min() > 0 and not rendered.grad[3:].any()


def test_depth_is_held_where_points_are_trusted():
    depth, alpha = torch.full((4, 4), 1.0, requires_grad=True), torch.full((4, 4), 0.5)
    trusted = torch.zeros(4, 4, dtype=torch.bool)
    trusted[0] = True
    assert depth_loss(depth, alpha, torch.full((4, 4), 2.0), trusted).item() == 0
    loss = depth_loss(depth, alpha, torch.full((4, 4), 3.0), trusted)
    loss.backward()
    assert (depth.grad[0] < 0).all() and not depth.grad[1:].any()


def test_targets_come_near_the_clean_views_and_resume(smoky):
    targets = SmokeTargets(smoky.views, smoky.cameras, smoky.points)
    clean = smoky.clean[3] * targets.gain
    weight = targets.weights(3)[..., None]
    assert ((targets.targets(3) - clean).abs() * weight).mean() < 0.02 * targets.gain
    assert targets.due(500, 2000) and targets.due(1400, 2000) and not targets.due(1, 2000)
    targets.reestimate(lambda i: (None, torch.ones_like(smoky.depth[i]), smoky.depth[i]))
    again = SmokeTargets(smoky.views, smoky.cameras, smoky.points)
    assert not torch.equal(again.targets(3), targets.targets(3))
    again.restore(targets.state())
    assert torch.equal(again.targets(3), targets.targets(3)) and torch.equal(again.weights(3), targets.weights(3))


def test_clipped_and_encoded_the_same_noise_is_bias():
    """What the row `smoke_display_loss` is there to show: it takes the mean of dark noisy targets for brighter."""
    noise = torch.randn(64, 64, 3, generator=torch.Generator().manual_seed(0)) * 0.05
    dark = noise - 0.02  # its median is below black
    flat = torch.zeros(64, 64, 3, requires_grad=True)
    display_loss(flat, dark, torch.ones(64, 64)).backward()
    assert float(flat.grad.sum()) <= 0, "nothing pulls below black"
    flat.grad = None
    linear_loss(flat, dark, torch.ones(64, 64)).backward()
    assert float(flat.grad.sum()) > 0


def test_with_the_splats_depth_alone_views_stay_hazy_until_there_are_splats(smoky):
    targets = SmokeTargets(smoky.views, smoky.cameras, smoky.points, SmokeSettings(depth="splats"))
    assert torch.allclose(targets.targets(3), smoky.views[3] * targets.gain)
    targets.reestimate(lambda i: (None, torch.ones_like(smoky.depth[i]), smoky.depth[i]))
    off = (targets.targets(3) - smoky.clean[3] * targets.gain).abs().mean()
    assert off < (smoky.views[3] - smoky.clean[3]).abs().mean() * targets.gain / 3
