"""One scene developed for one variant: the pictures Gaussians will be trained on, as (action, base output) per view.

| kind | pictures | actions | opens |
|---|---|---|---|
| controller | base output of the smoky RAW | the controller's | source, base, controller |
| base | base output of the smoky RAW | identity | source, base |
| camera | the camera's own smoky RGB | identity | source |
| expert | base output of the smoky RAW | fitted to the clean twins | source, base, actions |
| clean | the camera's own RGB of the clean twins | identity | clean |
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch

from fujinsplat.develop.plan import OPENS
from fujinsplat.errors import UserError

Kind = Literal["controller", "base", "camera", "expert", "clean"]


def develop_scene(
    kind: Kind,
    out: Path,
    *,
    source: Path | None = None,
    clean: Path | None = None,
    base: Path | None = None,
    controller: Path | None = None,
    actions: Path | None = None,
    input: str = "raw",
    shared: bool = False,
    K: int = 7,
    M: int = 16,
    device: str = "cpu",
) -> None:
    """Write `out` (see store.py). Give what the kind opens, and nothing else: a variant cannot reach further.

    `shared`: every view gets the mean of the controller's predictions, p of the delta-ISP without any Delta.
    """
    given = {"source": source, "clean": clean, "base": base, "controller": controller, "actions": actions}
    for name, path in given.items():
        if (path is not None) != (name in OPENS[kind]):
            verb = "needs" if path is None else "must not be given"
            raise UserError(f"developing as {kind!r} {verb} --{name}; it opens {', '.join(OPENS[kind])}")
    from fujinsplat.capture import SourceViews
    from fujinsplat.develop.store import Developed, action_size

    views = SourceViews(clean if kind == "clean" else source)
    if not views.stems:
        raise UserError(f"{views.folder} holds no views; build the capture stage again")
    if kind in ("camera", "clean"):
        pictures = {stem: views.rgb(stem) for stem in views.stems}
    else:
        pictures, summaries = _base_outputs(views, base, device, input if kind == "controller" else None)
    if kind == "controller":
        predicted = _predicted(controller, summaries, K, M, input, device)
        if shared:
            predicted = np.broadcast_to(predicted.mean(axis=0, dtype=np.float64).astype(np.float32), predicted.shape)
    elif kind == "expert":
        predicted = _fitted(actions, views.stems, K, M)
    else:
        predicted = np.zeros((len(views.stems), action_size(K, M)), np.float32)
    Developed.write(out, predicted, pictures, K, M, kind)


def _base_outputs(
    views, base: Path, device: str, input: str | None
) -> tuple[dict[str, np.ndarray], torch.Tensor | None]:
    """8-bit base outputs by stem, and the controller's summaries `[V, 3, 64, 64]` where `input` asks for them."""
    from fujinsplat.controller.network import summarise
    from fujinsplat.isp import develop, load, materialize

    isp = load(base).to(device)
    pictures, summaries = {}, []
    for stem in views.stems:
        raw_linear = views.raw(stem)
        base_encoded = develop(isp, raw_linear)
        pictures[stem] = materialize(base_encoded)
        if input is not None:
            summaries.append(summarise(torch.from_numpy(raw_linear if input == "raw" else base_encoded)))
    return pictures, torch.stack(summaries) if summaries else None


def _predicted(
    controller: Path, summaries: torch.Tensor, K: int, M: int, input: str, device: str = "cpu"
) -> np.ndarray:
    """Actions `[V, P]` of a stored controller, which must be one for K, M and this input."""
    from fujinsplat.controller.presentations import predict
    from fujinsplat.controller.store import load

    return predict(load(controller, K, M, input).to(device), summaries).numpy()


def _fitted(actions: Path, stems: list[str], K: int, M: int) -> np.ndarray:
    """The expert actions of the scene's views, in their order."""
    from fujinsplat.flow import load

    fitted = load(actions)
    if (fitted.K, fitted.M) != (K, M):
        raise UserError(f"{actions} holds actions of K = {fitted.K}, M = {fitted.M}; the variant asks for {K} and {M}")
    return np.stack([fitted.of(stem).numpy() for stem in stems])


def corrected(base_u8: np.ndarray, action: np.ndarray, K: int, M: int) -> np.ndarray:
    """T_p of an 8-bit base output `[H, W, 3]`, as the 8-bit picture one looks at."""
    from fujinsplat.flow import apply
    from fujinsplat.isp import materialize

    encoded = torch.from_numpy(base_u8.astype(np.float32) / 255)
    with torch.inference_mode():
        return materialize(apply(encoded, torch.from_numpy(np.asarray(action, np.float32)), K, M).numpy())


def spread(actions: np.ndarray, K: int, M: int) -> dict:
    """The scene mean and how far views lie from it: coefficient norms, and RMS displacement of the 9^3 probes."""
    from fujinsplat.flow import apply, probe_grid

    actions = torch.from_numpy(np.asarray(actions, np.float32))
    mean = actions.mean(dim=0)
    probes = probe_grid(dtype=torch.float32)
    with torch.inference_mode():
        centre = apply(probes, mean, K, M)
        moved = [apply(probes, action, K, M) for action in actions]
    rms = lambda x: float(x.square().mean().sqrt())  # noqa: E731
    return {
        "mean_norm": float(mean.norm()),
        "mean_probe_rms": rms(centre - probes),
        "displacement_norm": [float((action - mean).norm()) for action in actions],
        "displacement_probe_rms": [rms(m - centre) for m in moved],
    }
