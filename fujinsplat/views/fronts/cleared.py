"""Smoky RAW with the smoke taken away that the capture itself tells of [self-calibrated smoke: docs/smoke.md].

Pictures are the cleared views, developed by the scene's Base ISP. Rows are trained on the linear light itself,
unclipped and weighted, and the smoke is estimated again from the scene as it takes shape.
"""

from pathlib import Path

from fujinsplat.core.parts import Front, points_of


def make(inputs: dict[str, Path], settings, device: str):
    """8-bit pictures of the cleared views, encoded; for looking, and for other programs."""
    import numpy as np
    import torch

    from fujinsplat.capture import SourceViews
    from fujinsplat.isp import develop, load, materialize
    from fujinsplat.smoke import Smoke
    from fujinsplat.views.store import Pictures

    views, isp, smoke = SourceViews(inputs["source"]), load(inputs["base"]).to(device), Smoke.load(inputs["smoke"])
    pictures = {}
    for index, stem in enumerate(smoke.stems):
        white_balance = views.white_balance(stem).astype(np.float32)
        hazy = torch.from_numpy(views.raw(stem) * white_balance)
        raw = np.clip(smoke.clear_of(index, hazy).numpy() / white_balance, 0, 1).astype(np.float32)
        pictures[stem] = materialize(develop(isp, raw))
    return Pictures(pictures)


def light(inputs: dict[str, Path], cameras, xyz, settings, device: str):
    """The linear light of the views while a row is trained; see `fujinsplat.splat.targets.Light`."""
    from fujinsplat.isp import load
    from fujinsplat.smoke.light import smoke_light

    return smoke_light(inputs["source"], load(inputs["base"]), cameras, xyz, settings, device)


def trains_on(settings) -> tuple[str, ...]:
    return ("source", "base", "cameras", points_of(settings))


PART = Front(
    name="cleared", run=make, needs=("source", "base", "smoke"), stages=("smoke",), light=light, trains_on=trains_on
)
