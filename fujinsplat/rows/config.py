"""config.yaml: datasets, rows, groups and settings, checked as a whole."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import Checked, Count, StageSettings, setting
from fujinsplat.core.validation import checked, nearest
from fujinsplat.evaluate.paper import line_names
from fujinsplat.rows.names import name_error, row_error, twice
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import RecipeName, Row, RowSpec, compose, laid_over, recipe_overlay

MOST_SEEDS = 100  # each is a whole training of every scene, and jobs are planned one by one


class Dataset(Checked):
    """Where pictures come from."""

    root: str = setting(..., "folder with one folder per scene")
    scenes: Annotated[list[str], Field(min_length=1)] = setting(..., "scene folders, in table order")
    made_by_demo: bool = setting(False, "the workflow makes this dataset with `fujinsplat demo`")
    external: str | None = setting(None, "folder of smoke-free RAW captures for the synthesis stage")
    clean_twins: bool = setting(True, "source views have clean twins (val/)")
    held_views: bool = setting(True, "there are held views to score against (test/)")
    excluded_from_seven: str | None = setting(None, "scene left out of the seven-scene mean [supp. H]")
    settings: dict[str, dict[str, Any]] = setting({}, "overlay on the global settings, for this dataset only")


class Config(Checked):
    """config.yaml."""

    dataset: str = setting("demo", "which block of `datasets` plain `snakemake` builds")
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "auto: CUDA where torch sees it")
    arithmetic: Literal["fast", "portable"] = setting(
        "fast", "portable: numbers do not depend on how wide the CPU's vectors are; up to a tenth slower (README)"
    )
    datasets: Annotated[dict[str, Dataset], Field(min_length=1)] = setting(..., "one block per dataset")
    variants: Annotated[dict[str, RowSpec], Field(min_length=1)] = setting(..., "one row per variant")
    groups: dict[str, list[str]] = setting({}, "named lists of variants; `all` is every variant")
    keep_old: bool = setting(False, "results made by an older version of the code are kept as they are")
    build: str = setting("all", "the group (or single variant) that plain `snakemake` builds")
    scenes: list[str] | None = setting(None, "restrict the build to these scenes of the dataset")
    seeds: Count | dict[str, Count] = setting(
        1, "seeds that rows are trained with, for all or by row; above 1 the tables show mean and deviation"
    )
    recipe: RecipeName = setting("ours", "paper: every row has the published recipe; `settings` come on top of it")
    settings: AllSettings = setting(AllSettings(), "what differs from the defaults, by stage and part")

    @model_validator(mode="after")
    def _names(self) -> "Config":
        for sentence in self._bad_names():
            raise ValueError(sentence)
        if self.dataset not in self.datasets:
            raise ValueError(
                f"dataset: {self.dataset!r} has no block in datasets{nearest(self.dataset, self.datasets)}"
            )
        for group, members in self.groups.items():
            for name in members:
                if name not in self.variants:
                    raise ValueError(f"groups.{group}: no variant {name!r}{nearest(name, self.variants)}")
        buildable = ["all", *self.groups, *self.variants]
        if self.build not in buildable:
            raise ValueError(f"build: {self.build!r} is no group or variant{nearest(self.build, buildable)}")
        for name in self.seeds if isinstance(self.seeds, dict) else ():
            if name not in self.variants:
                raise ValueError(f"seeds: no variant {name!r}{nearest(name, self.variants)}")
        most = max(self.seeds.values(), default=1) if isinstance(self.seeds, dict) else self.seeds
        if most > MOST_SEEDS:
            raise ValueError(
                f"seeds: {most} trainings of one row are more than a build plans; set at most {MOST_SEEDS}"
            )
        for scene in self.scenes or []:
            known = self.datasets[self.dataset].scenes
            if scene not in known:
                raise ValueError(f"scenes: dataset {self.dataset} has no scene {scene!r}{nearest(scene, known)}")
        try:
            for name, block in self.datasets.items():
                settings = self.settings_for(name)
                for row in self.rows.values():
                    row.settings(settings)
                if block.made_by_demo and block.root != f"data/{name}":
                    raise ValueError(f"datasets.{name}.root: a dataset made by the demo lies at data/{name}")
                made = [f"data/{other}/external" for other in self.datasets if self.datasets[other].made_by_demo]
                if block.made_by_demo and block.external not in (None, *made):
                    raise ValueError(
                        f"datasets.{name}.external is {block.external}; a dataset made by the demo has its captures at "
                        f"data/{name}/external"
                    )
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    def _bad_names(self) -> Iterator[str]:
        """A sentence for every name that cannot be one."""
        for name, block in self.datasets.items():
            if error := name_error("the dataset", name, dots=True):
                yield f"datasets: {error}"
            for scene in block.scenes:
                if error := name_error("the scene", scene, dots=True):
                    yield f"datasets.{name}.scenes: {error}"
            if scene := twice(block.scenes):
                yield f"datasets.{name}.scenes names a scene twice ({scene}); remove one"
            if block.made_by_demo and "external" in block.scenes:
                yield f"datasets.{name}.scenes: 'external' is the folder of the external captures; rename the scene"
        if pair := twice(list(self.datasets)):
            yield f"datasets: {pair}; rename one"
        for name in self.variants:
            if error := row_error(name):
                yield f"variants: {error}"
        if row := twice(list(self.variants)):
            yield f"variants: {row}; rename one"
        for group, members in self.groups.items():
            if error := row_error(group):
                yield f"groups: {error.replace('the row', 'the group')}"
            if group in self.variants:
                yield f"groups: {group!r} is the name of a row, too; rename the group"
            if not members:
                yield f"groups.{group} is empty; name at least one row, or remove the group"
            if row := twice(members):
                yield f"groups.{group} names a row twice ({row}); remove one"
        if self.scenes is not None and (not self.scenes or (twice(self.scenes))):
            yield f"scenes is {self.scenes}; name each scene once and at least one, or leave it out for all of them"

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Every row, composed and checked, in table order."""
        return compose(self.variants, line_names())

    def settings_for(self, dataset: str) -> Any:
        """The global settings with the dataset's overlay on top, validated as one."""
        merged = laid_over(recipe_overlay(self.recipe), self.settings.model_dump(exclude_unset=True))
        merged = laid_over(merged, self.datasets[dataset].settings)
        return checked(AllSettings, merged, f"datasets.{dataset}.settings")

    def seeds_of(self, row: str) -> int:
        """How many seeds a row is trained with."""
        return self.seeds.get(row, 1) if isinstance(self.seeds, dict) else self.seeds

    def members(self) -> list[str]:
        """The variants that the build asks for and this machine can make, in table order."""
        return [name for name in self._asked() if name not in self.skipped]

    def _asked(self) -> list[str]:
        return list(self.variants) if self.build == "all" else self.groups.get(self.build, [self.build])

    @cached_property
    def skipped(self) -> dict[str, str]:
        """Rows of a group that need what is not on this machine (weights, somebody's program), each with the reason.

        A row that is asked for by its own name is never skipped: its job says what is missing.
        """
        if self.build in self.variants and self.build not in self.groups:
            return {}
        settings = self.settings_for(self.dataset)
        reasons = {name: self.rows[name].missing(self.rows[name].settings(settings)) for name in self._asked()}
        return {name: reason for name, reason in reasons.items() if reason}


def schema() -> str:
    """The JSON schema of config.yaml, for editors: settings of stages in full, those of parts as blocks of any content.

    A part's settings are checked against its own model when the config is read; so a new part changes no schema.
    """
    made = Config.model_json_schema()
    blocks = made["$defs"]["AllSettings"]
    for name in set(AllSettings.model_fields) - set(StageSettings.model_fields):
        made["$defs"].pop(blocks["properties"].pop(name)["$ref"].rsplit("/", 1)[1])
    blocks["additionalProperties"] = {"type": "object"}
    made["properties"]["settings"].pop("default")
    return json.dumps(made, indent=1, sort_keys=True) + "\n"
