"""What rules/analysis.smk asks: every scene's files, and the same as repeated options."""

from collections.abc import Callable

from fujinsplat.workflow import RESULTS, Plan, repeated

PARTS = {
    "source": "capture/{scene}/source",
    "clean": "capture/{scene}/clean",
    "base": "base/{scene}.safetensors",
    "actions": "actions/{scene}.safetensors",
}
STUDIES = ("rank_one", "base_fidelity", "observability", "family")


class AnalysisPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def every(self, part: str) -> Callable:
        """For `input:`: one part of every scene of the dataset."""

        def files(wildcards) -> list[str]:
            scenes = self.plan.scenes_of(wildcards.dataset)
            return [
                f"{RESULTS.format(dataset=wildcards.dataset)}/{PARTS[part].format(scene=scene)}" for scene in scenes
            ]

        return files

    def options(self, *parts: str) -> Callable:
        """For `params:`: `--part file` for every scene and each of `parts`."""
        return lambda wildcards: [word for part in parts for word in repeated(f"--{part}", self.every(part)(wildcards))]
