"""What rules/analysis.smk asks: every scene's files, and the same as repeated options."""

from collections.abc import Callable

from fujinsplat.workflow.plan import Plan, repeated

STUDIES = ("rank_one", "base_fidelity", "observability", "family")


class AnalysisPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def every(self, need: str) -> Callable:
        """For `input:`: one artefact of every scene of the dataset."""

        def files(wildcards) -> list[str]:
            dataset = wildcards.dataset
            settings = self.plan.usual(dataset)
            return [self.plan.locate(need, dataset, scene, settings) for scene in self.plan.scenes_of(dataset)]

        return files

    def options(self, *needs: str) -> Callable:
        """For `params:`: `--need file` for every scene and each of `needs`."""
        return lambda wildcards: [word for need in needs for word in repeated(f"--{need}", self.every(need)(wildcards))]
