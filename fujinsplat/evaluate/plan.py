"""What the rule files of evaluation and report ask of the plan."""

import json
from collections.abc import Callable

from fujinsplat.config import StageSettings
from fujinsplat.configfile import dump_differences
from fujinsplat.evaluate.collect import REPEAT
from fujinsplat.evaluate.outline import Outline, outline_of
from fujinsplat.workflow import Plan

# tables that need scores; the others need what their studies wrote, or nothing
OF_SCORES = ("main", "seven_scenes", "ablation", "ablation_per_scene", "capacity")
OTHERS = ("base_fidelity", "rank_one", "settings", "supervision")
FORMATS = ("csv", "md", "tex")


class EvaluationPlan:
    """Inputs and parameters of the rules in rules/evaluate.smk and rules/report.smk."""

    def __init__(self, plan: Plan):
        self.plan = plan

    # scores

    def train_views(self, wildcards) -> list[str]:
        """For `input:`: renders at source poses and the clean twins, for the train-view PSNR, where there are twins."""
        if not self.plan.config.datasets[wildcards.dataset].clean_twins:
            return []
        results, scene = f"results/{wildcards.dataset}", wildcards.scene
        return [f"{results}/renders_source/{scene}/{wildcards.variant}", f"{results}/capture/{scene}/clean"]

    def train_options(self, wildcards) -> list[str]:
        options = zip(("--source-renders", "--clean"), self.train_views(wildcards), strict=False)
        return [part for option in options for part in option]

    def score_settings(self, wildcards) -> str:
        """The scoring settings without the number of repeats, which changes no score."""
        settings = self.plan.stage(wildcards.dataset, "evaluate").model_copy(update={"repeats": 1})
        return dump_differences(settings)

    def about(self, wildcards) -> str:
        """What the JSON beside a score file says of its origin: scene, variant and every seed."""
        stages = StageSettings.model_fields
        seeds = {name: getattr(self.plan.stage(wildcards.dataset, name), "seed", None) for name in stages}
        seeds["splat"] = json.loads(self.plan.settings("splat")(wildcards)).get("seed", StageSettings().splat.seed)
        about = {
            "dataset": wildcards.dataset,
            "scene": wildcards.scene,
            "variant": wildcards.variant,
            "seeds": {name: seed for name, seed in seeds.items() if seed is not None},
        }
        return json.dumps(about, sort_keys=True)

    # tables

    def outline(self, wildcards) -> Outline:
        return outline_of(self.plan.config, wildcards.dataset)

    def table_outline(self, wildcards) -> str:
        """The outline as JSON, with settings only where a table shows them: a changed setting makes no other again."""
        outline = self.outline(wildcards)
        if wildcards.get("table", "settings") != "settings":
            outline = outline.model_copy(update={"settings": StageSettings()})
        return json.dumps(outline.model_dump(mode="json", exclude_defaults=True), sort_keys=True)

    def scores(self, wildcards) -> list[str]:
        """Every score file of the build, all seeds."""
        outline = self.outline(wildcards)
        if not self.plan.config.datasets[wildcards.dataset].held_views:
            return []
        repeats = outline.settings.evaluate.repeats
        names = [f"{v}{REPEAT}{r}" if r > 1 else v for v in outline.variants for r in range(1, repeats + 1)]
        return [f"results/{wildcards.dataset}/metrics/{s}/{v}.csv" for s in outline.scenes for v in names]

    def table_inputs(self, wildcards) -> list[str]:
        """For `input:` of one table."""
        results, outline = f"results/{wildcards.dataset}", self.outline(wildcards)
        twins = self.plan.config.datasets[wildcards.dataset].clean_twins
        if wildcards.table == "base_fidelity":
            study = [f"{results}/analysis/base_fidelity/result.json"] if twins else []
            return [f"{results}/base/{scene}.json" for scene in outline.scenes] + study
        if wildcards.table == "rank_one":
            return [f"{results}/analysis/rank_one/result.json"] if twins else []
        return [] if wildcards.table == "settings" else self.scores(wildcards)

    def tables(self, dataset: str) -> list[str]:
        """Every table of a dataset, for `rule all` and the report."""
        names = (*OF_SCORES, *OTHERS)
        return [f"results/{dataset}/tables/{name}.{suffix}" for name in names for suffix in FORMATS]

    def of_dataset(self, paths: Callable[[str], list[str]]) -> Callable:
        return lambda wildcards: paths(wildcards.dataset)
