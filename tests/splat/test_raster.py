"""The CPU engine against the equations: pictures and every gradient, on scenes that hypothesis makes."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scenes import KINDS, drawn, make, steady

from fujinsplat.splat import rasterize

LEAVES = ("means", "quats", "scales", "opacities", "sh", "background")


def run(scene, dtype, v_image, v_alpha):
    """Picture, alpha, depth, gradients of all inputs and of the picture positions."""
    arguments = scene.arguments(dtype)
    image, alpha, info = rasterize(**arguments)
    info["means2d"].retain_grad()
    ((image * v_image.to(dtype)).sum() + (alpha * v_alpha.to(dtype)).sum()).backward()
    gradients = {name: arguments[name].grad for name in LEAVES}
    zero = torch.zeros_like(info["means2d"])
    gradients["means2d"] = zero if info["means2d"].grad is None else info["means2d"].grad
    return image.detach(), alpha.detach(), info, gradients


def close(actual, expected, what):
    """To 1e-5 of the largest entry (of 1 where everything is small)."""
    assert actual.shape == expected.shape, what
    if expected.numel():
        scale = max(1.0, float(expected.abs().max()))
        assert float((actual - expected).abs().max()) <= 1e-5 * scale, what


def compare(scene):
    calm, colours_calm = steady(scene)
    assume(colours_calm)
    random = torch.Generator().manual_seed(1)
    weight = calm.to(torch.float64)  # no gradient from pixels that stand on a threshold
    v_image = (torch.rand(scene.height, scene.width, 3, generator=random) - 0.5) * weight[..., None]
    v_alpha = (torch.rand(scene.height, scene.width, generator=random) - 0.5) * weight
    image, alpha, info, gradients = run(scene, torch.float32, v_image, v_alpha)
    expected_image, expected_alpha, expected_info, expected = run(scene, torch.float64, v_image, v_alpha)
    assert image.dtype == torch.float32 and expected_image.dtype == torch.float64
    close(image[calm], expected_image[calm], "picture")
    close(alpha[calm], expected_alpha[calm], "alpha")
    close(info["depth"][calm], expected_info["depth"][calm], "depth")
    for name, gradient in expected.items():
        close(gradients[name], gradient, f"gradient of {name}")
    return calm, info, expected_info


@settings(max_examples=80, deadline=None)
@given(drawn())
def test_pictures_and_gradients_follow_the_equations(scene):
    compare(scene)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_each_odd_kind_follows_the_equations(kind, seed):
    compare(make(seed, [kind, "ordinary"] * 6, 33, 40, 16, True))


@settings(max_examples=30, deadline=None)
@given(drawn(most=60))
def test_almost_every_pixel_is_compared(scene):
    """The comparison above leaves out pixels on a threshold; they must stay rare for it to mean anything."""
    calm, _ = steady(scene)
    assert (~calm).sum() <= max(3, 0.05 * calm.numel())


@settings(max_examples=60, deadline=None)
@given(drawn())
def test_visibility_is_that_of_the_equations(scene):
    """Radii decide which views count for densification; whole-pixel rounding may differ by one on an edge."""
    a, b = (rasterize(**scene.arguments(dtype))[2]["radii"] for dtype in (torch.float32, torch.float64))
    both = (a > 0).all(-1) & (b > 0).all(-1)
    assert ((a - b).abs()[both] <= 1).all()
    assert ((a > 0).all(-1) != (b > 0).all(-1)).sum() <= 1


@settings(max_examples=40, deadline=None)
@given(drawn(), st.integers(0, 2**31))
def test_the_order_of_gaussians_does_not_matter_unless_depths_tie(scene, seed):
    depths = rasterize(**scene.arguments(torch.float64))[2]["depths"][0]
    assume(len(torch.unique(depths.float())) == len(depths))
    turn = torch.randperm(len(depths), generator=torch.Generator().manual_seed(seed))
    arguments = scene.arguments()
    with torch.no_grad():
        image = rasterize(**arguments)[0]
        for name in ("means", "quats", "scales", "opacities", "sh"):
            arguments[name] = arguments[name][turn].contiguous()
        assert torch.equal(rasterize(**arguments)[0], image)


def test_at_equal_depth_the_lower_index_is_in_front():
    scene = make(3, ["equal_depth"] * 2, 20, 20, 1, False)
    for name, value in scene.gaussians.items():
        value[1] = value[0]
        if name == "sh":
            value[0], value[1] = 1.0, -1.0
    scene.gaussians["opacities"][:] = 0.9
    image = rasterize(**scene.arguments())[0].detach()
    scene.gaussians["sh"] = scene.gaussians["sh"].flip(0)
    swapped = rasterize(**scene.arguments())[0].detach()
    y, x = np.unravel_index(int((image - swapped).abs().sum(-1).argmax()), (20, 20))
    assert image[y, x].mean() > swapped[y, x].mean() + 0.3


def test_no_gaussians_give_the_background():
    scene = make(0, [], 17, 9, 16, True)
    image, alpha, info, gradients = run(scene, torch.float32, torch.ones(9, 17, 3), torch.ones(9, 17))
    assert torch.equal(image, scene.background.expand(9, 17, 3)) and not alpha.any() and not info["depth"].any()
    assert torch.allclose(gradients["background"], torch.full((3,), 9.0 * 17))
    assert gradients["means"].shape == (0, 3)


def test_an_opaque_wall_is_capped_and_hides_what_is_behind():
    scene = make(5, ["huge", "ordinary"], 24, 24, 1, False)
    g = scene.gaussians
    g["means"] = torch.tensor([[0.0, 0, 1], [0, 0, 2]])
    g["scales"] = torch.tensor([[50.0, 50, 0.01], [0.1, 0.1, 0.1]])
    g["opacities"] = torch.ones(2)
    image, alpha, _ = rasterize(**scene.arguments())
    colour = (0.28209479177387814 * g["sh"][:, 0] + 0.5).clamp_min(0)
    behind = torch.maximum(colour[1], scene.background)
    assert (alpha >= 0.999 - 1e-6).all()
    through = image.detach() - 0.999 * colour[0]
    assert (through > -1e-5).all() and (through < 0.001 * behind + 1e-5).all()


def test_not_a_number_stays_where_it_is():
    """A Gaussian gone wrong is not drawn; the picture and the others' gradients stay finite."""
    scene = make(7, ["ordinary"] * 6, 24, 24, 4, True)
    scene.gaussians["means"][2, 0] = float("nan")
    scene.gaussians["scales"][3, 1] = float("inf")
    scene.gaussians["opacities"][4] = float("nan")
    image, _, _, gradients = run(scene, torch.float32, torch.ones(24, 24, 3), torch.zeros(24, 24))
    assert torch.isfinite(image).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients.values())


