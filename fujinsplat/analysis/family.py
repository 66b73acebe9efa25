"""The family of expert actions [Sec. 3.3, supp. E]: few directions, few operations, readable from RAW.

Actions are compared as functions, not as coefficients: by the displacement `T_p(q) - q` of the 9^3 probe colours,
`[2187]`.
"""

from dataclasses import dataclass

import numpy as np
import torch

from fujinsplat.compat.optim import AdamW
from fujinsplat.core.settings import AnalysisSettings
from fujinsplat.flow import layout
from fujinsplat.flow.operator import apply

SHOWN = 200  # singular directions whose energy is kept


def displacements(actions: torch.Tensor, K: int, M: int, side: int) -> np.ndarray:
    """`actions [V, P]` to `[V, 3 side^3]` float64."""
    probes = layout.probe_grid(side, dtype=torch.float64).expand(len(actions), -1, -1)
    return (apply(probes, actions.double(), K, M) - probes).flatten(1).numpy()


def energy(vectors: np.ndarray) -> np.ndarray:
    """Cumulative share of energy over singular directions of `vectors [V, n]`; all ones where there is none."""
    values = np.linalg.svd(vectors, compute_uv=False) ** 2
    return np.cumsum(values) / values.sum() if values.sum() > 0 else np.ones(len(values))


@dataclass
class Vocabulary:
    """Prototypes at several strengths, and the identity last: actions `[entries, P]`, displacements, names."""

    prototypes: list[int]
    actions: torch.Tensor
    vectors: np.ndarray
    names: list[str]


def farthest_points(vectors: np.ndarray, count: int) -> list[int]:
    """Greedy coverage in direction: the seed is nearest to the mean, then always the one least like any chosen.

    Directions are compared by cosine; ties go to the first, so the order of the rows matters only between equals.
    """
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    chosen = [int(np.argmin(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1)))]
    likeness = units @ units[chosen[0]]
    while len(chosen) < min(count, len(vectors)):
        chosen.append(int(np.argmin(likeness)))
        likeness = np.maximum(likeness, units @ units[chosen[-1]])
    return chosen


def vocabulary(actions: torch.Tensor, names: list[str], K: int, M: int, s: AnalysisSettings) -> Vocabulary:
    """`s.prototypes` actions at `s.strengths` (a strength scales all coefficients), plus the identity."""
    chosen = farthest_points(displacements(actions, K, M, s.probes), s.prototypes)
    entries = [strength * actions[i] for i in chosen for strength in s.strengths]
    entries.append(torch.zeros_like(actions[0]))
    labels = [f"{names[i]} x {strength:g}" for i in chosen for strength in s.strengths]
    stacked = torch.stack(entries)
    return Vocabulary(chosen, stacked, displacements(stacked, K, M, s.probes), [*labels, "identity"])


