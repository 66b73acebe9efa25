"""Our conventions against gsplat's own torch helpers, and both engines side by side where there is a GPU."""

import inspect

import pytest
import torch
from gsplat import rasterization
from gsplat.cuda._torch_impl import _fully_fused_projection, _quat_scale_to_covar_preci, _spherical_harmonics
from scenes import make

from fujinsplat.splat import rasterize
from fujinsplat.splat.raster import gsplat_engine, reference
from fujinsplat.splat.raster.conventions import EPS2D, FAR, NEAR


@pytest.fixture(params=range(4))
def scene(request):
    kinds = ["ordinary", "needle", "border", "off_screen", "behind", "opaque"] * 5
    return make(request.param, kinds, 61, 47, 16, True)


def gsplat_projection(scene):
    g = scene.gaussians
    covariances, _ = _quat_scale_to_covar_preci(g["quats"].double(), g["scales"].double(), True, False, triu=False)
    return _fully_fused_projection(
        g["means"].double(), covariances, scene.viewmat.double()[None], scene.K.double()[None],
        scene.width, scene.height, eps2d=EPS2D, near_plane=NEAR, far_plane=FAR,
    )  # fmt: skip


def test_projection_is_gsplats(scene):
    radii, means2d, depths, conics, _ = gsplat_projection(scene)
    g = scene.arguments(torch.float64)
    ours2d, covariances, our_depths = reference.project(
        g["means"], g["quats"], g["scales"], g["viewmat"], g["K"], scene.width, scene.height
    )
    seen = (radii[0] > 0).all(-1)
    assert seen.sum() > 10
    assert torch.allclose(ours2d[seen], means2d[0][seen], atol=1e-9)
    assert torch.allclose(our_depths[seen], depths[0][seen], atol=1e-12)
    inverse = torch.linalg.inv(covariances[seen])
    ours = torch.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], -1)
    assert torch.allclose(ours, conics[0][seen], rtol=1e-6, atol=1e-9)


def test_what_the_cpu_engine_sees_gsplat_sees(scene):
    """Its torch helper bounds a splat at 3.33 deviations; ours (and its CUDA kernel) where alpha falls below 1/255."""
    radii = gsplat_projection(scene)[0][0]
    ours = rasterize(**scene.arguments())[2]["radii"][0]
    assert ((ours > 0).all(-1) <= (radii > 0).all(-1)).all()
    assert (ours <= radii).all()


@pytest.mark.parametrize("degree", range(4))
def test_harmonics_are_gsplats(degree):
    g = torch.Generator().manual_seed(degree)
    directions = torch.nn.functional.normalize(torch.randn(200, 3, generator=g, dtype=torch.float64), dim=-1)
    sh = torch.randn(200, (degree + 1) ** 2, 3, generator=g, dtype=torch.float64)
    ours = torch.einsum("nk,nkc->nc", reference.harmonics(directions, sh.shape[1]), sh)
    assert torch.allclose(ours, _spherical_harmonics(degree, directions, sh), atol=1e-12)


def test_every_argument_we_pass_is_documented():
    scene = make(0, ["ordinary"] * 3, 16, 12, 9, False)
    passed = gsplat_engine.arguments(**{k: v for k, v in scene.arguments().items() if k != "background"})
    signature = inspect.signature(rasterization)
    signature.bind(**passed)
    documentation = inspect.getdoc(rasterization)
    for name in passed:
        assert f"    {name}:" in documentation, name
    assert passed["colors"].shape == (3, 9, 3) and passed["sh_degree"] == 2
    assert passed["viewmats"].shape == (1, 4, 4) and passed["Ks"].shape == (1, 3, 3)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_both_engines_draw_the_same(scene):
    results = []
    for device in ("cpu", "cuda"):
        arguments = {k: v.detach().to(device) if torch.is_tensor(v) else v for k, v in scene.arguments().items()}
        leaves = {
            k: arguments[k].requires_grad_() for k in ("means", "quats", "scales", "opacities", "sh", "background")
        }
        image, alpha, info = rasterize(**arguments | leaves)
        info["means2d"].retain_grad()
        (image.square().mean() + alpha.mean()).backward()
        gradients = [leaf.grad.cpu() for leaf in leaves.values()] + [info["means2d"].grad.cpu()]
        results.append([image.detach().cpu(), alpha.detach().cpu(), info["depth"].cpu(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        close = (ours - theirs).abs() <= 1e-3 * max(1.0, float(theirs.abs().max()))
        assert close.float().mean() > 0.99


def test_our_tiles_lie_within_gsplats(scene):
    """gsplat lists a splat in every tile of its bounding box; ours keep those that its ellipse reaches."""
    from gsplat.cuda._torch_impl import _isect_tiles

    from fujinsplat.splat.raster.conventions import TILE_H, TILE_W, tile_grid
    from fujinsplat.splat.raster.cpu_engine import Splats

    g = scene.gaussians
    splats = Splats(*g.values(), scene.viewmat, scene.K, scene.width, scene.height)
    assert list(g) == ["means", "quats", "scales", "opacities", "sh"]
    radii, means2d, depths, _, _ = gsplat_projection(scene)
    across, down = -(-scene.width // 16), -(-scene.height // 16)
    _, keys, members = _isect_tiles(means2d.float(), radii.int(), depths.float(), 16, across, down)
    theirs = {(int(m), int(k >> 32) % (across * down)) for k, m in zip(keys, members, strict=True)}
    tiles_x, tiles_y = tile_grid(scene.width, scene.height)
    pairs = 0
    for tile in range(tiles_x * tiles_y):
        x, y = tile % tiles_x * TILE_W, tile // tiles_x * TILE_H
        columns = range(x // 16, min(across, (x + TILE_W - 1) // 16 + 1))
        rows = range(y // 16, min(down, (y + TILE_H - 1) // 16 + 1))
        for member in splats.members[splats.starts[tile] : splats.starts[tile + 1]]:
            pairs += 1
            assert any((int(member), row * across + column) in theirs for row in rows for column in columns)
    assert pairs > 20
