"""The paper's tables from what was measured: one builder per table, three formats each."""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"TABLES": "build", "build_table": "build", "write_table": "formats"})
