"""What rules/develop.smk asks: what developing a variant opens, and nothing beyond. Pure Python."""

from collections.abc import Callable

from fujinsplat.config import Variant
from fujinsplat.controller.plan import ControllerPlan
from fujinsplat.workflow import RESULTS, Plan

OPENS = {
    "controller": ("source", "base", "controller"),
    "base": ("source", "base"),
    "camera": ("source",),
    "expert": ("source", "base", "actions"),
    "clean": ("clean",),
}


def kind_of(variant: Variant) -> str:
    """Where pictures and actions come from; oracles alone may open clean twins or what was fitted to them."""
    if variant.oracle != "none":
        return variant.oracle
    if variant.base == "none":
        return "camera"
    if variant.input == "none" or not (variant.curves or variant.couplings):
        return "base"
    return "controller"


class DevelopPlan:
    """`development = DevelopPlan(plan)` in the rule file; functions take `wildcards`."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.controllers = ControllerPlan(plan)

    def kind(self, wildcards) -> str:
        return kind_of(self.plan.variant(wildcards.variant))

    def part(self, name: str) -> Callable:
        """For `input:`: the file or folder called `name`, where the variant's kind opens it."""

        def found(wildcards) -> list[str]:
            if name not in OPENS[self.kind(wildcards)]:
                return []
            results, scene = RESULTS.format(dataset=wildcards.dataset), wildcards.scene
            if name == "controller":
                path = self.controllers.path(self.plan.variant(wildcards.variant), wildcards.dataset, scene)
            elif name in ("source", "clean"):
                path = f"{results}/capture/{scene}/{name}"
            else:
                path = f"{results}/{name}/{scene}.safetensors"
            return [path]

        return found

    def options(self, wildcards) -> list[str]:
        """For `params:`: kind, inputs and shape of the actions, as the command takes them."""
        variant, kind = self.plan.variant(wildcards.variant), self.kind(wildcards)
        options = ["--kind", kind]
        for name in OPENS[kind]:
            options += [f"--{name}", *self.part(name)(wildcards)]
        if kind == "controller":
            options += ["--input", variant.input, *(["--shared"] if variant.shared else [])]
        return [*options, "--couplings", str(variant.K), "--knots", str(variant.M)]