def nearest(vectors: np.ndarray, words: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Index of each action's nearest entry (Euclidean, in displacement), and its cosine (NaN for the identity)."""
    squared = (vectors**2).sum(1)[:, None] - 2 * vectors @ words.vectors.T + (words.vectors**2).sum(1)
    index = squared.argmin(axis=1)
    entries = words.vectors[index]
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(entries, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return index, np.where(norms > 0, (vectors * entries).sum(1) / norms, np.nan)


def classify(
    summaries: torch.Tensor, labels: np.ndarray, validate: np.ndarray, classes: int, s: AnalysisSettings
) -> np.ndarray:
    """Train the controller's encoder with a 2048-512-256-classes head on the views not validated; predict all `[V]`.

    summaries `[V, 3, 64, 64]`. Eight spatial presentations leave a label as it is, so each batch shows random ones.
    """
    from torch import nn

    from fujinsplat.controller.network import DESCRIPTOR, Encoder

    generator = torch.Generator().manual_seed(s.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(s.seed)
        head = (nn.Linear(DESCRIPTOR, 512), nn.GELU(), nn.Linear(512, 256), nn.GELU(), nn.Linear(256, classes))
        network = nn.Sequential(Encoder(), *head)
    train = torch.from_numpy(np.flatnonzero(~validate))
    targets = torch.from_numpy(labels).long()
    # RAW through smoke is dark and flat; a fixed scale keeps its brightness readable and the gradients alive
    level = summaries[train].mean().clamp_min(1e-6)
    optimizer = AdamW(network.parameters(), lr=3e-4, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(s.classifier_steps, 1))
    for _ in range(s.classifier_steps):
        batch = train[torch.randint(len(train), (16,), generator=generator)]
        turns, flip = (int(x) for x in torch.randint(0, 4, (2,), generator=generator))
        pictures = torch.rot90(summaries[batch] / level, turns, (2, 3))
        loss = nn.functional.cross_entropy(network(pictures.flip(3) if flip % 2 else pictures), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.inference_mode():
        return network(summaries / level).argmax(dim=1).numpy()


def validation_mask(scenes: list[str], stems: list[str]) -> np.ndarray:
    """Every fourth stem of each scene, in sorted order and from the first, validates: `[V]` (RealX3D: 53 of 195)."""
    mask = np.zeros(len(stems), bool)
    for scene in dict.fromkeys(scenes):
        members = sorted((stem, i) for i, (name, stem) in enumerate(zip(scenes, stems, strict=True)) if name == scene)
        mask[[i for _, i in members[0::4]]] = True
    return mask


def study(experts: dict, sources: dict, s: AnalysisSettings):
    """`experts`: scene to Actions; `sources`: scene to source views. Rows, result, the two energy curves, cosines."""
    from fujinsplat.controller.network import summarise

    first = next(iter(experts.values()))
    K, M = first.K, first.M
    keys = sorted((scene, stem) for scene, actions in experts.items() for stem in actions.stems)
    actions = torch.stack([experts[scene].of(stem) for scene, stem in keys])
    vectors = displacements(actions, K, M, s.probes)
    plain, centred = energy(vectors), energy(vectors - vectors.mean(axis=0))
    words = vocabulary(actions, [f"{scene}/{stem}" for scene, stem in keys], K, M, s)
    labels, cosines = nearest(vectors, words)

    summaries = torch.stack([summarise(torch.from_numpy(sources[scene].raw(stem))) for scene, stem in keys])
    validate = validation_mask([scene for scene, _ in keys], [stem for _, stem in keys])
    result = {
        "actions": len(keys),
        "entries": len(words.names),
        "prototypes": [words.names[i * len(s.strengths)].rsplit(" x ", 1)[0] for i in range(len(words.prototypes))],
        "energy": plain[:SHOWN].tolist(),
        "energy_centred": centred[:SHOWN].tolist(),
        "energy_first": float(plain[0]),
        "energy_first_centred": float(centred[0]),
        "nearest_cosine_median": float(np.nanmedian(cosines)) if np.isfinite(cosines).any() else None,
        "nearest_is_identity": int((labels == len(words.names) - 1).sum()),
        "training_views": int((~validate).sum()),
        "validation_views": int(validate.sum()),
        "accuracy": None,
        "majority": None,
    }
    if validate.any() and not validate.all():
        predicted = classify(summaries, labels, validate, len(words.names), s)
        held = labels[validate]
        result["accuracy"] = float((predicted[validate] == held).mean())
        result["majority"] = float(np.bincount(held).max() / len(held))
    rows = [
        {"entry": name, "actions": int((labels == i).sum()), "validation": int((labels[validate] == i).sum())}
        for i, name in enumerate(words.names)
    ]
    return rows, result, (plain, centred, cosines)


def table(rows: list[dict], result: dict, published: dict) -> list[dict]:
    """The measurements beside the paper's, then the vocabulary with how many actions each entry is nearest to."""
    from fujinsplat.analysis.published_studies import WHERE

    head = [{"quantity": key, "ours": result[key], WHERE: published[key]} for key in published]
    return [*head, *({"quantity": f"entry {row['entry']}", "ours": row["actions"]} for row in rows)]


def sentence(result: dict, published: dict) -> str:
    accuracy = (
        ""
        if result["accuracy"] is None
        else (
            f", and a classifier reads the entry from RAW with {result['accuracy']:.1%} accuracy"
            f" on {result['validation_views']} views"
            f" (largest class {result['majority']:.1%})"
        )
    )
    return (
        f"One direction carries {result['energy_first']:.1%} of the {result['actions']} expert actions' energy on the"
        f" probe grid and {result['energy_first_centred']:.1%} without their mean; the nearest of {result['entries']}"
        f" vocabulary entries has median cosine {result['nearest_cosine_median']:.3f}{accuracy} (published on RealX3D:"
        f" {published['energy_first']:.0%}, {published['energy_first_centred']:.0%},"
        f" {published['nearest_cosine_median']}, {published['accuracy']:.1%} and {published['majority']:.1%})."
    )


def draw(curves: tuple[np.ndarray, np.ndarray, np.ndarray], result: dict):
    """(a) cumulative energy with and without the mean; (b) how well the vocabulary covers the actions."""
    from fujinsplat.core.style import BLUE, GREY, VERMILION, figure, panel

    plain, centred, cosines = curves
    fig, (left, right) = figure(1, 2, height=2.6)
    count = np.arange(1, len(plain) + 1)
    left.semilogx(count, plain, "-o", color=BLUE, ms=2.5, label="all actions")
    left.semilogx(count, centred, "--s", color=VERMILION, ms=2.5, label="shared mean removed")
    for curve, color, below in ((plain, BLUE, False), (centred, VERMILION, True)):
        place = (2, -10) if below else (-6, 7)
        left.annotate(f"{curve[0]:.0%}", (1, curve[0]), place, textcoords="offset points", color=color, fontsize=7)
    left.xaxis.set_major_formatter("{x:g}")
    left.set(xlabel="singular directions", ylabel="cumulative energy", ylim=(0, 1.03))
    left.legend(loc="lower right")
    panel(left, "a", "energy of the probe displacements")
    finite = np.sort(cosines[np.isfinite(cosines)])
    right.plot(finite, np.arange(1, len(finite) + 1) / max(len(finite), 1), color=BLUE, drawstyle="steps-post")
    if len(finite):
        right.axvline(np.median(finite), color=GREY, ls="--", lw=0.9)
    right.set(xlabel=f"cosine to the nearest of {result['entries']} entries", ylabel="share of actions", ylim=(0, 1.03))
    median = f", median {np.median(finite):.3f}" if len(finite) else ""
    panel(right, "b", f"coverage by the vocabulary{median}")
    return fig
