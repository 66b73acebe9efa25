"""What rules/controller.smk asks: which controllers there are and what each learns from.

`raw` is the one of the dataset's own settings. A name says what differs: `rgb`, `raw-K-5`, `raw-labels-fitted`, …;
`raw@90203` is the same trained from another seed.
"""

from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import nearest
from fujinsplat.paths import at
from fujinsplat.rows.artefacts import blocks_of, differences, version_name
from fujinsplat.synthesis.recipe import leaves_out
from fujinsplat.workflow.check import missing_controller
from fujinsplat.workflow.plan import Plan

SEED = "@"


class ControllerPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def name(self, dataset: str, scene: str, settings: Any) -> str:
        """What the controller sees, and what of its settings differs from the dataset's."""
        usual = self.plan.usual(dataset)
        changed = differences(settings, usual, blocks_of(("controller",), settings))
        rest = [change for change in changed if change[:2] not in (("controller", "input"), ("controller", "seed"))]
        words = [settings.controller.input, *([version_name(rest)] if rest else [])]
        words += [f"without-{scene}"] if leaves_out(settings.synthesis) else []
        seed = settings.controller.seed
        return "-".join(words) + (f"{SEED}{seed}" if seed != usual.controller.seed else "")

    def trainings(self, dataset: str) -> dict[str, tuple[Any, str]]:
        """Every controller that rows may ask for, from whatever seed: `(settings, scene)` by name."""
        found: dict[str, tuple[Any, str]] = {}
        for settings in self.plan.every_settings(dataset):
            for scene in self.plan.block(dataset).scenes:
                name = self.name(dataset, scene, settings).partition(SEED)[0]
                found.setdefault(name, (settings, scene))
        return found

    def training(self, wildcards) -> tuple[Any, str]:
        trainings = self.trainings(wildcards.dataset)
        name, mark, seed = wildcards.controller.partition(SEED)
        if name not in trainings or (mark and not seed.isdecimal()):
            close = nearest(name, trainings)
            raise UserError(f"no variant needs the controller {wildcards.controller!r}{close}")
        settings, scene = trainings[name]
        usual = self.plan.usual(wildcards.dataset).controller.seed
        controller = settings.controller.model_copy(update={"seed": int(seed) if mark else usual})
        return settings.model_copy(update={"controller": controller}), scene

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
            if problem := missing_controller(given):  # Snakemake's own words for it name no setting
                raise UserError(problem)
            return self.plan.foreign(given)
        return at("controller", dataset=dataset, controller=self.name(dataset, scene, settings))
