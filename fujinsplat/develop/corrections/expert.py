"""The action fitted to each view's clean twin: an oracle, what a colour action can do at best [supp. E]."""

from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.core.parts import Correction


def act(inputs: dict[str, Path], stems: list[str], settings, device: str):
    """The expert actions of the scene's views `[V, P]`, in their order."""
    import numpy as np

    from fujinsplat.flow import load

    fitted, flow = load(inputs["actions"]), settings.flow
    if (fitted.K, fitted.M) != (flow.K, flow.M):
        raise UserError(
            f"{inputs['actions']} holds actions of K = {fitted.K}, M = {fitted.M}; "
            f"the row asks for {flow.K} and {flow.M}"
        )
    return np.stack([fitted.of(stem).numpy() for stem in stems])


def marks(settings) -> frozenset[str]:
    return frozenset({"curve", "coupling"})


PART = Correction(name="expert", run=act, needs=("actions",), stages=("flow",), marks=marks, gives="own")
