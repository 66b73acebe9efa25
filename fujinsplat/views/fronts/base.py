"""The base output Y^B = B(X) of the smoky RAW [Sec. 3.2, supp. B]."""

from pathlib import Path

from fujinsplat.core.parts import Front


def make(inputs: dict[str, Path], settings, device: str):
    """8-bit base outputs of the source views, encoded."""
    from fujinsplat.capture import SourceViews
    from fujinsplat.isp import develop, load, materialize
    from fujinsplat.views.store import Pictures

    views, isp = SourceViews(inputs["source"]), load(inputs["base"]).to(device)
    return Pictures({stem: materialize(develop(isp, views.raw(stem))) for stem in views.stems})


PART = Front(name="base", run=make, needs=("source", "base"))
