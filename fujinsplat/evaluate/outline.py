"""What tables and report need to know about a build, and nothing that would make them again for no reason."""

from pathlib import Path

from fujinsplat.config import Config, Settings, StageSettings, Variant, setting
from fujinsplat.configfile import checked
from fujinsplat.errors import UserError


class Outline(Settings):
    """One dataset's scenes and variants, in table order."""

    dataset: str = setting(..., "name of the dataset")
    scenes: list[str] = setting(..., "scenes, in table order")
    excluded_from_seven: str | None = setting(None, "scene left out of the second mean [supp. H]")
    variants: dict[str, Variant] = setting(..., "rows, in table order")
    settings: StageSettings = setting(StageSettings(), "the settings in use")

    def title(self, variant: str) -> str:
        return self.variants[variant].title or variant


def outline_of(config: Config, dataset: str) -> Outline:
    """The outline of one dataset of a config; the build's group and scenes hold for the configured dataset only."""
    block = config.datasets[dataset]
    chosen = dataset == config.dataset
    names = config.members() if chosen else list(config.variants)
    return Outline(
        dataset=dataset,
        scenes=(config.scenes if chosen else None) or block.scenes,
        excluded_from_seven=block.excluded_from_seven,
        variants={name: config.variants[name] for name in names},
        settings=config.settings_for(dataset),
    )


def read_outline(given: str | None, results: Path) -> Outline:
    """`given`: the outline as inline JSON (what rules pass), or a config.yaml whose dataset is `results`' last name."""
    import yaml

    text = given or "config.yaml"
    if text.lstrip().startswith("{"):
        return checked(Outline, yaml.safe_load(text), "--outline")
    try:
        values = yaml.safe_load(Path(text).read_text())
    except OSError as error:
        raise UserError(f"{text}: {error.strerror}; name the config.yaml of the build with --outline") from None
    except yaml.YAMLError as error:
        raise UserError(f"{text} is not valid YAML: {' '.join(str(error).split())}") from None
    config = checked(Config, values, text)
    dataset = results.resolve().name
    if dataset not in config.datasets:
        raise UserError(
            f"{text} has no dataset {dataset!r}, the name of {results}; name the right config with --outline"
        )
    return outline_of(config, dataset)
