"""Smoke obeys the physics, and its statistics are those of the table."""

import numpy as np
import pytest
from PIL import Image

from fujinsplat.demo.poses import facing
from fujinsplat.demo.render import Camera
from fujinsplat.demo.smoke import SPECTRUM, Air, through
from fujinsplat.demo.weather import SCENES, WEATHER, contrasts, measure, weather

LOW, STEP = np.array([-5.0, -5.0, -5.0]), np.full(3, 2.5)
COLOUR = np.array([0.05, 0.1, 0.06])


def uniform(density: float) -> Air:
    return Air(LOW, STEP, np.full((5, 5, 5), density), np.ones((5, 5, 5)), COLOUR)


@pytest.fixture
def view():
    rng = np.random.default_rng(3)
    camera = Camera(np.zeros(3), facing(np.zeros(3), np.array([0.0, 1.0, 0.0])), 40.0, 48, 32)
    return camera, rng.uniform(0, 0.3, (32, 48, 3)).astype(np.float32), rng.uniform(0.5, 4, (32, 48)).astype(np.float32)


def test_clear_air_changes_nothing(view):
    camera, clean, depth = view
    assert np.array_equal(through(uniform(0.0), camera, clean, depth, 1, 0), clean)


def test_even_smoke_is_the_law_of_koschmieder(view):
    """In even smoke of density s: light J over a distance d arrives as J exp(-s d) + A (1 - exp(-s d))."""
    camera, clean, depth = view
    y, x = np.mgrid[:32, :48] + 0.5
    distance = depth * np.sqrt(1 + ((x - 24) / 40) ** 2 + ((y - 16) / 40) ** 2)
    t = np.exp(-0.7 * SPECTRUM * distance[..., None])
    assert through(uniform(0.7), camera, clean, depth, 1, 0) == pytest.approx(t * clean + (1 - t) * COLOUR, abs=2e-6)


def test_smoke_before_and_behind_differ_only_for_what_lies_behind(view):
    camera, clean, _ = view
    wall = Air(LOW, STEP, np.zeros((5, 5, 5)), np.ones((5, 5, 5)), COLOUR)
    wall.density[:, 4] = 2.0  # only beyond y = 2.5
    near, far = np.full((32, 48), 2.0, np.float32), np.full((32, 48), 4.5, np.float32)
    assert through(wall, camera, clean, near, 1, 0) == pytest.approx(clean, abs=1e-6)
    assert np.abs(through(wall, camera, clean, far, 1, 0) - clean).max() > 0.05


def test_measure_finds_a_veil_that_was_put_on():
    clean = np.random.default_rng(0).gamma(2.0, 0.03, (80, 60, 3))
    t, pivot = measure(0.4 * clean + 0.6 * COLOUR, clean)
    assert t == pytest.approx(0.4) and pivot == pytest.approx(COLOUR)


def test_table_covers_what_was_measured():
    rng = np.random.default_rng(0)
    rows = [contrasts(WEATHER[name], 24, rng) for name in SCENES]
    for name, t in zip(SCENES, rows, strict=True):
        row = WEATHER[name]
        assert t.min() == pytest.approx(row.low) and t.max() == pytest.approx(row.high)
        assert np.median(t) == pytest.approx(row.median, abs=0.04)
    assert len(SCENES) == 8
    assert np.min(rows) == pytest.approx(0.15) and np.max(rows) == pytest.approx(0.9)
    assert np.median(rows) == pytest.approx(0.36, abs=0.02)


def test_other_names_stay_within_the_table():
    for name in ("Bora", "Mistral", "Zonda", "x"):
        row = weather(name, 20260)
        assert row == weather(name, 20260) != weather(name, 1)
        assert 0.15 <= row.low < row.median < row.high <= 0.9


@pytest.fixture(scope="module")
def pairs(scene, decode):
    stems = sorted(p.stem for p in (scene / "train").glob("*.dng"))
    return [(decode(scene / "train" / f"{s}.dng"), decode(scene / "val" / f"{s}.dng")) for s in stems]


def test_files_carry_the_contrast_and_airlight_of_their_scene(pairs):
    """Measured from the DNG files through LibRaw, as the population is."""
    row = WEATHER["Minami"]
    fits = [measure(hazy, clean) for hazy, clean in pairs]
    t = np.array([fit[0] for fit in fits])
    assert t.min() == pytest.approx(row.low, abs=0.02) and t.max() == pytest.approx(row.high, abs=0.02)
    pivot = np.median([fit[1] for fit in fits], 0)
    assert pivot[0] / pivot[1] == pytest.approx(row.airlight[0], abs=0.04)
    assert pivot[2] / pivot[1] == pytest.approx(row.airlight[1], abs=0.04)
    level = pivot.mean() / np.median([np.median(clean @ (0.2126, 0.7152, 0.0722)) for _, clean in pairs])
    assert level == pytest.approx(row.ratio, rel=0.35)


def test_twins_show_the_same_room(scene, pairs):
    """A per-pixel affine fit of the clean twin explains the smoky view: nothing moved between the two."""
    for hazy, clean in pairs:
        assert np.corrcoef(hazy[..., 1].ravel(), clean[..., 1].ravel())[0, 1] > 0.75


def test_one_action_for_all_views_loses_a_decibel_in_a_wide_scene(scene):
    """Per-view correction has something to do: actions fitted per view beat the best shared one."""
    import torch

    from fujinsplat.core.color import decode as linearise
    from fujinsplat.flow import apply

    stems = sorted(p.stem for p in (scene / "train").glob("*.JPG"))
    hazy, clean = (
        torch.from_numpy(np.stack([np.asarray(Image.open(scene / part / f"{s}.JPG")) for s in stems]) / np.float32(255))
        for part in ("train", "val")
    )
    hazy, clean = hazy.flatten(1, 2), clean.flatten(1, 2)
    some = torch.randperm(hazy.shape[1], generator=torch.Generator().manual_seed(0))[:1000]
    h, j = hazy[:, some], clean[:, some]
    scores = []
    for rows in (len(stems), 1):
        action = torch.zeros(rows, 573, requires_grad=True)
        adam = torch.optim.Adam([action], 3e-2)
        for _ in range(120):
            out = apply(h, action.expand(len(stems), -1))
            loss = (linearise(out) - linearise(j)).abs().mean() + 0.25 * (out - j).abs().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            out = apply(hazy, action.expand(len(stems), -1).contiguous()).clamp(0, 1)
        scores.append(float((-10 * torch.log10((out - clean).square().mean((1, 2)))).mean()))
    before = float((-10 * torch.log10((hazy - clean).square().mean((1, 2)))).mean())
    assert scores[0] > before + 4, "a colour action must help a lot"
    assert scores[0] > scores[1] + 1
