"""What rules/capture.smk and rules/isp.smk ask: the files of a scene."""

from collections.abc import Callable
from pathlib import Path

from fujinsplat.core.errors import UserError
from fujinsplat.paths import at
from fujinsplat.workflow.plan import Plan

# what a dataset may say it has none of, and how
OPTIONAL = {"clean": ("clean_twins", "clean twins"), "held": ("held_views", "held views")}


class CapturePlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def root(self, wildcards) -> str:
        return self.plan.block(wildcards.dataset).root

    def files(self, *parts: str) -> Callable:
        """For `input:`: the folder that a rule makes, or the files that the user's folder holds."""

        def found(wildcards) -> list[str]:
            folder = f"{self.root(wildcards)}/{wildcards.scene}"
            for part in parts:
                self._refuse_absent(wildcards.dataset, part)
            if self.plan.demo.makes(folder):
                return [folder]
            from fujinsplat.capture.layout import scene_files

            given = self._given(wildcards)
            wanted = tuple(part for part in parts if given.get(part, True))
            return plain(scene_files(Path(self.root(wildcards)), wildcards.scene, wanted))

        return found

    def _given(self, wildcards) -> dict[str, bool]:
        """Whether the scene brings poses and points of its own."""
        folder = f"{self.root(wildcards)}/{wildcards.scene}"
        if self.plan.demo.makes(folder):
            return {"poses": True, "points": True}
        from fujinsplat.capture.layout import find_scene, has_points, has_poses

        scene = find_scene(self.root(wildcards), wildcards.scene)
        return {"poses": has_poses(scene), "points": has_points(scene)}

    def found(self, wildcards) -> list[str]:
        """For `input:`: what structure from motion finds, for a scene that does not bring it."""
        if all(self._given(wildcards).values()):
            return []
        return [at("poses", dataset=wildcards.dataset, scene=wildcards.scene)]

    def found_option(self, wildcards) -> list[str]:
        """For `params:`: the same as an option of the command."""
        return [word for path in self.found(wildcards) for word in ("--found", path)]

    def _refuse_absent(self, dataset: str, part: str) -> None:
        """A row or table that needs what the dataset says it has none of."""
        if part not in OPTIONAL:
            return
        switch, what = OPTIONAL[part]
        if getattr(self.plan.block(dataset), switch):
            return
        asked = {name: self.plan.row_settings(dataset, name) for name in self.plan.variants}
        rows = [name for name, settings in asked.items() if part in self.plan.row(name).supervision(settings)]
        build = f"the rows {', '.join(rows)} need" if rows else "what is asked for needs"
        if part == "held":
            remedy = "ask for splats or the report instead of scores"
        elif rows and all(self.plan.row(name).oracle(asked[name]) for name in rows):
            remedy = "build other rows"
        else:
            remedy = (
                "build other rows, or name a controller (settings.controller.checkpoint) or a population "
                "(settings.actions.population) that was made elsewhere"
            )
        raise UserError(f"dataset {dataset} has {switch}: false, and {build} {what}; {remedy}")

    def base_checkpoint(self, wildcards) -> list[str]:
        """For `input:` of the isp rule: the imported base that replaces calibration, where the settings name one."""
        checkpoint = self.plan.of_version(wildcards.dataset, "base", wildcards.version).isp.checkpoint
        return [self.plan.foreign(checkpoint.replace("{scene}", wildcards.scene))] if checkpoint else []


def plain(files: list[str]) -> list[str]:
    """Snakemake takes `{word}` in a file's name for a wildcard and has no way to write a brace: the folder around such
    a file stands for it, which changes when files come or go."""
    found = []
    for file in files:
        path = Path(file)
        while "{" in str(path) or "}" in str(path):
            path = path.parent
        found.append(str(path))
    return list(dict.fromkeys(found))
