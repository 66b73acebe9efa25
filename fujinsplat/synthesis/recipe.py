"""A recipe: which labels, drawn how, of which shape; the facts that draws and observations carry with them."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import FlowSettings, SynthesisSettings


def leaves_out(settings: SynthesisSettings) -> bool:
    """Whether each scene has a recipe of its own, without its own pairs: drawn from fitted actions, or asked for."""
    return settings.draws == "actions" or settings.population == "leave_out"


@dataclass(frozen=True)
class Recipe:
    """`name` is the folder of its observations. `without` leaves one scene's pairs out of the draws."""

    name: str = "default"
    labels: Literal["published", "fitted"] = "published"
    coordinate: Literal["base", "raw"] = "base"
    draws: str = "veil"
    K: int = FlowSettings().K
    M: int = FlowSettings().M
    curves: bool = True
    couplings: bool = True
    without: str | None = None

    @classmethod
    def of(cls, name: str, settings: SynthesisSettings, flow: FlowSettings, without: str | None = None) -> "Recipe":
        """The recipe of these settings."""
        curves, couplings = settings.action != "couplings", settings.action != "curves"
        shape = (flow.K, flow.M, curves, couplings)
        return cls(name, settings.labels, settings.coordinate, settings.draws, *shape, without)

    def described(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, given: str) -> "Recipe":
        """A recipe from JSON; what it does not name is as in the method."""
        try:
            return cls(**json.loads(given))
        except (ValueError, TypeError) as error:
            raise UserError(f"--recipe {given}: {error}; give a JSON object") from None
