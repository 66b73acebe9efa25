"""Each view's own action, as the scene-agnostic controller predicts it [Sec. 3.3, supp. G]."""

from pathlib import Path

from fujinsplat.core.parts import Correction


def needs(settings) -> tuple[str, ...]:
    """RAW is all it looks at; an RGB controller looks at the base output instead."""
    return ("source", "base", "controller") if settings.controller.input == "rgb" else ("source", "controller")


def marks(settings) -> frozenset[str]:
    parts = {"full": {"curve", "coupling"}, "curves": {"curve"}, "couplings": {"coupling"}}[settings.synthesis.action]
    return frozenset(parts | ({"raw"} if settings.controller.input == "raw" else set()))


def act(inputs: dict[str, Path], stems: list[str], settings, device: str):
    """Predictions `[V, P]`, float32."""
    import torch

    from fujinsplat.capture import SourceViews
    from fujinsplat.controller.network import summarise
    from fujinsplat.controller.presentations import predict
    from fujinsplat.controller.store import load

    views, rgb = SourceViews(inputs["source"]), settings.controller.input == "rgb"
    if rgb:
        from fujinsplat.isp import develop
        from fujinsplat.isp import load as load_base

        isp = load_base(inputs["base"]).to(device)
    pictures = (develop(isp, views.raw(stem)) if rgb else views.raw(stem) for stem in stems)
    summaries = torch.stack([summarise(torch.from_numpy(picture)) for picture in pictures])
    flow = settings.flow
    network = load(inputs["controller"], flow.K, flow.M, settings.controller.input)
    return predict(network.to(device), summaries).numpy()


STAGES = ("flow", "synthesis", "controller")
PART = Correction(name="controller", run=act, needs=needs, stages=STAGES, marks=marks, gives="own")
