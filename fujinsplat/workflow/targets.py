"""Targets that people type: a mistyped dataset, scene or row is told by name before anything is planned."""

import re
from collections.abc import Iterable

from fujinsplat.core.errors import UserError
from fujinsplat.paths import PATHS, RESULTS
from fujinsplat.rows.names import unknown
from fujinsplat.workflow.plan import Plan

_GREEDY = {"version": "(?:[^/]+/)?", "job": ".+", "file": ".+"}


def _pattern(path: str) -> re.Pattern:
    seen: set[str] = set()

    def group(match: re.Match) -> str:
        name = match[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{_GREEDY.get(name, '[^/]+')})"

    escaped = re.sub(r"[^\w{}/]", lambda match: re.escape(match[0]), path)
    return re.compile(re.sub(r"\{(\w+)\}", group, escaped))


_PATTERNS = [_pattern(f"{RESULTS}/{path}") for path in PATHS.values()]


def check_targets(plan: Plan, targets: Iterable[str]) -> None:
    """Raises a sentence for the first target whose names the config does not have."""
    for target in targets:
        found = [match.groupdict() for pattern in _PATTERNS if (match := pattern.fullmatch(str(target)))]
        complaints = [_complaint(plan, names) for names in found]
        if complaints and None not in complaints:
            raise UserError(f"{target}: {complaints[0]}")
        if not found and (match := re.match(r"results/([^/]+)/", str(target))) and match[1] not in plan.config.datasets:
            raise UserError(f"{target}: {unknown('dataset', match[1], plan.config.datasets)}")


def _complaint(plan: Plan, names: dict[str, str]) -> str | None:
    config = plan.config
    if (dataset := names["dataset"]) not in config.datasets:
        return unknown("dataset", dataset, config.datasets)
    scenes = config.datasets[dataset].scenes
    if (scene := names.get("scene")) is not None and scene not in scenes:
        return unknown(f"scene of {dataset}", scene, scenes)
    if (variant := names.get("variant")) is not None:
        name, mark, repeat = variant.partition("@")
        if name not in config.variants:
            return unknown("row", name, config.variants)
        if mark and not re.fullmatch(r"[2-9]|[1-9]\d{1,3}", repeat):
            return f"the repeat of {variant!r} is no number from 2 to 9999; ask for {name}@2, or for {name}"
    if (table := names.get("table")) is not None:
        from fujinsplat.evaluate.tables import TABLES

        if table not in TABLES:
            return unknown("table", table, TABLES)
    return None
