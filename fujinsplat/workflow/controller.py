"""What rules/controller.smk asks: which controllers there are and what each learns from.

`raw` is the one of the dataset's own settings. A name says what differs: `rgb`, `raw-K-5`, `raw-labels-fitted`, …
"""

from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import nearest
from fujinsplat.paths import at
from fujinsplat.rows.artefacts import blocks_of, differences, version_name
from fujinsplat.synthesis.recipe import leaves_out
from fujinsplat.workflow.plan import Plan


class ControllerPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def name(self, dataset: str, scene: str, settings: Any) -> str:
        """What the controller sees, and what of its settings differs from the dataset's."""
        changed = differences(settings, self.plan.usual(dataset), blocks_of(("controller",), settings))
        words = [version_name(rest)] if (rest := [c for c in changed if c[:2] != ("controller", "input")]) else []
        without = [f"without-{scene}"] if leaves_out(settings.synthesis) else []
        return "-".join([settings.controller.input, *words, *without])

    def trainings(self, dataset: str) -> dict[str, tuple[Any, str]]:
        """Every controller that rows may ask for: `(settings, scene)` by name."""
        found: dict[str, tuple[Any, str]] = {}
        for settings in self.plan.every_settings(dataset):
            for scene in self.plan.block(dataset).scenes:
                found.setdefault(self.name(dataset, scene, settings), (settings, scene))
        return found

    def training(self, wildcards) -> tuple[Any, str]:
        trainings = self.trainings(wildcards.dataset)
        if wildcards.controller not in trainings:
            close = nearest(wildcards.controller, trainings)
            raise UserError(f"no variant needs the controller {wildcards.controller!r}{close}")
        return trainings[wildcards.controller]

    def shards(self, wildcards) -> list[str]:
        """For `input:`: all observations of the controller's recipe."""
        settings, scene = self.training(wildcards)
        recipe = self.plan.synthesis.recipe_name(wildcards.dataset, settings, scene)
        return self.plan.synthesis.observations(wildcards, recipe)

    def settings(self, wildcards) -> str:
        import json

        block = self.training(wildcards)[0].controller.model_dump(mode="json", exclude={"checkpoint"})
        return json.dumps(block, sort_keys=True)

    def path(self, dataset: str, scene: str, settings: Any) -> str:
        """The controller that develops `scene`: the imported file, where the settings name one, or a trained one."""
        if given := settings.controller.checkpoint:
            return self.plan.foreign(given)
        return at("controller", dataset=dataset, controller=self.name(dataset, scene, settings))
