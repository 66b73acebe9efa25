"""What the rule files ask: paths, settings, scenes and variants, all derived from config.yaml.

Rule files hold no logic; they name functions of one `Plan`. Functions that take `wildcards` are returned ready for
Snakemake's `input:` and `params:`.
"""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fujinsplat.config import Config, Variant
from fujinsplat.configfile import checked, dump_differences
from fujinsplat.errors import UserError

RESULTS = "results/{dataset}"


def repeated(option: str, paths: list[str]) -> list[str]:
    """For `params:`: the same command-line option once for each path."""
    return [word for path in paths for word in (option, path)]


def split_repeat(variant: str) -> tuple[str, int]:
    """`name@2` is the second seed of variant `name`; without a number it is the first."""
    name, _, repeat = variant.partition("@")
    return name, int(repeat) if repeat.isdigit() else 1


class Plan:
    """The configured build: `plan = Plan(config)` in the Snakefile."""

    def __init__(self, config: dict[str, Any]):
        self.config = checked(Config, config, "")
        self.dataset = self.config.dataset
        self.scenes = self.config.scenes or self.config.datasets[self.dataset].scenes
        self.variants = self.config.members()
        self._stage_settings = {name: self.config.settings_for(name) for name in self.config.datasets}

    @classmethod
    def load(cls, config: dict[str, Any]) -> "Plan":
        """For the Snakefile: a mistake in config.yaml stops before any job, as a sentence instead of a traceback."""
        try:
            return cls(config)
        except UserError as error:
            from snakemake.exceptions import WorkflowError

            raise WorkflowError(f"config.yaml (or --config): {error}") from None

    def deliverables(self) -> list[str]:
        """What plain `snakemake --cores all` builds: the splats, and the report with all that it shows."""
        results = RESULTS.format(dataset=self.dataset)
        splats = [f"{results}/gaussians/{scene}/{variant}.ply" for scene in self.scenes for variant in self.variants]
        return [f"{results}/report.html", *splats]

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

    @staticmethod
    def plan_on_events_alone(workflow) -> None:
        """For `onstart:`: lift Snakemake's limit of job starts per second, where it has one.

        To keep that limit, the scheduler plans again a second after each planning, for as long as the run lasts, and
        every job that ends starts one more such chain: after 400 jobs that alone takes more than half a core. Cores,
        or `jobs` on a cluster, bound what starts anyway.
        """
        scheduler = getattr(workflow, "scheduler", None)
        if getattr(scheduler, "job_rate_limiter", None) is not None:
            scheduler.job_rate_limiter = None

    # settings

    def stage(self, dataset: str, stage: str) -> Any:
        """The settings model of one stage for one dataset."""
        return getattr(self._stage_settings[dataset], stage)

    def settings(self, stage: str) -> Callable:
        """For `params:`: what differs from the paper's values, as JSON; `{variant}@2` has the next splat seed."""

        def differences(wildcards) -> str:
            settings = self.stage(wildcards.dataset, stage)
            _, repeat = split_repeat(wildcards.get("variant", ""))
            if stage == "splat" and repeat > 1:
                settings = settings.model_copy(update={"seed": settings.seed + repeat - 1})
            return dump_differences(settings)

        return differences

    def variant(self, name: str) -> Variant:
        return self.config.variants[split_repeat(name)[0]]

    # devices and environments

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def gpu(self) -> int:
        """GPUs a rule that profits from one asks for: none when the config says CPU."""
        return 0 if self.config.device == "cpu" else 1

    @staticmethod
    def grows(amount: int) -> Callable:
        """For `resources:`: memory or minutes that double at each retry, after an out-of-memory or time-limit kill."""
        return lambda wildcards, attempt: amount * 2 ** (attempt - 1)

    @property
    def conda(self) -> str:
        return "../envs/cuda.yaml" if self.config.device == "cuda" else "../envs/cpu.yaml"

    # datasets

    @property
    def demo_datasets(self) -> str:
        """A pattern of the datasets that the demo rules make, so that they never offer to make a user's folder."""
        names = [re.escape(name) for name, block in self.config.datasets.items() if block.made_by_demo]
        return "|".join(names) or "(?!)"

    @property
    def demo_scenes(self) -> str:
        made = [block.scenes for block in self.config.datasets.values() if block.made_by_demo]
        return "|".join(re.escape(scene) for scenes in made for scene in scenes) or "(?!)"

    def scenes_of(self, dataset: str) -> list[str]:
        """The scenes a build of this dataset works with: its population is measured on these and no others."""
        return self.scenes if dataset == self.dataset else self.config.datasets[dataset].scenes

    def root(self, wildcards) -> str:
        return self.config.datasets[wildcards.dataset].root

    def scene_files(self, *parts: str) -> Callable:
        """For `input:` of the capture rules: the folder the demo rule makes, or the files the user's folder holds."""

        def files(wildcards):
            dataset = self.config.datasets[wildcards.dataset]
            if dataset.made_by_demo:
                return [f"{dataset.root}/{wildcards.scene}"]
            from fujinsplat.capture.layout import scene_files

            return scene_files(Path(dataset.root), wildcards.scene, parts)

        return files

    # isp

    def base_checkpoint(self, wildcards) -> list[str]:
        """For `input:` of the isp rule: the imported base that replaces calibration, where the settings name one."""
        checkpoint = self.stage(wildcards.dataset, "isp").checkpoint
        return [checkpoint.replace("{scene}", wildcards.scene)] if checkpoint else []

    # splat

    def delta_option(self, wildcards) -> str:
        """For `params:` of the splat rule: whether the variant reconciles its views with the delta-ISP."""
        return "--delta" if self.variant(wildcards.variant).delta else "--no-delta"
