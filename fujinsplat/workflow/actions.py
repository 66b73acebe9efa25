"""What rules/actions.smk asks of the configuration."""

from typing import Any

from fujinsplat.paths import at
from fujinsplat.workflow.plan import Plan


class ActionsPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def population(self, dataset: str, settings: Any) -> str:
        """The correction distribution: a file that the settings name, or the one measured on the dataset's scenes."""
        if given := settings.actions.population:
            return self.plan.foreign(given)
        return at("population", dataset=dataset, version=self.plan.version(dataset, "population", settings))

    def veils(self, wildcards) -> list[str]:
        """For `input:`: the fits of every scene of the dataset; the distribution is one for all of them."""
        settings = self.plan.of_version(wildcards.dataset, "population", wildcards.version)
        version = self.plan.version(wildcards.dataset, "veil", settings)
        scenes = self.plan.scenes_of(wildcards.dataset)
        return [at("veil", dataset=wildcards.dataset, scene=scene, version=version) for scene in scenes]
