"""No correction: the identity action for every view [Sec. 4.2: RAW base only]."""

from fujinsplat.core.parts import Correction


def act(inputs, stems: list[str], settings, device: str):
    """Zeros `[V, P]`."""
    import numpy as np

    from fujinsplat.flow import size

    return np.zeros((len(stems), size(settings.flow.K, settings.flow.M)), np.float32)


PART = Correction(name="none", run=act, stages=("flow",))
