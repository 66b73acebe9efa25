"""The registry of reconcilers."""

from fujinsplat.core.parts import Reconcile, Registry
from fujinsplat.splat.reconcilers import delta, none

RECONCILERS: Registry[Reconcile] = Registry("reconcile", "what makes the views agree", none.PART, delta.PART)
