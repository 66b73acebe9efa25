"""The outline of a build, for tables and report: everything about rows that follows from their parts."""

from pathlib import Path
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.core.validation import checked
from fujinsplat.evaluate.outline import Outline, RowFacts
from fujinsplat.evaluate.paper import role_of
from fujinsplat.rows.artefacts import supervision
from fujinsplat.rows.config import Config
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import Row, front_name

# the paper's supervision table: each stage and the artefacts it is given
STAGES = {
    "Base ISP calibration": ("source",),
    "Expert action fitting": ("source", "clean", "base"),
    "Correction distribution": ("veil",),
    "Read-only analyses": ("source", "clean", "base", "actions"),
    "Controller training": ("recipe",),
    "Final evaluation": ("held", "clean"),
}


def differences_from_paper(settings: Any, blocks: set[str] | None = None) -> list[tuple[str, str, str]]:
    """`(setting, value here, the paper's value)` for every setting that differs, within these blocks or in all."""
    paper, rows = AllSettings.paper(), []
    for block in AllSettings.model_fields:
        mine, theirs = getattr(settings, block), getattr(paper, block)
        for name in type(theirs).model_fields if blocks is None or block in blocks else ():
            if getattr(mine, name) != getattr(theirs, name):
                rows.append((f"{block}.{name}", str(getattr(mine, name)), str(getattr(theirs, name))))
    return rows


def facts(row: Row, settings: Any, usual: Any = None) -> RowFacts:
    return RowFacts(
        title=row.title,
        role=role_of(row.paper),
        line=row.paper,
        oracle=row.oracle(settings),
        marks=sorted(row.marks(settings)),
        flow=(settings.flow.K, settings.flow.M),
        parts={kind: getattr(row, kind).name for kind in ("front", "correction", "reconcile", "model")},
        front_file=front_name(row, settings, usual or settings),
        opens=list(row.opens(settings)),
        supervision=row.supervision(settings),
        differences=differences_from_paper(settings, row.blocks(settings)),
    )


def _seeded(config: Config, name: str, usual: Any) -> RowFacts:
    row = config.rows[name]
    return facts(row, row.settings(usual), usual).model_copy(update={"seeds": config.seeds_of(name)})


def outline_of(config: Config, dataset: str) -> Outline:
    """The outline of one dataset of a config; the build's group and scenes hold for the configured dataset only."""
    block, chosen = config.datasets[dataset], dataset == config.dataset
    names = config.members() if chosen else [name for name in config.variants if name not in config.skipped]
    settings = config.settings_for(dataset)
    return Outline(
        dataset=dataset,
        scenes=(config.scenes if chosen else None) or block.scenes,
        excluded_from_seven=block.excluded_from_seven,
        rows={name: _seeded(config, name, settings) for name in names},
        stages={stage: supervision(needs, settings) for stage, needs in STAGES.items()},
        settings=settings.model_dump(mode="json"),
        paper=AllSettings.paper().model_dump(mode="json"),
        viewer=settings.report.viewer,
        held_views=block.held_views,
        clean_twins=block.clean_twins,
    )


def read_outline(given: str | None, results: Path) -> Outline:
    """`given`: the outline as inline JSON (what rules pass), or a config.yaml whose dataset is `results`' last name."""
    import yaml

    text = given or "config.yaml"
    inline = text.lstrip().startswith("{")
    try:
        values = yaml.safe_load(text if inline else Path(text).read_text())
    except OSError as error:
        raise UserError(f"{text}: {error.strerror}; name the config.yaml of the build with --outline") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{text} is not valid YAML: {' '.join(str(error).split())}") from None
    if inline:
        return checked(Outline, values, "--outline")
    config = checked(Config, values, text)
    dataset = results.resolve().name
    if dataset not in config.datasets:
        raise UserError(
            f"{text} has no dataset {dataset!r}, the name of {results}; name the right config with --outline"
        )
    return outline_of(config, dataset)
