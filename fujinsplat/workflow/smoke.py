"""What rules/smoke.smk asks: whose points the estimate reads."""

from fujinsplat.core.parts import points_of
from fujinsplat.workflow.plan import Plan


class SmokePlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def points(self, wildcards) -> str:
        settings = self.plan.of_version(wildcards.dataset, "smoke", wildcards.version)
        return self.plan.locate(points_of(settings), wildcards.dataset, wildcards.scene, settings)
