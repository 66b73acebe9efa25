"""Late imports: `import fujinsplat.isp` must not cost two seconds of torch for a command that only prints its help."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def exports(package: str, names: dict[str, str]) -> Callable[[str], Any]:
    """A module-level `__getattr__` for `package` that imports `names[attribute]` (a submodule) on first use.

    >>> __getattr__ = exports(__name__, {"BaseISP": "model"})  # doctest: +SKIP
    """

    def getattribute(attribute: str) -> Any:
        if attribute not in names:
            raise AttributeError(f"module {package!r} has no attribute {attribute!r}")
        return getattr(import_module(f"{package}.{names[attribute]}"), attribute)

    return getattribute
