"""The family study, where the family is known."""

import numpy as np
import pytest
import torch

from fujinsplat import flow
from fujinsplat.analysis import family
from fujinsplat.analysis.family import (
    classify,
    displacements,
    energy,
    farthest_points,
    nearest,
    validation_mask,
    vocabulary,
)
from fujinsplat.core.settings import AnalysisSettings

SETTINGS = AnalysisSettings(probes=5)


def test_one_ray_has_one_direction():
    vectors = np.outer([0.2, 0.5, 1.0, 1.7], np.random.default_rng(0).normal(size=60))
    assert energy(vectors)[0] == pytest.approx(1) and energy(vectors - vectors.mean(0))[0] == pytest.approx(1)


def test_the_mean_is_what_separates_the_two_curves():
    random = np.random.default_rng(0)
    vectors = 10 * random.normal(size=60) + random.normal(size=(40, 60))
    assert energy(vectors)[0] > 0.95 and energy(vectors - vectors.mean(0))[0] < 0.2


def test_the_identity_displaces_nothing():
    assert not displacements(flow.zeros(2), 7, 16, 5).any()


def test_farthest_points_cover_the_clusters():
    """Three directions, many members each: three prototypes take one of each, and start near the mean."""
    random = np.random.default_rng(0)
    centres = np.eye(3)[[0] * 10 + [1] * 10 + [2] * 10]
    vectors = centres + 0.01 * random.normal(size=centres.shape)
    assert {i // 10 for i in farthest_points(vectors, 3)} == {0, 1, 2}
    assert len(farthest_points(vectors[:2], 8)) == 2


def test_the_vocabulary_has_33_entries_and_holds_its_prototypes():
    torch.manual_seed(0)
    actions = 0.2 * torch.randn(20, 573)
    settings = AnalysisSettings()
    words = vocabulary(actions, [f"v{i}" for i in range(20)], 7, 16, settings)
    assert len(words.names) == len(words.actions) == 33 and words.names[-1] == "identity"
    index, cosine = nearest(displacements(actions, 7, 16, 9), words)
    for place, prototype in enumerate(words.prototypes):
        assert index[prototype] == 4 * place + 3 and cosine[prototype] == pytest.approx(1)
    identity, undefined = nearest(displacements(flow.zeros(1), 7, 16, 9), words)
    assert identity[0] == 32 and np.isnan(undefined[0])


def test_every_fourth_sorted_stem_validates_in_each_scene():
    scenes, stems = ["A"] * 9 + ["B"] * 5, [f"{i:02d}" for i in range(9)] + [f"{i:02d}" for i in range(5)]
    mask = validation_mask(scenes, stems)
    assert [s + t for s, t, m in zip(scenes, stems, mask, strict=True) if m] == ["A00", "A04", "A08", "B00", "B04"]
    counts = (25, 23, 22, 25, 26, 25, 26, 23)  # RealX3D
    published = validation_mask(
        [f"scene{k}" for k, count in enumerate(counts) for _ in range(count)],
        [f"{i:04d}" for count in counts for i in range(count)],
    )
    assert (published.sum(), (~published).sum()) == (53, 142)
    order = np.random.default_rng(0).permutation(14)
    assert np.array_equal(validation_mask([scenes[i] for i in order], [stems[i] for i in order]), mask[order])


def test_the_classifier_reads_what_the_picture_shows():
    """Three classes of brightness, seen in new pictures; the same seed gives the same answers."""
    random = np.random.default_rng(0)
    labels = np.arange(48) % 3
    pictures = (0.02 + 0.03 * labels[:, None, None, None]) * random.uniform(0.7, 1.3, (48, 3, 64, 64))
    summaries = torch.from_numpy(pictures.astype(np.float32))
    validate = np.arange(48) >= 36
    settings = AnalysisSettings(classifier_steps=60)
    predicted = classify(summaries, labels, validate, 3, settings)
    assert (predicted[validate] == labels[validate]).mean() > 0.9
    few = AnalysisSettings(classifier_steps=3)
    once, twice = (classify(summaries, labels, validate, 3, few) for _ in range(2))
    assert np.array_equal(once, twice)


def test_view_order_changes_nothing(scene):
    from fujinsplat.capture import SourceViews

    torch.manual_seed(0)
    stems = list(scene.veils)
    action = 0.2 * torch.randn(4, 573)
    forwards = {"Mine": flow.Actions(action, stems=stems)}
    backwards = {"Mine": flow.Actions(action.flip(0), stems=stems[::-1])}
    settings = AnalysisSettings(probes=5, classifier_steps=5, prototypes=2)
    sources = {"Mine": SourceViews(scene.source)}
    assert family.study(forwards, sources, settings)[:2] == family.study(backwards, sources, settings)[:2]
