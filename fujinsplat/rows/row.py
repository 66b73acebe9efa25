"""A row of the tables: a composition of one part of each kind, with settings of its own where it has some.

In config.yaml a part is a name, `{name: {setting: value}}`, or `{name: value}` where the part has one main setting.
`like:` takes another row's parts and settings; titles and links to the paper are a row's own.
"""

from dataclasses import dataclass
from typing import Any, Literal

from fujinsplat.core.errors import UserError
from fujinsplat.core.parts import Correction, Front, Model, Part, Reconcile
from fujinsplat.core.settings import Checked, setting
from fujinsplat.core.validation import checked, nearest
from fujinsplat.rows.artefacts import WHOLE_BLOCKS, WHOLE_SETTINGS, differences, part_blocks, supervision, version_name
from fujinsplat.rows.registries import KINDS, AllSettings

PartSpec = str | dict[str, Any]
RecipeName = Literal["ours", "paper"]
DEFAULTS = {"front": "base", "correction": "none", "reconcile": "none", "model": "gaussians"}


class RowSpec(Checked):
    """One row of the tables as config.yaml writes it."""

    title: str | None = setting(None, "name in tables; none: the row's key")
    like: str | None = setting(None, "a row whose parts and settings it takes, where it names none itself")
    front: PartSpec | None = setting(None, "the pictures it starts from")
    correction: PartSpec | None = setting(None, "a colour action per view")
    reconcile: PartSpec | None = setting(None, "what makes the views agree")
    model: PartSpec | None = setting(None, "what is optimised")
    recipe: RecipeName | None = setting(
        None, "paper: every setting that we chose otherwise has the published value; `settings` come on top of it"
    )
    settings: dict[str, dict[str, Any]] = setting({}, "overlay on the stages' settings, for this row alone")
    paper: str | None = setting(None, "the published line it is compared with")


@dataclass(frozen=True)
class Row:
    """A checked composition. `overlay` holds settings by block."""

    name: str
    title: str
    paper: str | None
    front: Front
    correction: Correction
    reconcile: Reconcile
    model: Model
    overlay: dict[str, dict[str, Any]]

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.front, self.correction, self.reconcile, self.model)

    def settings(self, dataset_settings: Any) -> Any:
        """The dataset's settings with the row's own on top, validated as one."""
        if not self.overlay:
            return dataset_settings
        merged = dataset_settings.model_dump(exclude_unset=True)
        for block, values in self.overlay.items():
            merged[block] = {**merged.get(block, {}), **values}
        return checked(AllSettings, merged, f"variants.{self.name}.settings")

    def opens(self, settings: Any) -> tuple[str, ...]:
        """Every artefact that its parts open."""
        needs = (need for part in self.parts for need in part.opens(settings))
        return tuple(dict.fromkeys((*needs, *self.front.trains_on(settings))))

    def blocks(self, settings: Any) -> set[str]:
        """The blocks of settings that its result depends on."""
        return set().union(*(part_blocks(part, settings) for part in self.parts))

    def marks(self, settings: Any) -> frozenset[str]:
        return frozenset().union(*(part.marks(settings) for part in self.parts))

    def missing(self, settings: Any) -> str | None:
        """Why it cannot be built on this machine, in one sentence; None when it can."""
        return next((reason for part in self.parts if (reason := part.missing(settings))), None)

    def supervision(self, settings: Any) -> dict[str, str]:
        return supervision(self.opens(settings), settings)

    def oracle(self, settings: Any) -> bool:
        """Whether it uses clean twins of the views it is trained on: a reference, never ranked."""
        return self.supervision(settings).get("clean") == "read"


def recipe_overlay(recipe: RecipeName | None) -> dict[str, dict[str, Any]]:
    """What a recipe sets, by block: for `paper` the published value of every setting whose default is another one.

    Settings of ours that equal the paper's stay out of it, so that a dataset may scale them (the demo's shorter runs).
    """
    if recipe != "paper":
        return {}
    blocks = {name: type(getattr(AllSettings(), name)).chosen() for name in AllSettings.model_fields}
    return {name: values for name, values in blocks.items() if values}


def reseeded(settings: Any, repeat: int) -> Any:
    """The settings of a row's further seeds (`repeat` counts from 1): all that the row itself trains starts elsewhere.

    Bases and synthetic observations stay: they are the same data for every seed.
    """
    if repeat == 1:
        return settings
    blocks = {name: getattr(settings, name) for name in ("controller", "splat")}
    return settings.model_copy(
        update={name: block.model_copy(update={"seed": block.seed + repeat - 1}) for name, block in blocks.items()}
    )


