"""What rules/synthesis.smk asks: captures, shards, recipes. Pure Python, read while the workflow is planned."""

import json
from dataclasses import asdict

from fujinsplat.config import Variant
from fujinsplat.configfile import nearest
from fujinsplat.errors import UserError
from fujinsplat.synthesis.recipe import Recipe
from fujinsplat.synthesis.sheet import SHEET, read_sheet, shard, shard_names
from fujinsplat.workflow import RESULTS, Plan, repeated

SAMPLED = {"pixels", "summary", "seed", "shard", "depth", "depth_model", "depth_revision", "depth_batch"}
DRAWN = {"veil", "jitter", "smoke", "by_depth", "uneven", "relight", "tone", "light"}
DRAWN |= {"draws_per_capture", "knee", "max_gain", "seed"}


class SynthesisPlan:
    """`synthesis = SynthesisPlan(plan)` in the rule file; functions take `wildcards`."""

    def __init__(self, plan: Plan):
        self.plan = plan

    # captures

    def folder(self, wildcards) -> str:
        """The folder of external captures."""
        external = self.plan.config.datasets[wildcards.dataset].external
        if not external:
            raise UserError(
                f"datasets.{wildcards.dataset}.external is not set; name a folder of smoke-free RAW captures, "
                "or use the controller of another dataset"
            )
        return external

    def maker(self, wildcards) -> str | None:
        """The demo dataset that makes the captures: this one, or one whose folder it shares. None: they are there."""
        datasets, folder = self.plan.config.datasets, self.folder(wildcards)
        return next((name for name, d in datasets.items() if d.made_by_demo and d.external == folder), None)

    def sheet(self, wildcards) -> str:
        """The folder when a demo makes it, otherwise its sheet: what must exist before shards can be named."""
        folder = self.folder(wildcards)
        return folder if self.maker(wildcards) else f"{folder}/{SHEET}"

    def members(self, wildcards) -> list[str]:
        """The files of one shard."""
        if self.maker(wildcards):
            return [self.folder(wildcards)]
        settings = self.plan.stage(wildcards.dataset, "synthesis")
        files = [c.path for c in shard(read_sheet(self.folder(wildcards)), settings.shard, wildcards.shard)]
        depths = [path.with_suffix(".depth.npy") for path in files] if settings.depth == "files" else []
        return [str(path) for path in files + depths]

    def shards(self, wildcards) -> list[str]:
        """Names of all shards. A demo that is still to be made says how many captures it will have."""
        size, maker = self.plan.stage(wildcards.dataset, "synthesis").shard, self.maker(wildcards)
        if maker:
            return shard_names(self.plan.stage(maker, "demo").external, size)
        return shard_names(len(read_sheet(self.folder(wildcards))), size)

    def captures(self, wildcards) -> list[str]:
        results = RESULTS.format(dataset=wildcards.dataset)
        return [f"{results}/synthetic/captures/{name}.safetensors" for name in self.shards(wildcards)]

    def network(self, wildcards) -> list[str]:
        """The depth network's folder, an input of sampling where depth comes from it."""
        if self.plan.stage(wildcards.dataset, "synthesis").depth == "files":
            return []
        return [f"{RESULTS.format(dataset=wildcards.dataset)}/synthetic/network"]

    def sample_device(self, wildcards) -> str:
        """Sampling profits from a GPU where a network makes the depth."""
        return self.plan.device if self.network(wildcards) else "cpu"

    def sample_gpu(self, wildcards) -> int:
        return self.plan.gpu if self.network(wildcards) else 0

    def network_option(self, wildcards) -> list[str]:
        return repeated("--network", self.network(wildcards))

    # recipes

    def recipes(self, dataset: str) -> dict[str, Recipe]:
        """All recipes that variants of the configuration ask for, by name."""
        settings = self.plan.stage(dataset, "synthesis")
        variants = [Variant(), *self.plan.config.variants.values()]
        scenes = self.plan.scenes_of(dataset)
        made = [Recipe.of(variant, settings, scene) for variant in variants for scene in scenes]
        return {recipe.name: recipe for recipe in made}

    def recipe(self, wildcards) -> Recipe:
        recipes = self.recipes(wildcards.dataset)
        if wildcards.recipe not in recipes:
            raise UserError(f"no variant needs the recipe {wildcards.recipe!r}{nearest(wildcards.recipe, recipes)}")
        return recipes[wildcards.recipe]

    def recipe_option(self, wildcards) -> str:
        return json.dumps(asdict(self.recipe(wildcards)), sort_keys=True)

    def population(self, wildcards) -> str:
        """The given correction distribution, or the dataset's own."""
        given = self.plan.stage(wildcards.dataset, "actions").population
        return given or f"{RESULTS.format(dataset=wildcards.dataset)}/population.json"

    def experts(self, wildcards) -> list[str]:
        """Fitted actions that a recipe draws from: those of every scene but the one it is made for."""
        return self._of_scenes(wildcards, "actions") if self.recipe(wildcards).draws == "actions" else []

    def experts_option(self, wildcards) -> list[str]:
        return repeated("--actions", self.experts(wildcards))

    def isps(self, wildcards) -> list[str]:
        """Calibrated bases whose tones the draws have; without the scene that a recipe leaves out."""
        measured = self.plan.stage(wildcards.dataset, "synthesis").tone == "measured"
        return self._of_scenes(wildcards, "base") if measured and self.recipe(wildcards).coordinate == "base" else []

    def isps_option(self, wildcards) -> list[str]:
        return repeated("--isp", self.isps(wildcards))

    def _of_scenes(self, wildcards, stage: str) -> list[str]:
        """A stage's file of every scene but the one that the recipe is made for."""
        results, without = RESULTS.format(dataset=wildcards.dataset), self.recipe(wildcards).without
        scenes = self.plan.scenes_of(wildcards.dataset)
        return [f"{results}/{stage}/{scene}.safetensors" for scene in scenes if scene != without]

    def observations(self, dataset: str, recipe: str) -> list[str]:
        results = RESULTS.format(dataset=dataset)
        wildcards = type("Wildcards", (), {"dataset": dataset})
        return [f"{results}/synthetic/{recipe}/{name}.safetensors" for name in self.shards(wildcards)]

    def recipe_observations(self, wildcards) -> list[str]:
        return self.observations(wildcards.dataset, wildcards.recipe)

    # settings: only what a rule depends on, so that another setting does not run it again

    def sample_settings(self, wildcards) -> str:
        return self._some(wildcards, SAMPLED)

    def draw_settings(self, wildcards) -> str:
        return self._some(wildcards, DRAWN)

    def base_settings(self, wildcards) -> str:
        return self._some(wildcards, {"calibration_captures"})

    def network_settings(self, wildcards) -> str:
        return self._some(wildcards, {"depth_model", "depth_revision"})

    def _some(self, wildcards, names: set[str]) -> str:
        settings = self.plan.stage(wildcards.dataset, "synthesis")
        return json.dumps(settings.model_dump(mode="json", include=names, exclude_defaults=True), sort_keys=True)

    # the gallery

    def shown(self, part: str):
        """For `input:`: the first scene's smoky views or clean twins, beside synthetic ones where there are twins."""

        def views(wildcards) -> list[str]:
            dataset = self.plan.config.datasets[wildcards.dataset]
            if not dataset.clean_twins:
                return []
            return [
                f"{RESULTS.format(dataset=wildcards.dataset)}/capture/{self.plan.scenes_of(wildcards.dataset)[0]}/{part}"
            ]

        return views

    def captures_option(self, wildcards) -> list[str]:
        return repeated("--captures", self.captures(wildcards))

    def shown_option(self, wildcards) -> list[str]:
        source, clean = self.shown("source")(wildcards), self.shown("clean")(wildcards)
        return repeated("--source", source) + repeated("--clean", clean)
