"""What rules/actions.smk asks of the configuration."""

from pathlib import Path

from fujinsplat.workflow import RESULTS, Plan


class ActionsPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def given(self, dataset: str) -> str | None:
        """The population file that the settings name instead of fitting one."""
        return self.plan.stage(dataset, "actions").population

    def population_inputs(self, wildcards) -> list[str]:
        """The given population, or the fits of every scene of the dataset: the distribution is one for all of them."""
        given = self.given(wildcards.dataset)
        if given:
            return [str(Path(given))]
        scenes = self.plan.scenes_of(wildcards.dataset)
        return [f"{RESULTS.format(dataset=wildcards.dataset)}/actions/{scene}.veil.json" for scene in scenes]

    def population_option(self, wildcards) -> str:
        return "--use" if self.given(wildcards.dataset) else ""