def laid_over(below: dict[str, dict[str, Any]], above: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Two overlays as one."""
    return {block: {**below.get(block, {}), **above.get(block, {})} for block in {**below, **above}}


def front_name(row: Row, settings: Any, usual: Any) -> str:
    """The file of a row's front: its part's name, and what the row sets otherwise than the dataset (`usual`)."""
    changed = differences(settings, usual, part_blocks(row.front, settings))
    return "-".join([row.front.name, *([version_name(changed)] if changed else [])])


def compose(specs: dict[str, RowSpec], lines: set[str]) -> dict[str, Row]:
    """All rows of a config; `lines` are the published lines that `paper:` may name."""
    return {name: _row(name, _inherited(name, specs, ()), lines) for name in specs}


def _inherited(name: str, specs: dict[str, RowSpec], behind: tuple[str, ...]) -> RowSpec:
    spec = specs[name]
    if spec.like is None:
        return spec
    chain = (*behind, name)
    if spec.like not in specs:
        raise UserError(f"variants.{name}.like: there is no row {spec.like!r}{nearest(spec.like, specs)}")
    if spec.like in chain:
        raise UserError(f"variants.{name}.like goes in a circle: {' → '.join((*chain, spec.like))}")
    above = _inherited(spec.like, specs, chain)
    parts = {kind: getattr(spec, kind) if getattr(spec, kind) is not None else getattr(above, kind) for kind in KINDS}
    settings = laid_over(above.settings, spec.settings)
    return spec.model_copy(update={**parts, "settings": settings, "recipe": spec.recipe or above.recipe})


def _row(name: str, spec: RowSpec, lines: set[str]) -> Row:
    where = f"variants.{name}"
    overlay = {block: dict(values) for block, values in spec.settings.items()}
    parts: dict[str, Any] = {}
    for kind, registry in KINDS.items():
        given = getattr(spec, kind)
        part, own = _part(given if given is not None else DEFAULTS[kind], registry, f"{where}.{kind}")
        parts[kind] = part
        if own:
            overlay[part.name] = {**overlay.get(part.name, {}), **own}
    for block, values in overlay.items():
        whole = WHOLE_SETTINGS.get(block, set()) & set(values)
        if block in WHOLE_BLOCKS or whole:
            what = block if block in WHOLE_BLOCKS else f"{block}.{sorted(whole)[0]}"
            raise UserError(
                f"{where}.settings.{what} holds for a whole dataset, not for one row; set it there, or in settings"
            )
    overlay = laid_over(recipe_overlay(spec.recipe), overlay)
    if spec.paper is not None and spec.paper not in lines:
        raise UserError(f"{where}.paper: the paper has no line {spec.paper!r}{nearest(spec.paper, sorted(lines))}")
    row = Row(name, spec.title or name, spec.paper, **parts, overlay=overlay)
    _possible(row, where)
    return row


def _part(given: PartSpec, registry: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """The part and what is set of it."""
    if isinstance(given, dict):
        if len(given) != 1:
            raise UserError(f"{where} names {len(given)} parts ({', '.join(given) or 'none'}); name one")
        ((name, own),) = given.items()
    else:
        name, own = given, None
    if name not in registry:
        raise UserError(f"{where}: there is no {registry.kind} {name!r}{nearest(name, registry.names())}")
    part = registry[name]
    if own is None:
        return part, {}
    if not isinstance(own, dict):
        if part.main is None:
            raise UserError(f"{where}.{name} is {own!r}; write {{{name}: {{setting: value}}}}, or {name} alone")
        own = {part.main: own}
    unknown = [key for key in own if key not in part.Settings.model_fields]
    if unknown:
        close = nearest(unknown[0], part.Settings.model_fields)
        raise UserError(f"{where}.{name}.{unknown[0]} is not a setting of the {registry.kind} {name}{close}")
    checked(part.Settings, own, f"{where}.{name}")
    return part, own


def _possible(row: Row, where: str) -> None:
    """Contradictions between parts, each in one sentence."""
    if row.reconcile.own_actions and row.correction.gives != "own":
        raise UserError(
            f"{where}: reconcile {row.reconcile.name} needs an action per view and correction {row.correction.name} "
            "gives none; choose correction: controller, or reconcile: none"
        )
    if row.front.light is not None and row.correction.gives != "none":
        raise UserError(
            f"{where}: front {row.front.name} gives linear light, and correction {row.correction.name} acts on encoded "
            "pictures; choose correction: none, or another front"
        )
