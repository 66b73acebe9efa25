"""What tables and report need to know about a build: plain data, made from the configuration by `fujinsplat.rows`."""

from typing import Any

from fujinsplat.core.settings import Checked, setting

REPEAT = "@"  # {variant}@2 is the second seed of {variant}


class RowFacts(Checked):
    """One row of the tables."""

    title: str = setting(..., "its name in tables")
    role: str | None = setting(None, "which of the paper's rows it is compared with")
    line: str | None = setting(None, "the published line by the paper's name")
    oracle: bool = setting(False, "uses clean twins of the views it is trained on: a reference, never ranked")
    marks: list[str] = setting([], "of raw, curve, coupling, delta: the ablation's columns")
    flow: tuple[int, int] = setting((7, 16), "couplings and knots of its colour flow")
    parts: dict[str, str] = setting({}, "front, correction, reconcile, model")
    front_file: str = setting("", "name of the file its pictures are in")
    opens: list[str] = setting([], "artefacts that its parts open")
    supervision: dict[str, str] = setting({}, "what of the dataset stands behind it: read, or through a distribution")
    seeds: int = setting(1, "seeds it is trained with")
    differences: list[tuple[str, str, str]] = setting([], "settings that are not the paper's: (setting, here, paper)")


class Outline(Checked):
    """One dataset's scenes and rows, in table order."""

    dataset: str = setting(..., "name of the dataset")
    scenes: list[str] = setting(..., "scenes, in table order")
    excluded_from_seven: str | None = setting(None, "scene left out of the second mean [supp. H]")
    rows: dict[str, RowFacts] = setting(..., "rows, in table order")
    stages: dict[str, dict[str, str]] = setting({}, "what of the dataset each stage is given")
    settings: dict[str, dict[str, Any]] = setting({}, "the settings in use, by block; none where nothing shows them")
    paper: dict[str, dict[str, Any]] = setting({}, "the paper's values of the same")
    viewer: bool = setting(True, "whether scenes have an interactive 3D view")
    held_views: bool = setting(True, "whether there is something to score against")
    clean_twins: bool = setting(True, "whether source views have clean twins")

    def title(self, name: str) -> str:
        return self.rows[name].title

    def repeats(self, name: str) -> list[str]:
        """A row under the names of its seeds: `name`, `name@2`, …"""
        return [name, *(f"{name}{REPEAT}{number}" for number in range(2, self.rows[name].seeds + 1))]

    def of_role(self, role: str) -> list[str]:
        """Every row that is compared with this line of the paper, in table order."""
        return [name for name, row in self.rows.items() if row.role == role]

    def opening(self, artefact: str) -> list[str]:
        """Rows with a part that opens this artefact, in table order."""
        return [name for name, row in self.rows.items() if artefact in row.opens]

    @property
    def oracles(self) -> list[str]:
        return [name for name, row in self.rows.items() if row.oracle]

    @property
    def own_rows(self) -> list[str]:
        """Rows that are no row of the paper's, and no oracle."""
        return [name for name, row in self.rows.items() if row.role is None and not row.oracle]

    @property
    def method(self) -> str:
        """The row whose pictures are shown: the method itself, or the build's first."""
        return next(iter(self.of_role("method")), None) or next(iter(self.rows))
