"""Any number of channels: against the equations, the three colours, and the absolute gradient pixel by pixel."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import drawn, make, steady

from fujinsplat.splat import rasterize
from fujinsplat.splat.raster.channels import rasterize_channels

GEOMETRY = ("means", "quats", "scales", "opacities")


def close(actual, expected, what, share=1e-5):
    assert actual.shape == expected.shape, what
    if expected.numel():
        scale = max(1.0, float(expected.abs().max()))
        assert float((actual - expected).abs().max()) <= share * scale, what


def run(scene, features, dtype, v_image, v_alpha):
    given = scene.arguments(dtype)
    leaves = {name: given[name] for name in GEOMETRY} | {"features": features.to(dtype).clone().requires_grad_()}
    camera = {name: given[name] for name in ("viewmat", "K", "width", "height")}
    image, alpha, info = rasterize_channels(**leaves, **camera)
    info["means2d"].retain_grad()
    ((image * v_image.to(dtype)).sum() + (alpha * v_alpha.to(dtype)).sum()).backward()
    return image.detach(), alpha.detach(), info, {name: leaf.grad for name, leaf in leaves.items()}


@settings(max_examples=50, deadline=None)
@given(drawn(), st.integers(1, 8))
def test_channels_follow_the_equations(scene, count):
    calm, _ = steady(scene)
    random = torch.Generator().manual_seed(2)
    features = torch.rand(len(scene.gaussians["means"]), count, generator=random) - 0.3
    v_image = (torch.rand(scene.height, scene.width, count, generator=random) - 0.5) * calm[..., None]
    v_alpha = (torch.rand(scene.height, scene.width, generator=random) - 0.5) * calm
    image, alpha, info, gradients = run(scene, features, torch.float32, v_image, v_alpha)
    expected_image, expected_alpha, expected_info, expected = run(scene, features, torch.float64, v_image, v_alpha)
    close(image[calm], expected_image[calm], "picture")
    close(alpha[calm], expected_alpha[calm], "alpha")
    for name, gradient in expected.items():
        gradient = torch.zeros_like(gradients[name]) if gradient is None else gradient
        close(gradients[name], gradient, f"gradient of {name}")
    found, wanted = info["means2d"].grad, expected_info["means2d"].grad
    close(found, torch.zeros_like(found) if wanted is None else wanted, "gradient of the picture positions")


def test_three_channels_are_the_three_colours():
    scene = make(5, ["ordinary"] * 30, 60, 50, 1, True)
    a = scene.arguments()
    image, alpha, _ = rasterize(**(a | {"background": None}))
    colours = (0.28209479177387814 * a["sh"][:, 0] + 0.5).clamp_min(0)
    camera = {name: a[name] for name in ("viewmat", "K", "width", "height")}
    again, again_alpha, _ = rasterize_channels(*(a[name] for name in GEOMETRY), colours, **camera)
    close(again.detach(), image.detach(), "picture", 1e-6)
    close(again_alpha.detach(), alpha.detach(), "alpha", 1e-6)


def test_the_absolute_gradient_is_the_sum_of_the_pixels_own():
    scene = make(8, ["ordinary", "needle", "huge"] * 4, 20, 17, 1, True)
    calm, _ = steady(scene)
    random = torch.Generator().manual_seed(3)
    features = torch.rand(12, 6, generator=random)
    v_image = (torch.rand(17, 20, 6, generator=random) - 0.5) * calm[..., None]
    no_alpha = torch.zeros(17, 20)
    _, _, info, _ = run(scene, features, torch.float32, v_image, no_alpha)
    total = torch.zeros(1, 12, 2, dtype=torch.float64)
    for y in range(17):
        for x in range(20):
            one = torch.zeros_like(v_image)
            one[y, x] = v_image[y, x]
            total += run(scene, features, torch.float64, one, no_alpha)[2]["means2d"].grad.abs()
    close(info["means2d"].absgrad, total.float(), "absolute gradient", 2e-5)


def test_wrong_features_are_refused():
    scene = make(1, ["ordinary"] * 3, 8, 8, 1, False)
    a = scene.arguments()
    with pytest.raises(ValueError, match="features"):
        rasterize_channels(*(a[n] for n in GEOMETRY), torch.rand(2, 4), a["viewmat"], a["K"], 8, 8)
