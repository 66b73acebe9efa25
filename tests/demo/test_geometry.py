"""Rays meet what they should: against closed forms, against brute force, and from two sides."""

import numpy as np
import pytest

from fujinsplat.demo import geometry as g
from fujinsplat.demo.builder import Palette, Place, Room
from fujinsplat.demo.render import PAD, focus, look, seen
from fujinsplat.demo.rooms import living_room
from fujinsplat.demo.weather import stream


@pytest.fixture(scope="module")
def room():
    return living_room(stream(20260, "Kochi", "room"))


def rays(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    origins = rng.uniform((-2, -3, 0.2), (2, -1.5, 2.2), (count, 3))
    directions = rng.normal((0, 1.5, -0.2), 1.0, (count, 3))
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


def one(build) -> np.ndarray:
    rng = np.random.default_rng(0)
    made = Room(rng, Palette(rng))
    build(made, made.material("paint", (0.5, 0.5, 0.5)))
    return made.arrays()[0][0]


def test_known_distances():
    box = one(lambda r, m: r.box(Place(0, 3, 0), (1, 1, 1), m))
    ball = one(lambda r, m: r.blob(Place(0, 3, 0), (1, 0.5, 1), m))
    post = one(lambda r, m: r.bar(Place(0, 3, 0), 1.0, 2.0, m))
    cone = one(lambda r, m: r.bar(Place(0, 3, 0), 1.0, 2.0, m, taper=0.5))
    for prim, distance in ((box, 2.0), (ball, 2.5), (post, 2.0), (cone, 2.25)):
        assert g.meet(prim, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0) == pytest.approx(distance)
        assert g.meet(prim, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0) == g.FAR
    turned = one(lambda r, m: r.box(Place(0, 3, 0, np.pi / 4), (1, 1, 1), m))
    assert g.meet(turned, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0) == pytest.approx(3 - np.sqrt(2))
    assert g.meet(cone, 0.0, 3.0, 5.0, 0.0, 0.0, -1.0) == pytest.approx(4.0), "the top cap"


def test_the_hierarchy_finds_what_brute_force_finds(room):
    world, _ = room
    origins, directions = rays(300)
    for o, d in zip(origins, directions, strict=True):
        hit, t = g.trace(world.prims, world.boxes, world.links, world.order, *o, *d, g.FAR, False)
        every = np.array([g.meet(p, *o, *d) for p in world.prims[1:]])
        assert t == pytest.approx(every.min(), abs=1e-9)
        if hit >= 0:
            assert every[hit - 1] == every.min()
        assert (g.trace(world.prims, world.boxes, world.links, world.order, *o, *d, g.FAR, True)[0] >= 0) == (hit >= 0)


def test_normals_point_against_the_ray_and_have_unit_length(room):
    world, _ = room
    origins, directions = rays(300, 1)
    met = 0
    for o, d in zip(origins, directions, strict=True):
        hit, t = g.trace(world.prims, world.boxes, world.links, world.order, *o, *d, g.FAR, False)
        if hit < 0 or any(g.meet(p, *o, *d) < g.FAR and g.meet(p, *o, *-d) < g.FAR for p in world.prims[1:]):
            continue  # met nothing, or started inside something
        normal = np.array(g.surface(world.prims[hit], *(o + t * d))[:3])
        assert np.linalg.norm(normal) == pytest.approx(1) and normal @ d < 1e-6
        met += 1
    assert met > 50


def test_depth_of_two_views_agrees(room):
    """A surface point of one view, seen from another, has the depth that the other view's picture says."""
    from fujinsplat.demo.poses import sweep

    world, target = room
    first, second = sweep(target, 6, 120, 80, np.random.default_rng(0))[1:3]
    depth = [look(world, c)[1][PAD:-PAD:2, PAD:-PAD:2] for c in (first, second)]
    y, x = np.mgrid[:80:3, :120:3]
    # z-depth of the sample a quarter pixel up and left of the pixel's centre
    plane = np.stack([x + 0.25 - 60, y + 0.25 - 40, np.full(x.shape, first.focal)], -1) / first.focal
    points = (plane * depth[0][y, x][..., None]).reshape(-1, 3) @ first.rotation.T + first.position
    local = (points - second.position) @ second.rotation
    uv = local[:, :2] / local[:, 2:] * second.focal + (60, 40)
    inside = (uv > 1).all(1) & (uv < (119, 79)).all(1)
    open_ = inside.copy()
    open_[inside] = seen(*world.arrays[:4], second.position, points[inside])
    at = uv[open_].astype(int)
    relative = np.abs(local[open_, 2] / depth[1][at[:, 1], at[:, 0]] - 1)
    assert open_.sum() > 300 and np.median(relative) < 0.01 and np.mean(relative > 0.05) < 0.12


def test_rooms_are_deep_and_lit(room):
    from fujinsplat.demo.poses import sweep

    world, target = room
    radiance, depth = look(world, sweep(target, 3, 120, 80, np.random.default_rng(0))[1])
    near, far = np.percentile(depth, (2, 98))
    assert far > 2 * near and near > 0.3
    assert np.isfinite(radiance).all() and (radiance >= 0).all()
    dark, bright = np.percentile(radiance.mean(-1), (5, 95))
    assert bright > 6 * dark > 0


def test_the_lens_keeps_light_and_place():
    flat = focus(np.full((24, 34, 3), 0.3, np.float32))
    assert flat.shape == (20, 30, 3) and flat == pytest.approx(np.float32(0.3))
    ramp = np.broadcast_to(np.arange(34, dtype=np.float32)[None, :, None], (24, 34, 1))
    assert focus(ramp)[5, :, 0] == pytest.approx(np.arange(30) + PAD)
    assert focus(ramp, 2)[5, :, 0] == pytest.approx(2 * np.arange(15) + PAD + 0.5)
