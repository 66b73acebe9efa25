"""A colour action for every source view of a row."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"Developed": "store", "corrected": "inspect", "CORRECTIONS": "corrections"})
