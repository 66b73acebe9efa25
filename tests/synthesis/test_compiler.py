"""Labels: the published rule by hand, and what the fitted ones promise."""

import math
from itertools import pairwise

import numpy as np
import pytest
import skimage.data
import torch

from fujinsplat.core.color import decode, encode
from fujinsplat.flow import apply, invert
from fujinsplat.flow.layout import split
from fujinsplat.synthesis import compile_label, compile_labels
from fujinsplat.synthesis.basis import SETTINGS

PIVOTS = (
    (0.07, 0.08, 0.09),
    (0.3, 0.33, 0.4),
    (0.5, 0.45, 0.4),
    (0.12, 0.08, 0.06),
    (0.62, 0.6, 0.66),
    (0.04, 0.03, 0.03),
)
CONTRASTS = (0.15, 0.25, 0.36, 0.6, 0.9)


def pictures() -> dict[str, np.ndarray]:
    """Encoded pixels `[n, 3]` of photographs no label was fitted to."""
    return {
        name: getattr(skimage.data, name)()[::6, ::6, :3].reshape(-1, 3) / 255.0
        for name in ("astronaut", "coffee", "cat", "rocket")
    }


def psnr(a, b) -> float:
    return float(-10 * np.log10(np.mean((np.asarray(a) - np.asarray(b)) ** 2)))


def undone(clean: np.ndarray, pivot, t: float, action: torch.Tensor, K: int = 7, M: int = 16) -> float:
    """PSNR of a uniformly veiled picture after the action."""
    veiled = encode(t * decode(clean) + (1 - t) * np.asarray(pivot))
    return psnr(apply(torch.from_numpy(veiled), action, K, M).clamp(0, 1), clean)


