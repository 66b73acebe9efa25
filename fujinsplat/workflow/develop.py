"""What rules/develop.smk asks: what a row's correction opens, and nothing beyond."""

from typing import Any

from fujinsplat.core.parts import Part
from fujinsplat.paths import at
from fujinsplat.rows.artefacts import differences, part_blocks
from fujinsplat.workflow.plan import Plan, compact, split_repeat


class DevelopPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def inputs(self, wildcards) -> dict[str, str]:
        """For `input: unpack(…)`: the row's pictures, and what its correction opens."""
        dataset, scene, variant = wildcards.dataset, wildcards.scene, wildcards.variant
        settings = self.plan.row_settings(dataset, variant)
        needs = self.plan.row(variant).correction.opens(settings)
        opened = {need: self.plan.locate(need, dataset, scene, settings) for need in needs}
        return {"views": self.plan.views.path(dataset, scene, variant), **opened}

    def path(self, dataset: str, scene: str, variant: str) -> str:
        """A row's actions; further seeds of a row have their own where the correction learned them."""
        settings, (name, _) = self.plan.row_settings(dataset, variant), split_repeat(variant)
        blocks = part_blocks(self.plan.row(variant).correction, settings)
        own = differences(settings, self.plan.row_settings(dataset, name), blocks)
        return at("developed", dataset=dataset, scene=scene, variant=variant if own else name)

    def options(self, wildcards) -> list[str]:
        """For `params:`: the part and its inputs, as the command takes them."""
        given = [word for need, path in self.inputs(wildcards).items() for word in ("--input", f"{need}={path}")]
        return ["--correction", self.plan.row(wildcards.variant).correction.name, *given]

    def settings(self, wildcards) -> str:
        row, settings = self.plan.row(wildcards.variant), self.plan.of_job(wildcards)
        return compact(self.blocks(row.correction, settings))

    @staticmethod
    def blocks(part: Part, settings: Any) -> dict:
        """The blocks that a part's function reads: those it names, and its own."""
        names = [*part.stages, *([part.name] if part.has_settings else [])]
        return {name: getattr(settings, name).model_dump(mode="json") for name in names}
