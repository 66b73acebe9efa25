"""Nothing: every view keeps the action it was developed with [Sec. 4.2: w/o delta-ISP]."""

from fujinsplat.core.parts import Reconcile


def make(actions, settings, iterations: int) -> None:
    """No object: targets are constant."""


PART = Reconcile(name="none", run=make)
