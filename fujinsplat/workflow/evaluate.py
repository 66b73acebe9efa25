"""What the rule files of evaluation and report ask of the plan."""

import json

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import EvaluateSettings, StageSettings
from fujinsplat.core.validation import nearest
from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.tables.baselines import compared
from fujinsplat.evaluate.tables.scores import ABLATION
from fujinsplat.paths import at
from fujinsplat.rows.outline import outline_of
from fujinsplat.workflow.analysis import STUDIES
from fujinsplat.workflow.plan import USUAL, Plan, compact, repeated

# tables that need scores; the others need what their studies wrote, or nothing
OF_SCORES = ("overview", "recipes", "main", "baselines", "seven_scenes", "ablation", "ablation_per_scene", "capacity")
OTHERS = ("base_fidelity", "rank_one", "population", "inverse", "settings", "supervision")
FORMATS = ("csv", "md", "tex")


class EvaluationPlan:
    """Inputs and parameters of the rules in rules/evaluate.smk and rules/report.smk."""

    def __init__(self, plan: Plan):
        self.plan = plan

    # scores

    def train_views(self, wildcards) -> list[str]:
        """For `input:`: renders at source poses and the clean twins, for the train-view PSNR, where there are twins."""
        if not self.plan.block(wildcards.dataset).clean_twins:
            return []
        scene = {"dataset": wildcards.dataset, "scene": wildcards.scene}
        return [at("renders_source", **scene, variant=wildcards.variant), at("clean", **scene)]

    def train_options(self, wildcards) -> list[str]:
        options = zip(("--source-renders", "--clean"), self.train_views(wildcards), strict=False)
        return [part for option in options for part in option]

    def medium_views(self, wildcards) -> list[str]:
        """For `input:`: renders at held poses through the medium, of a model that has one."""
        if not self.plan.row(wildcards.variant).model.medium:
            return []
        return [at("renders_medium", dataset=wildcards.dataset, scene=wildcards.scene, variant=wildcards.variant)]

    def medium_options(self, wildcards) -> list[str]:
        return repeated("--medium-renders", self.medium_views(wildcards))

    def score_settings(self, wildcards) -> str:
        settings: EvaluateSettings = self.plan.usual(wildcards.dataset).evaluate
        return compact(settings.model_dump(mode="json"))

    def about(self, wildcards) -> str:
        """What the JSON beside a score file says of its origin: scene, variant, its parts and every seed."""
        settings, row = self.plan.of_job(wildcards), self.plan.row(wildcards.variant)
        seeds = {name: getattr(getattr(settings, name), "seed", None) for name in StageSettings.model_fields}
        about = {
            "dataset": wildcards.dataset,
            "scene": wildcards.scene,
            "variant": wildcards.variant,
            "parts": [part.name for part in row.parts],
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
            rows = {name: row.model_copy(update={"differences": []}) for name, row in outline.rows.items()}
            outline = outline.model_copy(update={"settings": {}, "paper": {}, "rows": rows})
        return json.dumps(outline.model_dump(mode="json", exclude_defaults=True), sort_keys=True)

    def scores(self, wildcards) -> list[str]:
        """Every score file of the build, all seeds."""
        outline = self.outline(wildcards)
        if not outline.held_views:
            return []
        names = [name for row in outline.rows for name in outline.repeats(row)]
        return [at("scores", dataset=wildcards.dataset, scene=s, variant=v) for s in outline.scenes for v in names]

    def _study(self, wildcards, study: str, file: str = "result.json") -> str:
        return at("study", dataset=wildcards.dataset, study=study, file=file)

    def _studied(self, wildcards) -> bool:
        block, settings = self.plan.block(wildcards.dataset), self.plan.usual(wildcards.dataset)
        return block.clean_twins and settings.report.studies

    def _recipe(self, wildcards) -> str | None:
        """The recipe that the method's controller learns from; None where nothing is synthesised for it."""
        outline, dataset = self.outline(wildcards), wildcards.dataset
        settings = self.plan.row_settings(dataset, outline.method)
        if "controller" not in self.plan.row(outline.method).opens(settings) or settings.controller.checkpoint:
            return None
        return self.plan.synthesis.recipe_name(dataset, settings, outline.scenes[0])

    def recipe_draws(self, wildcards) -> str:
        return at("draws", dataset=wildcards.dataset, recipe=self._recipe(wildcards) or USUAL)

    def table_inputs(self, wildcards) -> list[str]:
        """For `input:` of one table."""
        outline, dataset = self.outline(wildcards), wildcards.dataset
        if wildcards.table == "base_fidelity":
            study = [self._study(wildcards, "base_fidelity")] if outline.clean_twins else []
            return [at("fidelity", dataset=dataset, scene=scene, version="") for scene in outline.scenes] + study
        if wildcards.table == "population":
            return [self.plan.actions.population(dataset, self.plan.usual(dataset))] if outline.clean_twins else []
        if wildcards.table == "inverse":
            return [self._study(wildcards, "inverse")] if self._studied(wildcards) and self._recipe(wildcards) else []
        if wildcards.table == "rank_one":
            return [self._study(wildcards, "rank_one")] if outline.clean_twins else []
        if wildcards.table == "supervision" and self._studied(wildcards):
            # it says who read what, so every reader comes before it
            return self.scores(wildcards) + [self._study(wildcards, study) for study in STUDIES]
        return [] if wildcards.table == "settings" else self.scores(wildcards)

    def tables(self, dataset: str) -> list[str]:
        """Every table of a dataset, for the report."""
        names = (*OF_SCORES, *OTHERS)
        return [at("table", dataset=dataset, table=name, format=suffix) for name in names for suffix in FORMATS]

    # report

    def method(self, wildcards) -> str:
        return self.outline(wildcards).method

    def figures(self, wildcards) -> list[str]:
        """Names of the figures that this build can draw."""
        outline = self.outline(wildcards)
        roles = {row.role for row in outline.rows.values()}
        names = ["training", "pipeline", "mcf"]
        names += ["action_family"] if self._studied(wildcards) else []
        if outline.held_views:
            names = ["qualitative", *names]
            names += ["ablation_renders"] if len(roles & set(ABLATION)) > 2 else []
            names += ["capacity"] if "capacity" in roles else []
        return names

    def figure_inputs(self, wildcards) -> list[str]:
        """For `input:` of one figure."""
        if wildcards.figure not in (known := self.figures(wildcards)):
            raise UserError(f"this build has no figure {wildcards.figure!r}{nearest(wildcards.figure, known)}")
        outline, dataset, method = self.outline(wildcards), wildcards.dataset, self.method(wildcards)
        scenes = [{"dataset": dataset, "scene": scene} for scene in outline.scenes]
        if wildcards.figure == "training":
            return [at("training", **scene, variant=method) for scene in scenes]
        if wildcards.figure == "mcf":
            return []
        if wildcards.figure == "action_family":
            row, settings = self.plan.row(method), self.plan.row_settings(dataset, method)
            front = self.plan.front_name(dataset, row, settings)
            files = [at("developed", **scene, variant=method) for scene in scenes]
            files += [at("views", **scene, front=front) for scene in scenes]
            return [self._study(wildcards, "family"), *files]
        if wildcards.figure in ("qualitative", "ablation_renders"):
            wanted = [name for role in ("rgb_base", *ABLATION) for name in outline.of_role(role)]
            wanted += [name for name in compared(outline) if name not in wanted]
            files = [at(part, **scene) for scene in scenes for part in ("source", "held", "cameras")]
            files += [at("renders", **scene, variant=name) for scene in scenes for name in wanted]
            return files + self.scores(wildcards)
        return self.scores(wildcards) or [at("gaussians", **scene, variant=method) for scene in scenes]

    def report_inputs(self, wildcards) -> list[str]:
        """For `input:` of the report: everything it shows, so that it is made last."""
        outline, dataset, method = self.outline(wildcards), wildcards.dataset, self.method(wildcards)
        files = []
        for scene in outline.scenes:
            one = {"dataset": dataset, "scene": scene}
            files += [at("source", **one), at("renders_source", **one, variant=method)]
            for row in outline.opening("smoke")[:1]:
                settings = self.plan.row_settings(dataset, row)
                version = self.plan.version(dataset, "smoke", settings)
                files += [at("renders_source", **one, variant=row), at("smoke_figure", **one, version=version)]
            files += [at("view", **one)] if outline.viewer else []
            files += [at("view_of", **one, variant=name) for name in self.other_views(outline)]
            files += [at("developed_sheet", **one, variant=method), at("training", **one, variant=method)]
            files += [at("held", **one), *self.strip_inputs(outline, one)] if outline.held_views else []
        files += [at("figure", dataset=dataset, figure=name, format="png") for name in self.figures(wildcards)]
        if self._studied(wildcards):
            files += [self._study(wildcards, study, file) for study in STUDIES for file in ("figure.png", "result.txt")]
        if recipe := self._recipe(wildcards):
            settings = self.plan.row_settings(dataset, method)
            name = self.plan.controller.name(dataset, outline.scenes[0], settings)
            files.append(at("gallery", dataset=dataset, recipe=recipe))
            files.append(at("controller_figure", dataset=dataset, controller=name))
            if self._studied(wildcards):
                files += [self._study(wildcards, "inverse", file) for file in ("figure.png", "result.txt")]
        return files + self.tables(dataset) + self.scores(wildcards)

    def strip_inputs(self, outline: Outline, scene: dict[str, str]) -> list[str]:
        """Renders at held poses of every method, and those through a medium."""
        names = compared(outline)
        through = [name for name in names if self.plan.row(name).model.medium]
        return [at("renders", **scene, variant=name) for name in names] + [
            at("renders_medium", **scene, variant=name) for name in through
        ]

    def other_views(self, outline: Outline) -> list[str]:
        """Rows with a 3D view of their own beside the method's: the other methods that have Gaussians."""
        names = [name for name in compared(outline) if name != outline.method] if outline.viewer else []
        return [name for name in names if not self.plan.row(name).model.whole_job]

    def view_title(self, wildcards) -> str:
        return f"{wildcards.scene}: {self.plan.row(wildcards.variant).title}"

    def view_model(self, wildcards) -> str:
        return at("gaussians", dataset=wildcards.dataset, scene=wildcards.scene, variant=self.method(wildcards))
