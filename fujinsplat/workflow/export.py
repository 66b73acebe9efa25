"""What rules/export.smk asks: the files of one row of one scene that leave the house."""

from pathlib import Path

from fujinsplat.capture.layout import LEFT_OUT
from fujinsplat.paths import at
from fujinsplat.workflow.plan import Plan


class ExportPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def views(self, wildcards) -> str:
        """For `input:`: the pictures of the row's front."""
        return self.plan.views.path(wildcards.dataset, wildcards.scene, wildcards.variant)

    def light(self, wildcards) -> list[str]:
        """For `input:`: what linear light is made from, where TIFF files are wanted: RAW and smoke, or nothing more."""
        return [path for option, path in self._light(wildcards) if option]

    def light_options(self, wildcards) -> list[str]:
        """For `params:`."""
        tiff = "--tiff" if self.plan.usual(wildcards.dataset).export.tiff else "--no-tiff"
        return [tiff, *(word for pair in self._light(wildcards) for word in pair)]

    def _light(self, wildcards) -> list[tuple[str, str]]:
        smoke = self._smoke(wildcards)
        if not smoke or not self.plan.usual(wildcards.dataset).export.tiff:
            return []
        return [("--source", at("source", dataset=wildcards.dataset, scene=wildcards.scene)), ("--smoke", smoke)]

    def _smoke(self, wildcards) -> str | None:
        """The scene's smoke, for rows that estimate it."""
        settings = self.plan.row_settings(wildcards.dataset, wildcards.variant)
        if "smoke" not in self.plan.row(wildcards.variant).opens(settings):
            return None
        return self.plan.locate("smoke", wildcards.dataset, wildcards.scene, settings)

    def page_inputs(self, wildcards) -> dict[str, str]:
        """For `input: unpack(…)` of a scene's own page: what it shows, under the names of the command's options."""
        scene = {"dataset": wildcards.dataset, "scene": wildcards.scene}
        row = {**scene, "variant": wildcards.variant}
        given = {name: at(name, **scene) for name in ("source", "cameras", "points", "manifest")}
        given |= {"cleared": at("cleared", **row), "renders": at("renders_source", **row)}
        given |= {"turntable": at("turntable", **row)}
        found = self.plan.capture.found(wildcards)
        if found:
            given["poses"] = found[0]
        notes = Path(self.plan.capture.root(wildcards)) / wildcards.scene / LEFT_OUT
        if notes.is_file():
            given["notes"] = str(notes)
        smoke = self._smoke(wildcards)
        return {**given, "smoke": smoke} if smoke else given

    def page_options(self, wildcards) -> list[str]:
        """For `params:`."""
        options = [word for name, path in self.page_inputs(wildcards).items() for word in (f"--{name}", path)]
        return [*options, "--row", self.plan.row(wildcards.variant).title]

    def targets(self, dataset: str, scene: str, variant: str) -> list[str]:
        """Everything that one scene of one's own is made for."""
        row = {"dataset": dataset, "scene": scene, "variant": variant}
        names = ["scene", "cleared", "turntable", "scene_page"]
        viewer = ["view"] if self.plan.usual(dataset).report.viewer else []
        return [at(name, **row) for name in (*names, *viewer)]
