"""What a part is: a named piece that rows of the tables are composed of.

A part is one object in one module. Its kind's registry (a `Registry` in the stage that runs it) lists it in one line;
everything else follows: rule inputs, supervision and the oracle mark from `needs`, job parameters from `Settings`.
Nothing here imports what a part works with: parts are read while the workflow is planned.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from fujinsplat.core import settings as blocks
from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import nearest


class NoSettings(blocks.Settings):
    """Of a part that has nothing to set."""


def nothing(_settings: Any) -> frozenset[str]:
    return frozenset()


def points_of(settings: Any) -> str:
    """The artefact that a row's points come from: the dataset's, or those found in the smoky views themselves."""
    return "view_points" if settings.splat.points == "views" else "points"


def never(_settings: Any) -> None:
    """It runs anywhere."""


def no_files(_settings: Any, _scene: str) -> list[Path]:
    return []


def as_given(settings: Any, _own: Any) -> Any:
    return settings


@dataclass(frozen=True, kw_only=True)
class Part:
    """`run` is its one function. `needs`: the artefacts it opens, or a function of the settings that says which.

    `stages`: blocks of settings it reads besides its own. `Settings` is its own block, named as the part; what `name`
    stands for in the paper, or where it comes from, is said by the docstring of its module.
    """

    name: str
    run: Callable[..., Any]
    needs: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    stages: tuple[str, ...] = ()
    Settings: type[blocks.Settings] = NoSettings
    main: str | None = None  # the setting that `{part: value}` means, where one stands for all
    missing: Callable[[Any], str | None] = never  # of its settings: why it cannot run on this machine, if so
    # of its settings and a scene: files of the user's that it reads; changed, they are a reason to run again
    files: Callable[[Any, str], list[Path]] = no_files
    marks: Callable[[Any], frozenset[str]] = nothing  # of raw, curve, coupling, delta: the paper's ablation columns

    def opens(self, settings: Any) -> tuple[str, ...]:
        """Names of the artefacts it opens under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs

    @property
    def about(self) -> str:
        """The docstring of the module it stands in."""
        return sys.modules[self.run.__module__].__doc__ or ""

    @property
    def has_settings(self) -> bool:
        return self.Settings is not NoSettings


@dataclass(frozen=True, kw_only=True)
class Front(Part):
    """The pictures a row starts from: `run(inputs, settings, device) -> Pictures`.

    Rows are trained on these pictures, developed with each view's action, unless the front has a `light`: then on
    linear light that it holds while training runs, `light(inputs, cameras, xyz, settings, device)` (see
    `fujinsplat.splat.targets.Light`), made of what `trains_on` names.
    """

    light: Callable[..., Any] | None = None
    trains_on: Callable[[Any], tuple[str, ...]] = lambda settings: ()


@dataclass(frozen=True, kw_only=True)
class Correction(Part):
    """A colour action per view: `run(inputs, views, settings, device) -> actions [V, P]`.

    `gives` says what the actions are: `none` (identity), `shared` (one for the scene), `own` (each view its own).
    """

    gives: str = "none"


@dataclass(frozen=True, kw_only=True)
class Reconcile(Part):
    """What makes the views agree, inside training: `run(actions, settings, schedule) -> object or None`."""

    own_actions: bool = False  # it reconciles predictions of single views, so the correction must give them


@dataclass(frozen=True, kw_only=True)
class Model(Part):
    """What is optimised: `run(scene, settings, own) -> object` that the trainer renders and updates.

    `budget`: the stage's settings as this model takes them, from those and its own: a published method has a number of
    iterations of its own. `medium`: it renders a second picture, through what lies between scene and camera.
    `whole_job`: there is nothing to train; `run(inputs, outputs, own)` does all of the job itself.
    """

    budget: Callable[[Any, Any], Any] = as_given
    medium: bool = False
    whole_job: bool = False


P = TypeVar("P", bound=Part)


class Registry(Generic[P]):
    """The parts of one kind, by name."""

    def __init__(self, kind: str, what: str, *parts: P):
        self.kind, self.what = kind, what
        self._parts = {part.name: part for part in parts}

    def __getitem__(self, name: str) -> P:
        if name not in self._parts:
            raise UserError(f"there is no {self.kind} {name!r}{nearest(name, self._parts)}")
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[P]:
        return iter(self._parts.values())

    def names(self) -> Iterable[str]:
        return self._parts.keys()
