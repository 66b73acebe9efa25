"""A recipe: which labels, drawn how, of which shape. Its name is the folder of its observations. Pure Python."""

from dataclasses import dataclass

from fujinsplat.config import SynthesisSettings, Variant

K, M = Variant.model_fields["K"].default, Variant.model_fields["M"].default


@dataclass(frozen=True)
class Recipe:
    """The default is the method's. `without` leaves one scene's pairs out of the draws."""

    labels: str = "published"
    coordinate: str = "base"
    draws: str = "veil"
    K: int = K
    M: int = M
    curves: bool = True
    couplings: bool = True
    without: str | None = None

    @classmethod
    def of(cls, variant: Variant, settings: SynthesisSettings, scene: str | None = None) -> "Recipe":
        """The recipe a variant asks for; drawn from actions, each scene has its own, without that scene's pairs."""
        draws = variant.draws or settings.draws
        return cls(
            variant.labels or settings.labels,
            variant.coordinate or settings.coordinate,
            draws,
            variant.K,
            variant.M,
            variant.curves,
            variant.couplings,
            scene if draws == "actions" else None,
        )

    @property
    def name(self) -> str:
        """`published`, `fitted`, `published-raw`, `published-k5`, `published-curves`, `actions-without-Scene`, …"""
        parts = [self.labels if self.draws == "veil" else "actions"]
        parts += [] if self.coordinate == "base" else ["raw"]
        parts += [] if K == self.K else [f"k{self.K}"]
        parts += [] if M == self.M else [f"m{self.M}"]
        if self.curves != self.couplings:
            parts.append("curves" if self.curves else "couplings")
        return "-".join(parts) + (f"-without-{self.without}" if self.without else "")
