"""What parts may need, what each of these is made from, and which settings it depends on.

From this follow a job's inputs, the supervision of a row and its oracle mark. An artefact that depends on settings of a
row's own exists once for every such set of settings, under a version name that says what differs.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fujinsplat.core.parts import Part, points_of
from fujinsplat.synthesis.recipe import leaves_out


@dataclass(frozen=True)
class Artefact:
    """`needs`: what it is made from (or a function of the settings). `blocks`: settings it reads itself.

    `learned`: it stands for many scenes at once, so clean twins behind it are a distribution, not the view's own.
    """

    needs: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    blocks: tuple[str, ...] = ()
    learned: bool = False


def _recipe(settings: Any) -> tuple[str, ...]:
    experts = ("actions",) if settings.synthesis.draws == "actions" else ()
    bases = ("base",) if settings.synthesis.tone == "measured" and settings.synthesis.coordinate == "base" else ()
    return ("population", *experts, *bases)


def _controller(settings: Any) -> tuple[str, ...]:
    return () if settings.controller.checkpoint else ("recipe",)


def _population(settings: Any) -> tuple[str, ...]:
    return () if settings.actions.population else ("veil",)


def _smoke(settings: Any) -> tuple[str, ...]:
    return ("source", "cameras", points_of(settings))


ARTEFACTS: dict[str, Artefact] = {
    "source": Artefact(blocks=("capture",)),
    "clean": Artefact(blocks=("capture",)),
    "held": Artefact(blocks=("capture",)),
    "cameras": Artefact(),
    "points": Artefact(),
    "view_points": Artefact(("source", "cameras")),
    "base": Artefact(("source",), ("isp",)),
    "smoke": Artefact(_smoke, ("smoke",)),
    "actions": Artefact(("source", "clean", "base"), ("actions", "flow")),
    "veil": Artefact(("source", "clean", "base"), ("actions",)),
    "population": Artefact(_population, ("actions",), learned=True),
    "recipe": Artefact(_recipe, ("flow", "synthesis"), learned=True),
    "controller": Artefact(_controller, ("controller",), learned=True),
}
# settings that hold for a whole dataset: a row cannot have its own
WHOLE_BLOCKS = ("demo", "motion", "capture", "evaluate", "analysis", "export", "report")
SAMPLED = {"pixels", "summary", "seed", "shard", "depth", "depth_model", "depth_revision", "depth_batch"}
# settings of a block that training alone reads: what is made before it is the same file
OF_TRAINING = {"smoke": {"updates", "loss", "doubt", "edges"}}
WHOLE_SETTINGS = {"synthesis": SAMPLED | {"calibration_captures"}, "controller": {"checkpoint"}}


def needs_of(name: str, settings: Any) -> tuple[str, ...]:
    needs = ARTEFACTS[name].needs
    return needs(settings) if callable(needs) else needs


def blocks_of(names: tuple[str, ...], settings: Any) -> set[str]:
    """Every block of settings that these artefacts, and all they are made from, depend on."""
    blocks: set[str] = set()
    for name in names:
        blocks |= {*ARTEFACTS[name].blocks, *blocks_of(needs_of(name, settings), settings)}
    return blocks


def supervision(names: tuple[str, ...], settings: Any, learned: bool = False) -> dict[str, str]:
    """Which parts of the dataset stand behind these artefacts: `read`, or `distribution` through what was learned;
    `other scenes` where the scene itself was left out of that."""
    found: dict[str, str] = {}
    through = "other scenes" if leaves_out(settings.synthesis) else "distribution"
    for name in names:
        if name in ("source", "clean", "held"):
            found[name] = through if learned and found.get(name) != "read" else "read"
        below = supervision(needs_of(name, settings), settings, learned or ARTEFACTS[name].learned)
        for part, how in below.items():
            found[part] = "read" if "read" in (how, found.get(part)) else how
    return found


def part_blocks(part: Part, settings: Any) -> set[str]:
    """The blocks a part depends on: its own, those it says it reads, and those of what it needs."""
    own = {part.name} if part.has_settings else set()
    return own | set(part.stages) | blocks_of(part.opens(settings), settings)


def differences(settings: Any, usual: Any, blocks: set[str]) -> list[tuple[str, str, Any]]:
    """`(block, setting, value)` wherever two sets of settings differ within these blocks, for what is made from them
    before training."""
    found = []
    for block in type(usual).model_fields:
        if block not in blocks or getattr(settings, block) == getattr(usual, block):
            continue
        mine, theirs = getattr(settings, block), getattr(usual, block)
        passed_over = {*WHOLE_SETTINGS.get(block, ()), *OF_TRAINING.get(block, ())}
        for name in type(theirs).model_fields:
            if getattr(mine, name) != getattr(theirs, name) and name not in passed_over:
                found.append((block, name, getattr(mine, name)))
    return found


def version_name(changed: list[tuple[str, str, Any]]) -> str:
    """A file name of what differs: `K-5`, `labels-fitted`; many differences get the first two and a digest."""
    words = [re.sub(r"[^A-Za-z0-9._]+", "-", f"{name}-{value}").strip("-") for _, name, value in changed]
    text = "-".join(words)
    if len(text) <= 40:
        return text
    digest = hashlib.sha256(repr(changed).encode()).hexdigest()[:8]
    return f"{'-'.join(words[:2])[:28]}-{digest}"
