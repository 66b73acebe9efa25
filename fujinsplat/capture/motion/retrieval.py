"""Which pairs of views are worth matching when there are too many for all: neighbours by name, and look-alikes.

Look-alikes are found without a vocabulary file: a few dozen words are learned from the capture's own descriptors, and
each view is described by where its features lie between them (VLAD).
"""

from pathlib import Path

import numpy as np

from fujinsplat.core.settings import MotionSettings

WORDS = 32
SAMPLE = 200  # descriptors of each view that the words are learned from


def likely_pairs(database: Path, settings: MotionSettings) -> list[tuple[str, str]]:
    """Names of pairs, each once, in a fixed order."""
    import pycolmap

    rng = np.random.default_rng(settings.seed)
    with pycolmap.Database.open(str(database)) as opened:
        images = sorted(opened.read_all_images(), key=lambda image: image.name.rsplit("/", 1)[-1])
        descriptors = [np.asarray(opened.read_descriptors(i.image_id).data, np.float32) for i in images]
    names = [image.name for image in images]
    close = nearest(describe(descriptors, rng), settings.alike)
    pairs = {(i, j) for i in range(len(names)) for j in range(i + 1, min(i + 1 + settings.neighbours, len(names)))}
    pairs |= {(min(i, j), max(i, j)) for i, others in enumerate(close) for j in others}
    return [(names[i], names[j]) for i, j in sorted(pairs)]


def describe(descriptors: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """One unit vector per view [V, WORDS * D] from its descriptors [n, D]."""
    from scipy.cluster.vq import kmeans2, vq

    drawn = [d[rng.permutation(len(d))[:SAMPLE]] for d in descriptors if len(d)]
    sample = np.concatenate(drawn)
    words, _ = kmeans2(sample, min(WORDS, len(sample)), minit="points", rng=rng)
    out = np.zeros((len(descriptors), words.size), np.float32)
    for row, own in zip(out, descriptors, strict=True):
        if len(own):
            nearest_word, _ = vq(own, words)
            table = row.reshape(words.shape)
            np.add.at(table, nearest_word, own - words[nearest_word])
            table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-6)  # no word drowns the others
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-6)


def nearest(vectors: np.ndarray, count: int) -> list[list[int]]:
    """The `count` most alike other views of each view."""
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -np.inf)
    count = min(count, len(vectors) - 1)
    return [np.argsort(-row, kind="stable")[:count].tolist() for row in alike]