def test_the_same_bits_every_time_and_for_any_number_of_threads():
    import numba

    scene = make(11, ["ordinary"] * 200 + ["huge"] * 3, 50, 70, 16, True)
    v = torch.rand(70, 50, 3, generator=torch.Generator().manual_seed(0))
    results = []
    before = numba.get_num_threads()
    try:
        for threads in {1, before}:
            numba.set_num_threads(threads)
            image, _, _, gradients = run(scene, torch.float32, v, v[..., 0])
            results.append([image, *gradients.values()])
    finally:
        numba.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_wrong_shapes_are_named():
    arguments = make(1, ["ordinary"] * 3, 8, 8, 4, False).arguments()
    with pytest.raises(ValueError, match="opacities"):
        rasterize(**arguments | {"opacities": torch.ones(2)})
    with pytest.raises(ValueError, match="sh"):
        rasterize(**arguments | {"sh": torch.ones(3, 5, 3)})


@settings(max_examples=25)
@given(drawn(), st.integers(0, 1000))
def test_depth_and_its_gradients_agree_with_the_equations(scene, seed):
    """With the colours' gradients in the same pass."""
    generator = torch.Generator().manual_seed(seed)
    v_image = torch.randn(scene.height, scene.width, 3, generator=generator, dtype=torch.float64)
    v_depth = torch.randn(scene.height, scene.width, generator=generator, dtype=torch.float64)
    calm, colours = steady(scene)
    v_image, v_depth = v_image * calm[..., None] * colours, v_depth * calm
    results = []
    for dtype in (torch.float32, torch.float64):
        arguments = scene.arguments(dtype)
        image, _, info = rasterize(**arguments, with_depth=True)
        ((image * v_image.to(dtype)).sum() + (info["depth"] * v_depth.to(dtype)).sum()).backward()
        results.append((info["depth"].detach(), {name: arguments[name].grad for name in LEAVES}))
    (depth, found), (expected_depth, expected) = results
    close(depth[calm], expected_depth[calm], "depth")
    for name in LEAVES:
        close(found[name], expected[name], name)


def test_a_picture_is_the_same_with_its_depth():
    scene = make(5, ["ordinary"] * 20, 40, 30, 16, True)
    plain, alpha, info = rasterize(**scene.arguments(torch.float32))
    other, other_alpha, other_info = rasterize(**scene.arguments(torch.float32), with_depth=True)
    assert torch.equal(plain, other) and torch.equal(alpha, other_alpha)
    assert torch.equal(info["depth"], other_info["depth"].detach()) and not info["depth"].requires_grad


def test_variants_of_a_helper_have_names_of_their_own():
    """Kept kernels carry helpers by name: of one name, the colour's would run in place of the depth's (or the reverse)
    where the two kernels were compiled in different processes."""
    from fujinsplat.splat.raster import blend, blend_backward

    for module in (blend, blend_backward):
        names = {getattr(module, tile).py_func.__qualname__ for tile in ("_colour_tile", "_depth_tile")}
        assert len(names) == 2, module.__name__
