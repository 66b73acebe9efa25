"""What the rule files ask: paths, settings, scenes and variants, all derived from config.yaml.

Rule files hold no logic; they name functions of one `Plan`. Functions that take `wildcards` are returned ready for
Snakemake's `input:` and `params:`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fujinsplat.config import Config, Variant
from fujinsplat.configfile import checked, dump_differences

RESULTS = "results/{dataset}"


class Plan:
    """The configured build: `plan = Plan(config)` in the Snakefile."""

    def __init__(self, config: dict[str, Any]):
        self.config = checked(Config, config, "")
        self.dataset = self.config.dataset
        self.scenes = self.config.scenes or self.config.datasets[self.dataset].scenes
        self.variants = self.config.members()
        self._stage_settings = {name: self.config.settings_for(name) for name in self.config.datasets}

    # settings

    def stage(self, dataset: str, stage: str) -> Any:
        """The settings model of one stage for one dataset."""
        return getattr(self._stage_settings[dataset], stage)

    def settings(self, stage: str) -> Callable:
        """For `params:`: what differs from the paper's values, as JSON."""
        return lambda wildcards: dump_differences(self.stage(wildcards.dataset, stage))

    def variant(self, name: str) -> Variant:
        return self.config.variants[name]

    # devices and environments

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def gpu(self) -> int:
        """GPUs a rule that profits from one asks for: none when the config says CPU."""
        return 0 if self.config.device == "cpu" else 1

    @property
    def conda(self) -> str:
        return "../envs/cuda.yaml" if self.config.device == "cuda" else "../envs/cpu.yaml"

    # datasets

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
