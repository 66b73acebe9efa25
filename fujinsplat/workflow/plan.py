"""The configured build: datasets, scenes, rows, their settings and their files."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.parts import Front
from fujinsplat.core.progress import say
from fujinsplat.core.runtime import ARITHMETIC
from fujinsplat.core.validation import checked, nearest
from fujinsplat.evaluate.outline import REPEAT
from fujinsplat.paths import RESULTS, at
from fujinsplat.rows.artefacts import blocks_of, differences, version_name
from fujinsplat.rows.config import Config
from fujinsplat.rows.row import Row, front_name, reseeded

PLANNED = "FUJINSPLAT_CONDA"  # in the environment of jobs: for what `auto` stood where the build was planned
USUAL = "default"  # the recipe of the dataset's own settings


def repeated(option: str, paths: list[str]) -> list[str]:
    """For `params:`: the same command-line option once for each path."""
    return [word for path in paths for word in (option, path)]


def split_repeat(variant: str) -> tuple[str, int]:
    """`name@2` is the second seed of variant `name`; without a number it is the first."""
    name, _, repeat = variant.partition(REPEAT)
    return name, int(repeat) if repeat.isdigit() else 1


def compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class Plan:
    """`plan = Plan.load(config)` in the Snakefile."""

    def __init__(self, config: dict[str, Any]):
        from fujinsplat.workflow.actions import ActionsPlan
        from fujinsplat.workflow.analysis import AnalysisPlan
        from fujinsplat.workflow.capture import CapturePlan
        from fujinsplat.workflow.controller import ControllerPlan
        from fujinsplat.workflow.demo import DemoPlan
        from fujinsplat.workflow.develop import DevelopPlan
        from fujinsplat.workflow.evaluate import EvaluationPlan
        from fujinsplat.workflow.export import ExportPlan
        from fujinsplat.workflow.guard import GuardPlan
        from fujinsplat.workflow.smoke import SmokePlan
        from fujinsplat.workflow.splat import SplatPlan
        from fujinsplat.workflow.synthesis import SynthesisPlan
        from fujinsplat.workflow.views import ViewsPlan

        self.config = checked(Config, config, "")
        self.dataset = self.config.dataset
        self.variants = self.config.members()
        self.demo = DemoPlan(self)
        self.capture = CapturePlan(self)
        self.actions = ActionsPlan(self)
        self.smoke = SmokePlan(self)
        self.synthesis = SynthesisPlan(self)
        self.controller = ControllerPlan(self)
        self.views = ViewsPlan(self)
        self.develop = DevelopPlan(self)
        self.splat = SplatPlan(self)
        self.export = ExportPlan(self)
        self.evaluate = EvaluationPlan(self)
        self.analysis = AnalysisPlan(self)
        self.guard = GuardPlan(self)

    @classmethod
    def load(cls, config: dict[str, Any]) -> "Plan":
        """For the Snakefile: a mistake in config.yaml or in a target stops before any job, as a sentence."""
        from fujinsplat.compat.snakemake_errors import stop
        from fujinsplat.compat.snakemake_lock import explain_lock, no_room
        from fujinsplat.compat.snakemake_rules import ignore_changed_rules
        from fujinsplat.workflow.targets import check_targets

        try:
            plan = cls(config)
        except UserError as error:
            raise stop(f"config.yaml (or --config): {error}") from None
        try:
            # Snakemake itself knows its targets only after the rules are read
            check_targets(plan, [word for word in sys.argv[1:] if word.startswith("results/")])
        except UserError as error:
            raise stop(str(error)) from None
        if told := no_room(sys.argv[1:]):
            raise stop(told)
        if plan.config.keep_old:
            ignore_changed_rules()
        plan.tell_skipped()
        if told := explain_lock(sys.argv[1:]):
            say(told)
        return plan

    def sweep(self) -> None:
        """For `onstart:`: what killed jobs have left unfinished goes, as far as nobody works on it."""
        from fujinsplat.core.claims import sweep

        folders = [
            os.path.dirname(RESULTS),
            *(block.root for block in self.config.datasets.values() if block.made_by_demo),
        ]
        if count := sum(sweep(Path(folder)) for folder in folders):
            say(f"{count} unfinished files of killed jobs removed")

    def tell_skipped(self) -> None:
        """Which rows of the build are left out, and why; jobs of a build plan again and say nothing."""
        if "--mode" in sys.argv:
            return
        for name, reason in self.config.skipped.items():
            say(f"skipped {name}: {reason}")

    def deliverables(self) -> list[str]:
        """What plain `snakemake` builds: the splats, and the report with all that it shows."""
        scenes = self.scenes_of(self.dataset)
        splats = [at("gaussians", dataset=self.dataset, scene=s, variant=v) for s in scenes for v in self.variants]
        return [at("report", dataset=self.dataset), *splats]

    # how jobs run

    def shell_prefix(self, workflow) -> str:
        """Makes `fujinsplat` in a rule this checkout's, run by the job's own interpreter.

        That is the interpreter that runs Snakemake, so that an environment need not be activated, or the conda
        environment's when Snakemake deploys one.
        """
        methods = {str(method) for method in workflow.deployment_settings.deployment_method}
        python = "python" if any("conda" in method.lower() for method in methods) else shlex.quote(sys.executable)
        path = shlex.quote(str(workflow.basedir))
        prefix = f'fujinsplat() {{ PYTHONPATH={path}"${{PYTHONPATH:+:$PYTHONPATH}}" {python} -m fujinsplat "$@"; }}; '
        return prefix.replace("{", "{{").replace("}", "}}")  # Snakemake formats the prefix once more

    def job(self, command: str) -> str:
        """For `shell:`: a command of ours with what every job has: its threads, its device, where its words go."""
        device = f"FUJINSPLAT_DEVICE={self.device}; [ {{resources.gpu}} != 0 ] || FUJINSPLAT_DEVICE=cpu"
        # the job's outputs and boundary (core/jobs.py), its Snakemake, its log, and a way past a full log
        about = "FUJINSPLAT_JOB={params.job:q} FUJINSPLAT_PARENT=$PPID FUJINSPLAT_LOG={log:q} FUJINSPLAT_TERMINAL=3"
        if self.config.arithmetic != "fast":
            about += f" {ARITHMETIC}={self.config.arithmetic}"
        return f"export {about} FUJINSPLAT_THREADS={{threads}} {device}; fujinsplat {command} 3>&2 > {{log:q}} 2>&1"

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def gpu(self) -> int:
        """GPUs a rule that profits from one asks for: none when the config says CPU."""
        return 0 if self.config.device == "cpu" else 1

    @property
    def gpus(self) -> int:
        """GPUs of this machine: so many of those rules run at once, each on its own. 0: no bound of this kind."""
        return gpu.count() if self.gpu else 0

    @property
    def conda(self) -> str:
        """The environment file; with `auto` that of the machine which plans, also in jobs on others."""
        planned = os.environ.get(PLANNED) if "--mode" in sys.argv else None
        auto = planned or ("cuda" if gpu.present() else "cpu")
        os.environ[PLANNED] = auto
        return f"../envs/{auto if self.config.device == 'auto' else self.config.device}.yaml"

    @staticmethod
    def grows(amount: int) -> Callable:
        """For `resources:`: memory or minutes that double at each retry, after an out-of-memory or time-limit kill."""
        return lambda wildcards, attempt: amount * 2 ** (attempt - 1)

    # datasets and scenes

    def scenes_of(self, dataset: str) -> list[str]:
        """The scenes a build of this dataset works with: every plan, every table, the population."""
        chosen = self.config.scenes if dataset == self.dataset else None
        return chosen or self.block(dataset).scenes

    def block(self, dataset: str) -> Any:
        """A dataset's block of the config."""
        datasets = self.config.datasets
        if dataset not in datasets:
            raise UserError(f"there is no dataset {dataset!r}{nearest(dataset, datasets)}")
        return datasets[dataset]

    def foreign(self, path: str) -> str:
        """A file the user names: taken as it is, never made or made again by a rule, whatever its folder."""
        return os.path.abspath(path)

    # settings

    @cache  # noqa: B019 - one plan per process
    def usual(self, dataset: str) -> Any:
        """The dataset's settings, without any row's own."""
        self.block(dataset)
        return self.config.settings_for(dataset)

    def row(self, variant: str) -> Row:
        name, _ = split_repeat(variant)
        rows = self.config.rows
        if name not in rows:
            raise UserError(f"there is no variant {name!r}{nearest(name, rows)}")
        return rows[name]

    @cache  # noqa: B019
    def row_settings(self, dataset: str, variant: str) -> Any:
        """The settings of one row; `{variant}@2` has the next seeds."""
        return reseeded(self.row(variant).settings(self.usual(dataset)), split_repeat(variant)[1])

    def every_settings(self, dataset: str) -> Iterator[Any]:
        """The dataset's own settings, then those of each row of the config."""
        yield self.usual(dataset)
        for name in self.config.rows:
            yield self.row_settings(dataset, name)

    def settings(self, *blocks: str, of: str | None = None) -> Callable:
        """For `params:`: whole blocks as JSON, so that a changed default runs again what it affects.

        `of` names the artefact whose `{version}` says which settings; otherwise the row's, or the dataset's.
        """

        def effective(wildcards) -> str:
            settings = self.of_version(wildcards.dataset, of, wildcards.version) if of else self.of_job(wildcards)
            dumped = {block: getattr(settings, block).model_dump(mode="json") for block in blocks}
            return compact(dumped[blocks[0]] if len(blocks) == 1 else dumped)

        return effective

    def of_job(self, wildcards) -> Any:
        variant = wildcards.get("variant")
        return self.row_settings(wildcards.dataset, variant) if variant else self.usual(wildcards.dataset)

    # artefacts that exist in several versions

    def version(self, dataset: str, artefact: str, settings: Any) -> str:
        """What of the settings an artefact depends on differs from the dataset's: `""`, or a name and a slash."""
        changed = differences(settings, self.usual(dataset), blocks_of((artefact,), settings))
        return f"{version_name(changed)}/" if changed else ""

    def of_version(self, dataset: str, artefact: str, version: str) -> Any:
        """The settings of a version of an artefact."""
        for settings in self.every_settings(dataset):
            if self.version(dataset, artefact, settings) == version:
                return settings
        raise UserError(f"no row has its {artefact} in {version!r}; ask for that of a row in config.yaml")

    def locate(self, need: str, dataset: str, scene: str, settings: Any) -> str:
        """The file or folder of an artefact for one scene under these settings."""
        if need == "controller":
            return self.controller.path(dataset, scene, settings)
        if need == "population":
            return self.actions.population(dataset, settings)
        return at(need, dataset=dataset, scene=scene, version=self.version(dataset, need, settings))

    def versioned(self, need: str, of: str) -> Callable:
        """For `input:` of a rule with `{version}` (of artefact `of`): the file `need` under the same settings."""
        return lambda w: self.locate(need, w.dataset, w.scene, self.of_version(w.dataset, of, w.version))

    # fronts

    def front_name(self, dataset: str, row: Row, settings: Any) -> str:
        """The file of a row's front: its part's name, and what the row sets otherwise than the dataset."""
        return front_name(row, settings, self.usual(dataset))

    @cache  # noqa: B019
    def fronts(self, dataset: str) -> dict[str, tuple[Front, Any]]:
        """Every front that rows of the config ask for, with its settings, by name."""
        found: dict[str, tuple[Front, Any]] = {}
        for name, row in self.config.rows.items():
            settings = self.row_settings(dataset, name)
            found.setdefault(self.front_name(dataset, row, settings), (row.front, settings))
        return found

    # names in targets

    @cached_property
    def constraints(self) -> dict[str, str]:
        """For `wildcard_constraints:`."""
        return {
            "dataset": "[^/]+",
            "scene": "[^/]+",
            "variant": "[^/.]+",
            "front": "[^/]+",
            "version": "(?:[^/]+/)?",
            "recipe": "(?!captures/)[^/]+",
            "controller": "[^/]+",
            "shard": r"\d{4}",
            "table": "[a-z_]+",
            "figure": "[a-z_]+",
        }


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def pattern_of(names: list[str]) -> str:
    """A regular expression of exactly these names."""
    return "|".join(map(re.escape, names)) or "(?!)"
