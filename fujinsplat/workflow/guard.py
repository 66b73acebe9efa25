"""What every job is told besides its work: what it makes, what it may open, and the code it was made with."""

import os
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from fujinsplat.compat.snakemake_rules import recorded_params
from fujinsplat.core.boundary import CLOSED, PARTS, Boundary, find_links
from fujinsplat.core.parts import Part
from fujinsplat.paths import RESULTS, at
from fujinsplat.workflow.plan import Plan, compact, split_repeat
from fujinsplat.workflow.stamps import stamp, stamp_of_files

FOLDER_OF = {kind: name for name, kind in PARTS.items()}


class GuardPlan:
    def __init__(self, plan: Plan):
        self.plan = plan

    def params(self, rule: Any) -> dict[str, Callable]:
        """For every rule: `job` describes it to `core/jobs.py`; `code` makes a changed module a reason to run again,
        and a changed file of the user's that a part reads."""
        command = re.search(r"\bfujinsplat ([\w-]+ [\w-]+)", rule.shellcmd or "")
        return {"job": self._job(rule.name), **({"code": self._code(rule, command[1])} if command else {})}

    def _job(self, name: str) -> Callable:
        def described(wildcards, input, output) -> str:
            checkpoints = at("checkpoints", dataset=wildcards.dataset, scene="scene", variant="variant")
            return compact(
                {
                    "name": name,
                    "outputs": list(map(str, output)),
                    "results": os.path.dirname(RESULTS),
                    "roots": self.roots,
                    "opens": sorted(self._opens(name, wildcards, [*map(str, input), *map(str, output)])),
                    "folders": [os.path.dirname(os.path.dirname(checkpoints))] if name == "splat_train" else [],
                    **({"arithmetic": arithmetic} if (arithmetic := self.plan.config.arithmetic) != "fast" else {}),
                    **({"makes_data": True} if name.startswith("demo_") else {}),
                }
            )

        return described

    @property
    def roots(self) -> list[str]:
        return sorted({block.root for block in self.plan.config.datasets.values()})

    def _opens(self, name: str, wildcards, files: list[str]) -> set[str]:
        """Folders of clean twins and held views that a rule names, or has in its inputs and outputs."""
        boundary = Boundary(name, self._real_results, self._real_roots, frozenset(), self._links)
        places = (place for path in files if (place := boundary.place_of(os.path.realpath(path))))
        found = {place.folder for place in places if place.kind in CLOSED}
        if name.startswith("demo_"):
            found |= set(files)
        if (part := name.removeprefix("capture_")) in CLOSED and name != part:
            # a folder that the demo makes is one input, whatever the rule opens of it
            found.add(f"{self.plan.capture.root(wildcards)}/{wildcards.scene}/{FOLDER_OF[part]}")
        return {os.path.relpath(path) for path in found}

    @property
    def _real_roots(self) -> tuple[str, ...]:
        return tuple(map(os.path.realpath, self.roots))

    @cached_property
    def _links(self) -> dict[str, list[str]]:
        return find_links(self._real_results, self._real_roots)

    @property
    def _real_results(self) -> str:
        return os.path.realpath(os.path.dirname(RESULTS))

    # code

    def _code(self, rule: Any, command: str) -> Callable:
        def code(wildcards) -> str:
            parts, settings = self._parts(rule.name, wildcards)
            given = "".join(stamp_of_files(part.files(settings, wildcards.scene)) for part in parts)
            if self.plan.config.keep_old:
                outputs = [str(pattern.apply_wildcards(wildcards)) for pattern in rule.output]
                made = [word for word in recorded_params(outputs) if word.startswith("code:")]
                if made:
                    return made[0].partition("+")[0] + given
            return stamp(command, tuple(part.run.__module__ for part in parts)) + given

        return code

    def _parts(self, name: str, wildcards) -> tuple[list[Part], Any]:
        """The parts that a job runs, and the settings it runs them with."""
        if name == "views_make":
            front, settings = self.plan.views.front(wildcards)
            return [front], settings
        if name == "develop_scene":
            return [self.plan.row(wildcards.variant).correction], self.plan.of_job(wildcards)
        if name == "splat_train":
            row = self.plan.row(split_repeat(wildcards.variant)[0])
            parts = [row.reconcile, row.model, *([row.front] if row.front.light else [])]
            return parts, self.plan.of_job(wildcards)
        return [], None
