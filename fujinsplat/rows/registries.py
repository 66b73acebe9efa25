"""The four kinds of parts, each with its registry, and the settings of all of them together."""

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from fujinsplat.core.parts import Part, Registry
from fujinsplat.core.settings import StageSettings
from fujinsplat.develop.corrections import CORRECTIONS
from fujinsplat.smoke.settings import SmokeSettings
from fujinsplat.splat.models import MODELS
from fujinsplat.splat.reconcilers import RECONCILERS
from fujinsplat.views.fronts import FRONTS

KINDS: dict[str, Registry] = {registry.kind: registry for registry in (FRONTS, CORRECTIONS, RECONCILERS, MODELS)}


def every_part() -> list[Part]:
    return [part for registry in KINDS.values() for part in registry]


_OWN: dict[str, Any] = {part.name: (part.Settings, part.Settings()) for part in every_part() if part.has_settings}
_OWN["smoke"] = (SmokeSettings, SmokeSettings())
# one block per stage, and one per part that has settings, under the part's name
if TYPE_CHECKING:
    AllSettings = StageSettings  # the parts' own blocks are known when it runs
else:
    AllSettings = create_model("AllSettings", __base__=StageSettings, __doc__=StageSettings.__doc__, **_OWN)
