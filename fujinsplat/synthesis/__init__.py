"""Reverse ISP-action synthesis: labelled synthetic RAW observations from smoke-free captures [Sec. 3.3, supp. F]."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"compile_label": "labels", "compile_labels": "labels"})
