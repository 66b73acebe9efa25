"""One action for all views: the mean of the controller's predictions, p of the delta-ISP without Delta [Sec. 3.4]."""

from pathlib import Path

from fujinsplat.core.parts import Correction
from fujinsplat.develop.corrections import controller


def act(inputs: dict[str, Path], stems: list[str], settings, device: str):
    """The scene's mean prediction, for every view: `[V, P]`, float32."""
    import numpy as np

    predicted = controller.act(inputs, stems, settings, device)
    return np.broadcast_to(predicted.mean(axis=0, dtype=np.float64).astype(np.float32), predicted.shape)


PART = Correction(
    name="mean", run=act, needs=controller.needs, stages=controller.STAGES, marks=controller.marks, gives="shared"
)
