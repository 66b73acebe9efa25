"""The two media: the closed form against the literal sum, known parameters found again, and what each term is for."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from fujinsplat.splat.media import seasplat, watersplatting
from fujinsplat.splat.media.seasplat import SeaMedium, view_depth
from fujinsplat.splat.media.watersplatting import Water, WaterMedium, compose
from fujinsplat.splat.raster.channels import rasterize_channels


def literal_medium(alphas, depths, b):
    """The published sum for one pixel: front to back, `alphas [N]`, `depths [N]` ascending, one channel."""
    transmittance, before, total = torch.ones(1).double(), torch.ones(1).double(), torch.zeros(1).double()
    for alpha, z in zip(alphas, depths, strict=True):
        now = torch.exp(-b * z)
        total = total + transmittance * (before - now)
        transmittance, before = transmittance * (1 - alpha), now
    return total + transmittance * before


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 40))
def test_closed_form_is_the_literal_sum(seed, n):
    """The last term is the medium behind the last Gaussian, which goes on to infinity."""
    g = torch.Generator().manual_seed(seed)
    alphas = torch.rand(n, generator=g, dtype=torch.float64) * 0.99
    depths = torch.rand(n, generator=g, dtype=torch.float64).sort().values * 5
    b = torch.rand(1, generator=g, dtype=torch.float64) * 3
    transmittance = torch.cat([torch.ones(1, dtype=torch.float64), (1 - alphas).cumprod(0)])
    weights = transmittance[:-1] * alphas
    closed = 1 - (weights * torch.exp(-b * depths)).sum()
    torch.testing.assert_close(closed[None], literal_medium(alphas, depths, b), atol=1e-12, rtol=1e-10)


def wall(n=400, seed=0):
    """Gaussians at depths 1 to 5 that cover the picture, their colours, and a camera."""
    g = torch.Generator().manual_seed(seed)
    z = 1 + 4 * torch.rand(n, generator=g)
    xy = (torch.rand(n, 2, generator=g) - 0.5) * 1.4 * z[:, None]
    means = torch.cat([xy, z[:, None]], -1)
    quats = torch.tensor([[1.0, 0, 0, 0]]).repeat(n, 1)
    scales = (0.06 * z)[:, None].repeat(1, 3)
    opacities = torch.full((n,), 0.9)
    K = torch.tensor([[48.0, 0, 24], [0, 48, 16], [0, 0, 1]])
    return (means, quats, scales, opacities), torch.rand(n, 3, generator=g), (torch.eye(4), K, 48, 32)


class Constant(WaterMedium):
    """The same water in every direction, three free numbers per kind."""

    def __init__(self, colour, backscatter, attenuation):
        super().__init__()
        self.numbers = torch.nn.Parameter(torch.tensor([colour, backscatter, attenuation]))

    def forward(self, directions):
        m, b, a = (row.expand(*directions.shape[:-1], 3) for row in self.numbers)
        return Water(m, b, a)


def through_water(medium, geometry, colours, camera, unit=1.0):
    viewmat, K, width, height = camera
    features = watersplatting.channels(medium, geometry[0], colours, viewmat, unit)
    blended, _, _ = rasterize_channels(*geometry, features, viewmat, K, width, height)
    return compose(blended, medium.colour(viewmat, K, width, height))


def test_a_picture_through_water_is_the_literal_sum_of_its_pixels():
    """The six channels against an independent pixel-by-pixel sum in the order of depth."""
    from fujinsplat.splat.raster import reference

    geometry, colours, (viewmat, K, width, height) = wall(60)
    truth = Constant([0.7, 0.6, 0.5], [0.2, 0.3, 0.4], [0.5, 0.3, 0.1])
    with torch.no_grad():
        picture = through_water(truth, geometry, colours, (viewmat, K, width, height))
        m, b, a = truth.numbers.double()
        means, quats, scales, opacities = (x.double() for x in geometry)
        centres, covariances, depths = reference.project(means, quats, scales, viewmat.double(), K.double(), 48, 32)
        order = torch.argsort(depths)
        for x, y in [(3, 4), (24, 16), (40, 30), (17, 9)]:
            pixel = torch.tensor([[x + 0.5, y + 0.5]], dtype=torch.float64)
            alpha = reference.contributions(pixel, centres[order], covariances[order], opacities[order])
            alpha = torch.where(alpha < 1 / 255, torch.zeros_like(alpha), alpha.clamp_max(0.999))[0]
            through = torch.cat([torch.ones(1), (1 - alpha).cumprod(0)[:-1]]).double()
            weights, z = through * alpha, depths[order]
            seen = (weights[:, None] * colours[order].double() * torch.exp(-a * z[:, None])).sum(0)
            medium = m * torch.cat([literal_medium(alpha, z, b[k]) for k in range(3)])
            assert (picture[y, x] - (seen + medium)).abs().max() < 2e-4


def test_known_water_is_found_again():
    geometry, colours, camera = wall(150)
    truth = Constant([0.7, 0.6, 0.5], [0.25, 0.3, 0.4], [0.5, 0.35, 0.2])
    with torch.no_grad():
        target = through_water(truth, geometry, colours, camera)
    found = Constant([0.5] * 3, [0.693] * 3, [0.693] * 3)
    optimizer = torch.optim.Adam([found.numbers], lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        picture = through_water(found, geometry, colours, camera)
        watersplatting.regularised_loss(picture, target, 0.2).backward()
        optimizer.step()
    assert (found.numbers - truth.numbers).abs().max() < 0.03


def test_the_network_learns_a_colour_that_depends_on_direction():
    directions = normalize(torch.randn(512, 3, generator=torch.Generator().manual_seed(1)), dim=-1)
    truth = 0.5 + 0.3 * directions
    medium = WaterMedium(0)
    optimizer = torch.optim.Adam(medium.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        loss = (medium(directions).colour - truth).square().mean()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 1e-3


def test_the_network_starts_in_the_middle():
    water = WaterMedium(3)(normalize(torch.randn(100, 3), dim=-1))
    assert (water.colour - 0.5).abs().max() < 0.3
    assert (water.attenuation - 0.693).abs().max() < 0.5


def test_the_medium_does_not_move_gaussians():
    geometry, colours, camera = wall(20)
    means = geometry[0].clone().requires_grad_()
    features = watersplatting.channels(WaterMedium(0), means, colours, camera[0], 1.0)
    features.sum().backward()
    assert means.grad is None


def test_scene_unit_makes_the_farthest_camera_one():
    viewmats = torch.eye(4).repeat(3, 1, 1)
    viewmats[:, 0, 3] = torch.tensor([0.0, -4.0, 4.0])
    assert watersplatting.scene_unit(viewmats) == 0.25


def test_depth_is_stretched_within_the_view():
    alpha = torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    depth = view_depth(torch.tensor([[2.0, 2.0], [0.0, 6.0]]), alpha)
    torch.testing.assert_close(depth, torch.tensor([[0.0, 0.5], [1.0, 1.0]]))


def test_known_sea_is_found_again():
    """Nine numbers from a clean picture, its depth, and the picture through the medium."""
    g = torch.Generator().manual_seed(0)
    clean, depth = torch.rand(40, 60, 3, generator=g) * 0.6, torch.rand(40, 60, generator=g)
    depth = (depth - depth.min()) / (depth.max() - depth.min())
    truth = SeaMedium(1)
    with torch.no_grad():
        truth.attenuation.copy_(torch.tensor([1.5, 0.7, 0.4]))
        truth.backscatter.copy_(torch.tensor([1.2, 0.9, 1.6]))
        truth.veil.copy_(torch.tensor([0.4, -0.2, 0.1]))
        target = truth(clean, depth)
    medium = SeaMedium(2)
    optimizer = torch.optim.LBFGS(medium.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = 100 * (medium(clean, depth) - target).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    for name in ("attenuation", "backscatter", "veil"):
        assert (getattr(medium, name) - getattr(truth, name)).abs().max() < 0.05, name


def test_backscatter_term_reaches_the_medium_alone_and_follows_the_darkest():
    depth = torch.linspace(0, 1, 50)[None].repeat(20, 1)
    truth = SeaMedium(1)
    target = truth.scattered(depth).detach()  # nothing but the medium's own light
    at_truth = seasplat.backscatter(target, truth.scattered(depth))
    with torch.no_grad():
        brighter, darker = SeaMedium(1), SeaMedium(1)
        brighter.veil += 0.5
        darker.veil -= 0.5
    assert at_truth < seasplat.backscatter(target, darker.scattered(depth))
    assert at_truth < seasplat.backscatter(target, brighter.scattered(depth))


def rendered(requires_grad=False):
    g = torch.Generator().manual_seed(4)
    clean, alpha, z = (
        torch.rand(24, 30, 3, generator=g),
        torch.rand(24, 30, generator=g),
        torch.rand(24, 30, generator=g),
    )
    return tuple(x.requires_grad_(requires_grad) for x in (clean, alpha, z)), torch.rand(24, 30, 3, generator=g)


def test_both_phases_reach_everything_they_should():
    (clean, alpha, z), target = rendered(True)
    medium = SeaMedium(0)
    loss, picture = seasplat.loss_before(medium, clean, alpha, view_depth(z, alpha), target, 0.2)
    loss.backward()
    assert picture.shape == target.shape
    assert medium.background.grad is not None and medium.attenuation.grad is None
    assert all(x.grad is not None and torch.isfinite(x.grad).all() for x in (clean, alpha, z))
    medium.switch()
    torch.testing.assert_close(medium.veil.data, medium.background.data)
    (clean, alpha, z), target = rendered(True)
    loss, _ = seasplat.loss_after(medium, clean, alpha, view_depth(z, alpha), target, 0.2)
    loss.backward()
    assert all(p.grad is not None for p in (medium.attenuation, medium.backscatter, medium.veil))
    assert all(torch.isfinite(x.grad).all() for x in (clean, alpha, z))


def test_what_is_not_covered_starts_in_the_published_colour():
    nothing = torch.zeros(2, 3, 3)
    shown = SeaMedium(0).before(nothing, torch.zeros(2, 3))
    torch.testing.assert_close(shown, torch.tensor([0.05, 0.25, 0.8]).expand(2, 3, 3))


def test_the_nearest_pixel_has_no_haze():
    medium, (clean, _, _) = SeaMedium(0), rendered()[0]
    depth = torch.rand(24, 30)
    depth[3, 4] = 0
    torch.testing.assert_close(medium(clean, depth)[3, 4], clean[3, 4].clamp(0, 1))
