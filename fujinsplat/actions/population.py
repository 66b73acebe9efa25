"""The correction distribution, `population.json`: what smoke did to the measured pairs, in two coordinates [supp. F].

`raw`: camera-linear RAW without white balance, the published measurement. `base`: the decoded base output `dec(B(X))`
of the smoky and the clean RAW, the coordinate in which the action works. docs/population.md describes the file.
"""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import read_json, write_json
from fujinsplat.core.validation import checked

FORMAT = "fujinsplat population 1"
Coordinate = Literal["raw", "base"]
COORDINATES: tuple[Coordinate, ...] = ("raw", "base")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Color = tuple[Positive, Positive, Positive]
Contrast = Annotated[float, Field(gt=0, le=1)]


Loaded = TypeVar("Loaded", bound=BaseModel)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fit(_Model):
    """One pair in one coordinate: `H = t J + (1 - t) pivot`, linear light."""

    t: Contrast
    pivot: Color
    clean_median: Positive  # median Rec. 709 luminance of the clean capture
    residual: Annotated[float, Field(ge=0)] = 0.0  # RMS misfit of the matched percentiles

    @property
    def level(self) -> float:
        return float(np.mean(self.pivot))

    @property
    def ratio(self) -> float:
        """Pivot level over clean median."""
        return self.level / self.clean_median

    @property
    def direction(self) -> np.ndarray:
        """The pivot normalised to mean 1, `[3]`."""
        return np.asarray(self.pivot) / self.level


class Pair(_Model):
    """One source view with its clean twin; a coordinate whose fit was degenerate is null."""

    scene: str
    view: str
    white_balance: Color  # as shot, G = 1
    raw: Fit | None = None
    base: Fit | None = None


class LeftOut(_Model):
    scene: str
    view: str
    coordinate: Coordinate
    reason: str


class ScenePairs(_Model):
    """What one scene adds to a population: `actions/{scene}.veil.json`."""

    pairs: list[Pair]
    left_out: list[LeftOut]


class Summary(_Model):
    """The pairs of one coordinate (and of one scene, inside `scenes`)."""

    pairs: Annotated[int, Field(ge=1)]
    t_min: Contrast
    t_median: Contrast
    t_max: Contrast
    clean_median: Positive  # median over pairs of the pair's clean median luminance
    pivot_ratio: Positive  # median over pairs of pivot level / clean median

    @classmethod
    def of(cls, fits: list[Fit]) -> "Summary | None":
        if not fits:
            return None
        t = [fit.t for fit in fits]
        return cls(
            pairs=len(fits),
            t_min=min(t),
            t_median=float(np.median(t)),
            t_max=max(t),
            clean_median=float(np.median([fit.clean_median for fit in fits])),
            pivot_ratio=float(np.median([fit.ratio for fit in fits])),
        )


class Scene(_Model):
    white_balance: Color
    raw: Summary | None
    base: Summary | None


class Population(_Model):
    format: Literal["fujinsplat population 1"] = FORMAT
    pairs: Annotated[list[Pair], Field(min_length=1)]
    left_out: list[LeftOut] = []
    scenes: dict[str, Scene] = {}
    white_balance: Color  # the camera's: channelwise median over the pairs
    raw: Summary | None
    base: Summary | None

    @model_validator(mode="after")
    def _summaries(self) -> "Population":
        """The summaries are stored for people to read; they must be those of the pairs."""
        for coordinate in COORDINATES:
            stored, own = getattr(self, coordinate), Summary.of(self.fits(coordinate))
            if (stored is None) != (own is None):
                raise ValueError(
                    f"{coordinate} is {'null' if stored is None else 'given'}, but its pairs say otherwise"
                )
            if (
                stored
                and own
                and not all(np.isclose(getattr(stored, k), v, rtol=1e-6) for k, v in own.model_dump().items())
            ):
                raise ValueError(
                    f"{coordinate} does not summarise the pairs; rebuild it with `fujinsplat actions population`"
                )
        if self.raw is None and self.base is None:
            raise ValueError("no pair has a fit in either coordinate")
        return self

    @classmethod
    def of(cls, pairs: list[Pair], left_out: list[LeftOut]) -> "Population":
        """The distribution of `pairs`, in whatever order they come: they are sorted by scene and view."""
        pairs = sorted((p for p in pairs if p.raw or p.base), key=lambda p: (p.scene, p.view))
        left_out = sorted(left_out, key=lambda l: (l.scene, l.view, l.coordinate))
        if not pairs:
            reasons = "; ".join(f"{l.scene}/{l.view} {l.coordinate}: {l.reason}" for l in left_out[:3])
            raise UserError(f"no pair gives a usable fit ({reasons or 'there are no pairs'}); set actions.population")

        def summary(members: list[Pair], coordinate: Coordinate) -> Summary | None:
            return Summary.of([f for p in members if (f := getattr(p, coordinate))])

        by_scene = {scene: [p for p in pairs if p.scene == scene] for scene in sorted({p.scene for p in pairs})}
        scenes = {
            scene: Scene(white_balance=_middle(members), raw=summary(members, "raw"), base=summary(members, "base"))
            for scene, members in by_scene.items()
        }
        return cls(
            pairs=pairs,
            left_out=left_out,
            scenes=scenes,
            white_balance=_middle(pairs),
            raw=summary(pairs, "raw"),
            base=summary(pairs, "base"),
        )

    def fits(self, coordinate: Coordinate) -> list[Fit]:
        """The usable fits of one coordinate, in the order of `pairs`."""
        return [fit for pair in self.pairs if (fit := getattr(pair, coordinate))]

    def summary(self, coordinate: Coordinate) -> Summary:
        """The population's numbers in one coordinate, or a UserError when no pair has any."""
        found = getattr(self, coordinate)
        if found is None:
            other = "raw" if coordinate == "base" else "base"
            raise UserError(f"the population has no {coordinate} fits; set synthesis.coordinate: {other}, or fit them")
        return found


def _middle(pairs: list[Pair]) -> Color:
    r, g, b = np.median([pair.white_balance for pair in pairs], axis=0)
    return float(r), float(g), float(b)


def load(path: Path | str) -> Population:
    """Read and validate; every mistake in a hand-written file is named by its key."""
    return _load(path, Population)


def load_pairs(path: Path | str) -> ScenePairs:
    return _load(path, ScenePairs)


def _load(path: Path | str, model: type[Loaded]) -> Loaded:
    values = read_json(path)
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a population file: it must hold one JSON object; see docs/population.md")
    try:
        return checked(model, values)
    except UserError as error:
        raise UserError(f"{path}: {error}; see docs/population.md") from None


def save(path: Path | str, population: Population | ScenePairs) -> None:
    write_json(path, population.model_dump(mode="json"))
