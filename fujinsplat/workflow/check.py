"""What a build needs of the disk, looked for before anything runs: folders, scenes, controllers, populations."""

from contextlib import chdir
from pathlib import Path
from typing import Any

from fujinsplat.core.errors import UserError
from fujinsplat.rows.config import Config


def missing_inputs(config: Config, folder: Path = Path()) -> list[str]:
    """One sentence for each thing that the configured dataset and rows need and that is not there; paths in the config
    are relative to `folder`."""
    name = config.dataset
    block, usual = config.datasets[name], config.settings_for(name)
    problems = []
    if not block.made_by_demo:
        problems += _scenes(config, folder)
    rows = {row: config.rows[row].settings(usual) for row in config.members()}
    with chdir(folder):  # parts look for their files themselves
        problems += _of_rows(config, rows)
    steered = [row for row, settings in rows.items() if "controller" in config.rows[row].opens(settings)]
    trained = [row for row in steered if not rows[row].controller.checkpoint]
    for row in steered:
        given = rows[row].controller.checkpoint
        if given and (problem := missing_controller(given, folder)):
            problems.append(problem)
            break
    external = block.external
    if trained and external is None:
        problems.append(
            f"datasets.{name} has nothing to train the controller of {', '.join(trained)} from; set external "
            "(smoke-free RAW captures), or name a controller with settings.controller.checkpoint"
        )
    elif trained and external and not _made_by_demo(config, external) and not (folder / external).is_dir():
        problems.append(f"datasets.{name}.external: {external} does not exist; fetch it, or correct the path")
    population = usual.actions.population
    if trained and population and not _made_by_demo(config, population) and not (folder / population).is_file():
        problems.append(f"settings.actions.population: {population} does not exist; build it, or correct the path")
    if trained and not population and not block.clean_twins:
        problems.append(
            f"datasets.{name} has clean_twins: false, so no population can be measured for {', '.join(trained)}; name "
            "one with settings.actions.population, or a controller with settings.controller.checkpoint"
        )
    return problems


def _of_rows(config: Config, rows: dict[str, Any]) -> list[str]:
    """What rows that are asked for by name need of this machine, and what oracles need of the dataset."""
    problems = []
    for row, settings in rows.items():
        if reason := config.rows[row].missing(settings):
            problems.append(f"the row {row} cannot be built here: {reason}")
        if config.rows[row].oracle(settings) and not config.datasets[config.dataset].clean_twins:
            problems.append(
                f"datasets.{config.dataset} has clean_twins: false, and the row {row} is made from clean twins; build "
                "another row"
            )
    return problems


def missing_controller(given: str, folder: Path = Path()) -> str | None:
    """The sentence for a controller that the settings name and that is not there."""
    if (folder / given).is_file():
        return None
    return f"settings.controller.checkpoint: {given} does not exist; train it first, or correct the path"


def _made_by_demo(config: Config, path: str) -> bool:
    """Whether the workflow makes this itself, on the way."""
    made = [name for name, block in config.datasets.items() if block.made_by_demo]
    places = [config.datasets[name].root for name in made] + [f"results/{name}" for name in made]
    return any(path.startswith(place) for place in places)


def _scenes(config: Config, folder: Path) -> list[str]:
    from fujinsplat.capture.layout import find_scene

    block, problems = config.datasets[config.dataset], []
    if not (folder / block.root).is_dir():
        return [
            f"datasets.{config.dataset}.root: {block.root} does not exist; download the dataset or correct the path"
        ]
    for scene in config.scenes or block.scenes:
        try:
            find_scene(folder / block.root, scene)
        except UserError as error:
            problems.append(str(error))
    return problems
