"""What the rule files of evaluation and report ask of the plan."""

import json

from fujinsplat.config import StageSettings
from fujinsplat.configfile import dump_differences
from fujinsplat.controller.plan import ControllerPlan
from fujinsplat.evaluate.collect import REPEAT
from fujinsplat.evaluate.outline import Outline, outline_of
from fujinsplat.evaluate.tables.scores import ABLATION, by_role
from fujinsplat.workflow import Plan

# tables that need scores; the others need what their studies wrote, or nothing
OF_SCORES = ("main", "seven_scenes", "ablation", "ablation_per_scene", "capacity")
OTHERS = ("base_fidelity", "rank_one", "settings", "supervision")
FORMATS = ("csv", "md", "tex")
STUDIES = ("rank_one", "base_fidelity", "observability", "family")


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
        """The outline as JSON, with settings only where they are shown: a changed setting makes nothing else again."""
        outline = self.outline(wildcards)
        shown = wildcards.get("table") or wildcards.get("figure") or "report"
        if shown not in ("settings", "training", "report"):
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
        if wildcards.table == "supervision" and twins and outline.settings.report.studies:
            # it says who read what, so every reader comes before it
            return self.scores(wildcards) + [f"{results}/analysis/{study}/result.json" for study in STUDIES]
        return [] if wildcards.table == "settings" else self.scores(wildcards)

    def tables(self, dataset: str) -> list[str]:
        """Every table of a dataset, for `rule all` and the report."""
        names = (*OF_SCORES, *OTHERS)
        return [f"results/{dataset}/tables/{name}.{suffix}" for name in names for suffix in FORMATS]

    # report

    def method(self, wildcards) -> str:
        """The variant whose pictures the report shows: the method itself, or the build's first."""
        outline = self.outline(wildcards)
        return by_role(outline).get("method") or next(iter(outline.variants))

    def figures(self, wildcards) -> list[str]:
        """Names of the figures that this build can draw."""
        outline, dataset = self.outline(wildcards), self.plan.config.datasets[wildcards.dataset]
        roles = set(by_role(outline))
        names = ["training", "pipeline"]
        if dataset.held_views:
            names = ["qualitative", *names]
            names += ["ablation_renders"] if len(roles & set(ABLATION)) > 2 else []
            names += ["capacity"] if "capacity" in roles else []
        return names

    def figure_inputs(self, wildcards) -> list[str]:
        """For `input:` of one figure."""
        results, outline = f"results/{wildcards.dataset}", self.outline(wildcards)
        roles, scenes = by_role(outline), outline.scenes
        if wildcards.figure == "training":
            return [f"{results}/gaussians/{scene}/{self.method(wildcards)}.log.jsonl" for scene in scenes]
        if wildcards.figure in ("qualitative", "ablation_renders"):
            wanted = [roles[r] for r in ("rgb_base", *ABLATION) if r in roles]
            parts = [f"capture/{s}/{part}" for s in scenes for part in ("source", "held", "cameras.json")]
            parts += [f"renders/{scene}/{name}" for scene in scenes for name in wanted]
            return [f"{results}/{part}" for part in parts] + self.scores(wildcards)
        return self.scores(wildcards) or [f"{results}/gaussians/{s}/{self.method(wildcards)}.ply" for s in scenes]

    def report_inputs(self, wildcards) -> list[str]:
        """For `input:` of the report: everything it shows, so that it is made last."""
        results, outline = f"results/{wildcards.dataset}", self.outline(wildcards)
        method, scenes = self.method(wildcards), outline.scenes
        parts = [f"capture/{scene}/source" for scene in scenes]
        parts += [f"renders_source/{scene}/{method}" for scene in scenes]
        parts += [f"viewer/{scene}.html" for scene in scenes if outline.settings.report.viewer]
        parts += [f"figures/{name}.png" for name in self.figures(wildcards)]
        parts += [f"developed/{scene}/{method}.png" for scene in scenes]
        twins = self.plan.config.datasets[wildcards.dataset].clean_twins
        if twins and outline.settings.report.studies:
            parts += [f"analysis/{study}/figure.png" for study in STUDIES]
        controllers = ControllerPlan(self.plan)
        training = controllers.of(outline.variants[method], wildcards.dataset, scenes[0])
        if training and not controllers.imported(training, wildcards.dataset):
            parts.append(f"synthetic/{training.recipe.name}/gallery.png")
        return [f"{results}/{part}" for part in parts] + self.tables(wildcards.dataset)

    def view_model(self, wildcards) -> str:
        return f"results/{wildcards.dataset}/gaussians/{wildcards.scene}/{self.method(wildcards)}.ply"
