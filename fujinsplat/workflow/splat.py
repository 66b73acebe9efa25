"""What rules/splat.smk and rules/render.smk ask: what training a row opens, and which parts it runs."""

from fujinsplat.workflow.plan import Plan, compact


class SplatPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def inputs(self, wildcards) -> dict[str, str]:
        """For `input: unpack(…)`: the row's pictures and actions, and what its model opens."""
        dataset, scene, variant = wildcards.dataset, wildcards.scene, wildcards.variant
        settings, row = self.plan.row_settings(dataset, variant), self.plan.row(variant)
        opened = (row.model.opens(settings), row.reconcile.opens(settings), row.front.trains_on(settings))
        needs = dict.fromkeys(need for needs in opened for need in needs)
        return {
            "views": self.plan.views.path(dataset, scene, variant),
            "developed": self.plan.develop.path(dataset, scene, variant),
            **{need: self.plan.locate(need, dataset, scene, settings) for need in needs},
        }

    def options(self, wildcards) -> list[str]:
        """For `params:`: the row's parts and their inputs, as the command takes them."""
        row = self.plan.row(wildcards.variant)
        given = [word for need, path in self.inputs(wildcards).items() for word in ("--input", f"{need}={path}")]
        parts = {"--front": row.front, "--reconcile": row.reconcile, "--model-part": row.model}
        return [*(word for option, part in parts.items() for word in (option, part.name)), *given]

    def settings(self, wildcards) -> str:
        row, settings = self.plan.row(wildcards.variant), self.plan.of_job(wildcards)
        blocks = self.plan.develop.blocks
        parts = [row.model, row.reconcile, *([row.front] if row.front.light else [])]
        return compact({name: block for part in parts for name, block in blocks(part, settings).items()})