@pytest.mark.parametrize(("pivot", "t"), [((0.10, 0.08, 0.07), 0.4), ((0.6, 0.3, 0.2), 0.15), ((0.3, 0.3, 0.4), 0.95)])
def test_published_rule_by_hand(pivot, t):
    """One draw computed with scalar formulas only."""
    M, K, width = 16, 7, 0.02

    def target(x: float, c: float) -> float:
        soft = lambda v: 0.5 * (v + math.sqrt(v * v + width * width))  # noqa: E731
        lift = lambda linear: float(encode(min(max(1 - soft(1 - soft((linear - (1 - t) * c) / t)), 0), 1)))  # noqa: E731
        return min(max((lift(float(decode(x))) - lift(0.0)) / (lift(1.0) - lift(0.0)), 0), 1)

    mean = sum(pivot) / 3
    shared = [target(j / M, mean) for j in range(M + 1)]
    increments = [max(b - a, 1e-6) for a, b in pairwise(shared)]
    logs = [math.log(increment / sum(increments)) for increment in increments]
    curve = [math.atanh(min(max((v - sum(logs) / M) / 5, -0.999999), 0.999999)) for v in logs]
    slopes = [
        (shared[min(j + 1, M)] - shared[max(j - 1, 0)]) / ((min(j + 1, M) - max(j - 1, 0)) / M) for j in range(M + 1)
    ]
    rising = [j for j in range(M + 1) if slopes[j] > 1e-3]
    offsets = [sum((target(j / M, c) - shared[j]) / slopes[j] for j in rising) / len(rising) for c in pivot]
    offsets = [min(max(o, -0.9 * 0.155), 0.9 * 0.155) for o in offsets]
    weights = [0.0, 0.0, 0.0]
    for k in range(1, K + 1):
        weights[k % 3] += 1
        weights[(k + 1) % 3] += 0.5

    knot = lambda offset: math.atanh(min(max(offset / 0.155, -0.999), 0.999))  # noqa: E731

    action, floor = compile_label(pivot, t)
    curves, couplings = split(action, K, M)
    assert curves[:K].abs().max() == 0
    for channel in range(3):
        np.testing.assert_allclose(curves[K, channel].numpy(), curve, rtol=0, atol=1e-9)
    for k in range(1, K + 1):
        second, third = k % 3, (k + 1) % 3
        np.testing.assert_allclose(
            couplings[k - 1, 0].numpy(), knot(offsets[second] / weights[second]), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(
            couplings[k - 1, 1].numpy(), knot(offsets[third] / weights[third]), rtol=0, atol=1e-9
        )
        assert couplings[k - 1, 2].abs().max() == 0
    centred = [math.tanh(c) - sum(map(math.tanh, curve)) / M for c in curve]
    logits = [5 * g / max(1, *map(abs, centred)) for g in centred]
    nodes = np.cumsum([math.exp(z) for z in logits]) / sum(math.exp(z) for z in logits)
    assert floor == pytest.approx(nodes[np.argmax(nodes > 1e-3)], abs=1e-9)


@pytest.fixture(scope="module")
def labels() -> dict[str, dict]:
    """(action, floor) of every pivot and contrast, by method."""
    draws = [(pivot, t) for t in (*CONTRASTS, 0.12, 0.97) for pivot in PIVOTS]
    made = {}
    for method in ("published", "fitted"):
        actions, floors = compile_labels([pivot for pivot, _ in draws], [t for _, t in draws], method)
        made[method] = {draw: (actions[row], float(floors[row])) for row, draw in enumerate(draws)}
    return made


def test_fitted_labels_undo_uniform_haze(labels):
    """38 dB or better on photographs they were not fitted to, at every contrast and pivot."""
    worst = {
        (name, pivot, t): undone(clean, pivot, t, labels["fitted"][pivot, t][0])
        for name, clean in pictures().items()
        for pivot in PIVOTS
        for t in CONTRASTS
    }
    assert min(worst.values()) >= 38, min(worst, key=worst.get)


def test_fitted_labels_are_better_than_published_ones(labels):
    clean = pictures()["coffee"]
    for draw in ((pivot, t) for pivot in PIVOTS[:3] for t in CONTRASTS):
        fitted, published = (undone(clean, *draw, labels[method][draw][0]) for method in ("fitted", "published"))
        assert fitted > published + 3, draw


@pytest.mark.parametrize("method", ["published", "fitted"])
def test_labels_are_deterministic_and_do_not_depend_on_their_batch(method):
    random = np.random.default_rng(0)
    pivots, contrasts = (
        random.uniform(0.05, 0.5, (5, 1)) * random.uniform(0.9, 1.1, (5, 3)),
        random.uniform(0.15, 0.95, 5),
    )
    actions, floors = compile_labels(pivots, contrasts, method)
    again, _ = compile_labels(pivots, contrasts, method)
    assert torch.equal(actions, again)
    for row in range(5):
        single, floor = compile_label(pivots[row], contrasts[row], method)
        torch.testing.assert_close(single, actions[row], rtol=0, atol=1e-9)
        assert floor == pytest.approx(float(floors[row]), abs=1e-9)


def test_fitted_labels_are_smooth_in_the_draw():
    """Along a line of draws no step is out of proportion: the path is at most twice as long as its chord in pieces."""
    steps = 24
    for start, end in (((0.1, 0.2), (0.1, 0.9)), ((0.05, 0.35), (0.5, 0.35)), ((0.4, 0.25), (0.15, 0.8))):
        share = np.linspace(0, 1, steps + 1)
        level, t = start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
        actions = compile_labels(level[:, None] * np.array([0.95, 1.0, 1.06]), t, "fitted")[0]
        moves = (actions[1:] - actions[:-1]).norm(dim=1)
        chords = (actions[4:] - actions[:-4]).norm(dim=1)
        assert moves.max() < 4 * moves.median()
        assert moves.sum() < 2 * chords[::4].sum()


def test_no_veil_no_action():
    action, floor = compile_label((0.3, 0.3, 0.35), 1.0, "fitted")
    assert action.abs().max() < 1e-12
    assert floor < 1e-12


@pytest.mark.parametrize("method", ["published", "fitted"])
def test_round_trip_at_100_db_over_the_whole_range(labels, method):
    """Clamped colours return from inversion and application to 100 dB, in float64, for every draw."""
    clean = torch.from_numpy(np.concatenate(list(pictures().values()))[::20])
    actions = torch.stack([action for action, _ in labels[method].values()])
    floors = torch.tensor([floor for _, floor in labels[method].values()])
    clamped = torch.maximum(clean[None], floors[:, None, None]).clamp_max(1)
    for row, replayed in enumerate(apply(invert(clamped, actions), actions)):
        assert psnr(replayed, clamped[row]) >= 100, list(labels[method])[row]


@pytest.mark.parametrize(("K", "M"), [*SETTINGS, (3, 12)])
def test_every_capacity_setting_compiles(K, M):
    """Fitted labels of other capacities invert the median veil well, too, with a stored basis or without."""
    action, floor = compile_label((0.3, 0.33, 0.36), 0.45, "fitted", K=K, M=M)
    assert action.shape == ((K + 1) * 3 * M + K * 27,)
    assert 0 <= floor < 0.1
    clean = pictures()["coffee"]
    assert undone(clean, (0.3, 0.33, 0.36), 0.45, action, K, M) > (36 if M >= 16 else 30)


def test_impossible_draws_are_refused():
    with pytest.raises(ValueError, match="contrast"):
        compile_label((0.1, 0.1, 0.1), 0.0)
    with pytest.raises(ValueError, match="pivot"):
        compile_label((0.1, -0.1, 0.1), 0.5)
    with pytest.raises(ValueError, match="neither"):
        compile_label((0.1, 0.1, 0.1), 0.5, "other")
