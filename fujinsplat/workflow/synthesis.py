"""What rules/synthesis.smk asks: captures, shards, recipes."""

from collections.abc import Callable
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import nearest
from fujinsplat.paths import at
from fujinsplat.rows.artefacts import SAMPLED, blocks_of, differences, version_name
from fujinsplat.synthesis.recipe import Recipe, leaves_out
from fujinsplat.synthesis.sheet import SHEET, read_sheet, shard, shard_names
from fujinsplat.workflow.plan import USUAL, Plan, compact, repeated


class SynthesisPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    # captures

    def folder(self, wildcards) -> str:
        """The folder of external captures."""
        external = self.plan.block(wildcards.dataset).external
        if not external:
            raise UserError(
                f"datasets.{wildcards.dataset}.external is not set; name a folder of smoke-free RAW captures, "
                "or use the controller of another dataset"
            )
        return external

    def _made(self, wildcards) -> bool:
        return self.plan.demo.makes(self.folder(wildcards))

    def sheet(self, wildcards) -> str:
        """The folder when a rule makes it, otherwise its sheet: what must exist before shards can be named."""
        folder = self.folder(wildcards)
        if self._made(wildcards):
            return folder
        read_sheet(folder)  # its sentence, not Snakemake's
        return f"{folder}/{SHEET}"

    def members(self, wildcards) -> list[str]:
        """The files of one shard."""
        if wildcards.shard not in (shards := self.shards(wildcards)):
            raise UserError(
                f"there is no shard {wildcards.shard} of captures; they go from {shards[0]} to {shards[-1]}"
            )
        if self._made(wildcards):
            return [self.folder(wildcards)]
        settings = self.plan.usual(wildcards.dataset).synthesis
        files = [c.path for c in shard(read_sheet(self.folder(wildcards)), settings.shard, wildcards.shard)]
        depths = [path.with_suffix(".depth.npy") for path in files] if settings.depth == "files" else []
        return [str(path) for path in files + depths]

    def shards(self, wildcards) -> list[str]:
        """Names of all shards. A folder that is still to be made says how many captures it will have."""
        size = self.plan.usual(wildcards.dataset).synthesis.shard
        if self._made(wildcards):
            return shard_names(self.plan.demo.captures(self.folder(wildcards)), size)
        return shard_names(len(read_sheet(self.folder(wildcards))), size)

    def captures(self, wildcards) -> list[str]:
        return [at("captures", dataset=wildcards.dataset, shard=name) for name in self.shards(wildcards)]

    def network(self, wildcards) -> list[str]:
        """The depth network's folder, an input of sampling where depth comes from it."""
        if self.plan.usual(wildcards.dataset).synthesis.depth == "files":
            return []
        return [at("network", dataset=wildcards.dataset)]

    def sample_gpu(self, wildcards) -> int:
        """Sampling profits from a GPU where a network makes the depth."""
        return self.plan.gpu if self.network(wildcards) else 0

    def network_option(self, wildcards) -> list[str]:
        return repeated("--network", self.network(wildcards))

    # recipes

    def recipe_name(self, dataset: str, settings: Any, scene: str) -> str:
        """The folder of a recipe's observations: what it has otherwise than the dataset's own settings.

        Drawn from expert actions, or with `population: leave_out`, each scene has a recipe without that scene's pairs.
        """
        changed = differences(settings, self.plan.usual(dataset), blocks_of(("recipe",), settings))
        name = version_name(changed) if changed else USUAL
        return f"{name}-without-{scene}" if leaves_out(settings.synthesis) else name

    def recipes(self, dataset: str) -> dict[str, tuple[Any, str | None]]:
        """All recipes that rows of the config ask for: `(settings, scene left out)` by name."""
        found: dict[str, tuple[Any, str | None]] = {}
        for settings in self.plan.every_settings(dataset):
            for scene in self.plan.block(dataset).scenes:
                without = scene if leaves_out(settings.synthesis) else None
                found.setdefault(self.recipe_name(dataset, settings, scene), (settings, without))
        return found

    def recipe(self, wildcards) -> tuple[Any, str | None]:
        recipes = self.recipes(wildcards.dataset)
        if wildcards.recipe not in recipes:
            raise UserError(f"no variant needs the recipe {wildcards.recipe!r}{nearest(wildcards.recipe, recipes)}")
        return recipes[wildcards.recipe]

    def recipe_option(self, wildcards) -> str:
        settings, without = self.recipe(wildcards)
        return compact(Recipe.of(wildcards.recipe, settings.synthesis, settings.flow, without).described())

    def population(self, wildcards) -> str:
        return self.plan.actions.population(wildcards.dataset, self.recipe(wildcards)[0])

    def experts(self, wildcards) -> list[str]:
        """Fitted actions that a recipe draws from: those of every scene but the one it is made for."""
        settings, _ = self.recipe(wildcards)
        return self._of_scenes(wildcards, "actions") if settings.synthesis.draws == "actions" else []

    def experts_option(self, wildcards) -> list[str]:
        return repeated("--actions", self.experts(wildcards))

    def isps(self, wildcards) -> list[str]:
        """Calibrated bases whose tones the draws have; without the scene that a recipe leaves out."""
        synthesis = self.recipe(wildcards)[0].synthesis
        measured = synthesis.tone == "measured" and synthesis.coordinate == "base"
        return self._of_scenes(wildcards, "base") if measured else []

    def isps_option(self, wildcards) -> list[str]:
        return repeated("--isp", self.isps(wildcards))

    def _of_scenes(self, wildcards, need: str) -> list[str]:
        """An artefact of every scene but the one that the recipe is made for."""
        settings, without = self.recipe(wildcards)
        scenes = [scene for scene in self.plan.scenes_of(wildcards.dataset) if scene != without]
        return [self.plan.locate(need, wildcards.dataset, scene, settings) for scene in scenes]

    def observations(self, wildcards, recipe: str) -> list[str]:
        return [
            at("observations", dataset=wildcards.dataset, recipe=recipe, shard=name) for name in self.shards(wildcards)
        ]

    # settings: only what a rule depends on, so that another setting does not run it again

    def some(self, *names: str) -> Callable:
        """For `params:`: these settings of the dataset."""
        return lambda wildcards: compact(
            self.plan.usual(wildcards.dataset).synthesis.model_dump(mode="json", include=set(names))
        )

    def sample_settings(self, wildcards) -> str:
        return self.some(*SAMPLED)(wildcards)

    def draw_settings(self, wildcards) -> str:
        """Of the recipe: everything that is not about sampling."""
        settings, _ = self.recipe(wildcards)
        left_out = (SAMPLED - {"seed"}) | {"calibration_captures"}
        return compact(settings.synthesis.model_dump(mode="json", exclude=left_out))

    # the gallery

    def shown(self, part: str) -> Callable:
        """For `input:`: the first scene's smoky views or clean twins, beside synthetic ones where there are twins."""

        def views(wildcards) -> list[str]:
            dataset = wildcards.dataset
            if not self.plan.block(dataset).clean_twins:
                return []
            return [at(part, dataset=dataset, scene=self.plan.scenes_of(dataset)[0])]

        return views

    def captures_option(self, wildcards) -> list[str]:
        return repeated("--captures", self.captures(wildcards))

    def shown_option(self, wildcards) -> list[str]:
        source, clean = self.shown("source")(wildcards), self.shown("clean")(wildcards)
        return repeated("--source", source) + repeated("--clean", clean)
