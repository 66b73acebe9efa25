"""Expert actions: one action per source pair, from the base output to the clean camera RGB [Sec. 3.3, supp. G].

All views of a scene are fitted as one batch. They do not influence each other: the loss is a sum over views and Adam
works on each coefficient by itself, so a view's action is the same in any company.
"""

import math
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch

from fujinsplat.compat.optim import Adam
from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import progress
from fujinsplat.core.runtime import one_torch_thread
from fujinsplat.core.settings import ActionsSettings
from fujinsplat.flow import layout
from fujinsplat.flow.operator import apply
from fujinsplat.flow.photometric import Target, photometric


@dataclass
class Samples:
    """Matched pixels of a scene's views: base_encoded and clean_encoded `[V, N, 3]` float32 in [0, 1]."""

    stems: list[str]
    base_encoded: torch.Tensor
    clean_encoded: torch.Tensor


def draw_pixels(stem: str, available: int, count: int, seed: int) -> np.ndarray:
    """A view's fixed random pixels, without repetition; from the seed and its own name, so order plays no part."""
    generator = np.random.default_rng([seed, crc32(stem.encode())])
    return np.sort(generator.choice(available, size=count, replace=False))


def sample(base, source, clean, settings: ActionsSettings) -> Samples:
    """Develop every smoky RAW with the frozen base and keep `settings.pixels` of its pixels, and its twin's.

    The base output is the 8-bit picture that the action will meet when views are developed.
    """
    from fujinsplat.isp import develop, materialize

    stems = sorted(source.stems)
    check_twins(source, clean)
    count = min(settings.pixels, *(int(np.prod(source.size(stem))) for stem in stems))
    bases, cleans = [], []
    for stem in progress(stems, "developing", unit="view"):
        base_q8, clean_q8 = materialize(develop(base, source.raw(stem))), clean.rgb(stem)
        check_grids(stem, base_q8, clean_q8)
        chosen = draw_pixels(stem, base_q8.shape[0] * base_q8.shape[1], count, settings.seed)
        bases.append(base_q8.reshape(-1, 3)[chosen])
        cleans.append(clean_q8.reshape(-1, 3)[chosen])
    to_unit = [torch.from_numpy(np.stack(pixels).astype(np.float32) / 255) for pixels in (bases, cleans)]
    return Samples(stems, *to_unit)


def check_twins(source, clean) -> None:
    missing = sorted(set(source.stems) - set(clean.stems))
    if missing:
        raise UserError(
            f"{clean.folder} has no clean twin of {', '.join(missing[:4])}{'…' if len(missing) > 4 else ''};"
            " expert actions need one per source view (a scene without twins can use actions.population instead)"
        )


def check_grids(stem: str, a: np.ndarray, b: np.ndarray) -> None:
    if a.shape != b.shape:
        sizes = f"{a.shape[1]}x{a.shape[0]} and {b.shape[1]}x{b.shape[0]}"
        raise UserError(f"view {stem}: smoky and clean pictures have different sizes, {sizes}; capture the scene again")


def fit(
    base_encoded: torch.Tensor,
    clean_encoded: torch.Tensor,
    settings: ActionsSettings,
    K: int = layout.COUPLINGS,
    M: int = layout.SEGMENTS,
    start: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Adam on all views at once: actions `[V, P]` and the final loss of each view `[V]`.

    base_encoded, clean_encoded `[V, N, 3]` on any device; `start [V, P]` instead of zeros (the observability study).
    """
    views, curves = len(base_encoded), layout.curve_size(K, M)
    device = base_encoded.device
    action = layout.zeros(views, K=K, M=M, device=device) if start is None else start.to(device).clone()
    action.requires_grad_()
    optimizer = Adam([action], lr=settings.lr)
    target = Target(clean_encoded)

    def losses() -> torch.Tensor:
        picture = photometric(apply(base_encoded, action, K, M), target, settings.weight_encoded, settings.weight_range)
        return picture + settings.weight_coupling * action[:, curves:].square().sum(dim=1)

    with one_torch_thread():
        for _ in progress(range(settings.steps), "fitting", unit="step"):
            optimizer.zero_grad()
            losses().sum().backward()
            optimizer.step()
    with torch.no_grad():
        return action.detach(), losses()


def score(actions: torch.Tensor, stems: list[str], base, source, clean, K: int, M: int) -> torch.Tensor:
    """Fit-to-target PSNR of every view `[V]`: the whole corrected picture, 8 bit, against the clean camera RGB."""
    from fujinsplat.core.metrics import psnr
    from fujinsplat.isp import develop, materialize

    scores = []
    for action, stem in zip(actions.cpu(), progress(stems, "scoring", unit="view"), strict=True):
        base_encoded = torch.from_numpy(materialize(develop(base, source.raw(stem))).astype(np.float32) / 255)
        corrected = materialize(apply(base_encoded, action, K, M).numpy())
        scores.append(psnr(corrected, clean.rgb(stem), math.inf))
    return torch.tensor(scores, dtype=torch.float32)


def fit_scene(base, source, clean, settings: ActionsSettings, K: int, M: int, device: str = "cpu", scene: str = ""):
    """The expert actions of one scene, ready to be saved: `Actions` with `loss` and `psnr` per view."""
    from fujinsplat.flow.store import Actions

    samples = sample(base, source, clean, settings)
    actions, losses = fit(samples.base_encoded.to(device), samples.clean_encoded.to(device), settings, K, M)
    if not actions.isfinite().all():
        raise UserError(f"the fit of {scene or 'the scene'} diverged; lower actions.lr (now {settings.lr})")
    psnr = score(actions, samples.stems, base, source, clean, K, M)
    note = {"scene": scene, "pixels": samples.base_encoded.shape[1], "steps": settings.steps}
    return Actions(actions.cpu(), K, M, samples.stems, {"loss": losses.cpu(), "psnr": psnr}, note)
