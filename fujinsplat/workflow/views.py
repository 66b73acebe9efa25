"""What rules/views.smk asks: the fronts of the rows, and what each opens."""

from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.parts import Front
from fujinsplat.core.validation import nearest
from fujinsplat.paths import at
from fujinsplat.workflow.plan import Plan, compact


class ViewsPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def front(self, wildcards) -> tuple[Front, Any]:
        fronts = self.plan.fronts(wildcards.dataset)
        if wildcards.front not in fronts:
            raise UserError(f"no variant starts from the front {wildcards.front!r}{nearest(wildcards.front, fronts)}")
        return fronts[wildcards.front]

    def inputs(self, wildcards) -> dict[str, str]:
        """For `input: unpack(…)`: what the front opens, and nothing beyond."""
        front, settings = self.front(wildcards)
        return {
            need: self.plan.locate(need, wildcards.dataset, wildcards.scene, settings) for need in front.opens(settings)
        }

    def options(self, wildcards) -> list[str]:
        """For `params:`: the part and its inputs, as the command takes them."""
        given = [word for need, path in self.inputs(wildcards).items() for word in ("--input", f"{need}={path}")]
        return ["--front", self.front(wildcards)[0].name, *given]

    def settings(self, wildcards) -> str:
        return compact(self.plan.develop.blocks(*self.front(wildcards)))

    def path(self, dataset: str, scene: str, variant: str) -> str:
        """The pictures a row starts from."""
        row, settings = self.plan.row(variant), self.plan.row_settings(dataset, variant)
        return at("views", dataset=dataset, scene=scene, front=self.plan.front_name(dataset, row, settings))
