"""What rules/controller.smk asks: which controllers there are and what each learns from. Pure Python."""

from fujinsplat.config import Variant
from fujinsplat.configfile import nearest
from fujinsplat.controller.names import METHOD, Training, training
from fujinsplat.errors import UserError
from fujinsplat.synthesis.plan import SynthesisPlan
from fujinsplat.workflow import RESULTS, Plan


class ControllerPlan:
    """`controllers = ControllerPlan(plan)` in the rule file; functions take `wildcards`."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.synthesis = SynthesisPlan(plan)

    def trainings(self, dataset: str) -> dict[str, Training]:
        """Every controller that variants ask for, by name; the method's own is always among them."""
        settings = self.plan.stage(dataset, "synthesis")
        variants = [Variant(), *self.plan.config.variants.values()]
        scenes = self.plan.config.datasets[dataset].scenes
        made = [training(variant, settings, scene) for variant in variants for scene in scenes]
        return {one.name: one for one in made if one}

    def training(self, wildcards) -> Training:
        trainings = self.trainings(wildcards.dataset)
        if wildcards.controller not in trainings:
            close = nearest(wildcards.controller, trainings)
            raise UserError(f"no variant needs the controller {wildcards.controller!r}{close}")
        return trainings[wildcards.controller]

    def shards(self, wildcards) -> list[str]:
        """For `input:`: all observations of the controller's recipe."""
        return self.synthesis.observations(wildcards.dataset, self.training(wildcards).recipe.name)

    def input(self, wildcards) -> str:
        return self.training(wildcards).input

    def objective(self, wildcards) -> str:
        return self.training(wildcards).objective

    def of(self, variant: Variant, dataset: str, scene: str) -> Training | None:
        """The controller that develops `scene` for `variant`, or None."""
        return training(variant, self.plan.stage(dataset, "synthesis"), scene)

    def imported(self, one: Training, dataset: str) -> str | None:
        """The file that replaces training, where the settings name one: for the method's own controller alone."""
        return self.plan.stage(dataset, "controller").checkpoint if one.name == METHOD else None

    def path(self, variant: Variant, dataset: str, scene: str) -> str | None:
        one = self.of(variant, dataset, scene)
        if one and (given := self.imported(one, dataset)):
            return given
        return f"{RESULTS.format(dataset=dataset)}/controller/{one.name}.safetensors" if one else None
