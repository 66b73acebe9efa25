"""Which value of each setting of synthesis and controller is best on a world that nothing is reported on.

    python -m benchmarks.choices FOLDER [CORES]     (from the project's folder; about twenty minutes of CPU time)

The world is the demo's generator with seed 4711: four scenes, twelve source views each, 96 external captures that make
768 observations, 600 updates. One setting at a time is moved away from ours: to the paper's value, and for numbers to
one value on each side. Each is trained with two seeds of draws and controller, the same two for all. Compared is the
PSNR of the corrected base output against the clean twins, mean of the scenes; beside it stands how far clean twins
themselves are moved, as PSNR, because light draws are there for those. Another value counts as better when it is better
with both seeds, and by more in the mean than the two seeds of ours lie apart. What was measured is kept in
FOLDER/choices.json, so that a stopped run goes on, and printed as the table of docs/recipes.md.
"""

import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SEED = 4711
DATASET, SCENES = "choices", ["Kogarashi", "Oroshi", "Hayate", "Kochi"]
SIZE = {"demo": {"seed": SEED, "source_views": 12, "held_views": 1, "external": 96}}
SYNTHESIS = {"depth": "files", "shard": 96, "draws_per_capture": 8}
STEPS = 600
REPEATS = (0, 1)  # added to the seeds of draws and controller
# the paper's value first where it has one, then one on each side of ours
VALUES: dict[str, list[Any]] = {
    "controller.presentations": [1, 4],
    "controller.lr_final": [1.0, 0.005, 0.1],
    "controller.start": ["torch"],
    "synthesis.veil": ["published"],
    "synthesis.smoke": ["uniform"],
    "synthesis.relight": [0.0, 0.35, 1.05],
    "synthesis.tone": ["exposure"],
    "synthesis.jitter": [0.0, 0.04, 0.16],
    "synthesis.light": [0.0, 0.12, 0.4],
    "synthesis.by_depth": [0.3, 0.9],
    "synthesis.uneven": [0.12, 0.5],
}


def build(folder: Path, cores: str) -> Path:
    """Everything that all choices share, by the workflow; the results' folder."""
    import yaml

    project = Path(__file__).parents[1]
    root = f"data/{DATASET}"
    block = {"root": root, "made_by_demo": True, "external": f"{root}/external", "scenes": SCENES}
    config = yaml.safe_load((project / "config.yaml").read_text())
    config["datasets"] = {DATASET: {**block, "settings": {**SIZE, "synthesis": SYNTHESIS}}}
    config |= {"dataset": DATASET, "build": "fujinsplat"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    results = f"results/{DATASET}"
    targets = ["population.json", "synthetic/base.json", "synthetic/captures/0000.safetensors"]
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(project / "Snakefile"), "--cores", cores]
    subprocess.run(
        [*words, "--rerun-triggers", "input", "--", *(f"{results}/{target}" for target in targets)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(project)},
        check=True,
    )
    return folder / results


class World:
    """What is read once: captures, population, bases, and the scenes' views."""

    def __init__(self, results: Path):
        from fujinsplat.actions.population import load as load_population
        from fujinsplat.controller.assess import read_scene
        from fujinsplat.isp import load as load_base
        from fujinsplat.paths import inside
        from fujinsplat.synthesis.captures import Captures
        from fujinsplat.synthesis.external import load_matrix, tone_of

        parts = ("source", "clean", "base")
        places = {scene: [inside(results, part, scene=scene) for part in parts] for scene in SCENES}
        self.captures = Captures.load(inside(results, "captures", shard="0000"))
        self.matrix = load_matrix(inside(results, "external_base"))
        self.population = load_population(inside(results, "population"))
        balances = {scene: np.asarray(known.white_balance) for scene, known in self.population.scenes.items()}
        self.tones = {scene: tone_of(load_base(files[2]), balances[scene]) for scene, files in places.items()}
        self.scenes = [read_scene(scene, *files) for scene, files in places.items()]
        self.observed = lru_cache(len(REPEATS))(self._observed)  # controllers, listed first, share ours
        self.trained = lru_cache(len(REPEATS))(self._trained)

    def _observed(self, changed: tuple):
        """Observations with some settings of synthesis changed."""
        from fujinsplat.controller.data import load_observations
        from fujinsplat.core.settings import FlowSettings, SynthesisSettings
        from fujinsplat.synthesis.draws import make_draws
        from fujinsplat.synthesis.observe import write_shard
        from fujinsplat.synthesis.recipe import Recipe

        settings = SynthesisSettings(**{**SYNTHESIS, **dict(changed)})
        recipe = Recipe.of("choice", settings, FlowSettings())
        tones = self.tones if settings.tone == "measured" else None
        draws = make_draws(self.captures, self.population, self.matrix, recipe, settings, None, tones)
        with tempfile.TemporaryDirectory() as name:
            write_shard(draws, self.captures, Path(name) / "0000.safetensors")
            return load_observations([Path(name) / "0000.safetensors"])

    def _trained(self, synthesis: tuple, controller: tuple):
        from fujinsplat.controller.training import train
        from fujinsplat.core.settings import ControllerSettings

        return train(self.observed(synthesis), ControllerSettings(**{"steps": STEPS, **dict(controller)}))[0]

    def measure(self, setting: str, value: Any, repeat: int) -> dict[str, float]:
        """PSNR of the base output, of the corrected one and of clean twins, with one setting changed."""
        from fujinsplat.controller.assess import assess_scene
        from fujinsplat.core.settings import ControllerSettings, SynthesisSettings

        changed: dict[str, dict[str, Any]] = {
            "synthesis": {"seed": SynthesisSettings().seed + repeat},
            "controller": {"seed": ControllerSettings().seed + repeat},
        }
        looks = ControllerSettings().presentations
        if setting == "controller.presentations":
            looks = value
        elif setting:
            block, name = setting.split(".")
            changed[block][name] = value
        network = self.trained(*(tuple(sorted(changed[block].items())) for block in ("synthesis", "controller")))
        network.notes = {"presentations": str(looks)}
        rows = [assess_scene(scene, network, "raw") for scene in self.scenes]
        return {key: float(np.mean([row[key] for row in rows])) for key in ("base", "controller", "clean_shift")}


def choices() -> list[tuple[str, Any]]:
    return [("", None), *((setting, value) for setting, values in VALUES.items() for value in values)]


def table(measured: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: one line per value, ours first, with the gain over ours for each seed."""
    from fujinsplat.rows.registries import AllSettings

    ours = measured[_key("", None)]
    apart = abs(ours[0]["controller"] - ours[1]["controller"])
    kept = np.mean([one["clean_shift"] for one in ours])
    lines = ["| value | of (ours) | PSNR, two seeds | mean over ours | clean twins kept |", "|---|---|--:|--:|--:|"]
    lines.append(f"| ours | all | {_pair(ours)} | | {kept:.1f} |")
    for setting, value in choices()[1:]:
        found = measured.get(_key(setting, value), [])
        if len(found) < len(REPEATS):
            continue
        gains = [a["controller"] - b["controller"] for a, b in zip(found, ours, strict=True)]
        block, name = setting.split(".")
        chosen = getattr(getattr(AllSettings(), block), name)
        better = " (better)" if min(gains) > 0 and np.mean(gains) > apart else ""
        lines.append(
            f"| {value} | `{setting}` ({chosen}) | {_pair(found)} | {np.mean(gains):+.2f}{better} "
            f"| {np.mean([one['clean_shift'] for one in found]):.1f} |"
        )
    lines.append(f"\nno correction: {ours[0]['base']:.2f} dB; the two seeds of ours lie {apart:.2f} dB apart")
    return "\n".join(lines)


def _pair(found: list[dict[str, float]]) -> str:
    return ", ".join(f"{one['controller']:.2f}" for one in found)


def _key(setting: str, value: Any) -> str:
    return f"{setting}={value}" if setting else "ours"


def main() -> None:
    from fujinsplat.core.files import read_json, write_json
    from fujinsplat.core.runtime import use_threads

    use_threads(1)
    folder = Path(sys.argv[1]).absolute()
    world = World(build(folder, sys.argv[2] if len(sys.argv) > 2 else "1"))
    file = folder / "choices.json"
    measured: dict[str, list[dict[str, float]]] = read_json(file) if file.is_file() else {}
    for setting, value in choices():
        found = measured.setdefault(_key(setting, value), [])
        for repeat in REPEATS[len(found) :]:
            found.append(world.measure(setting, value, repeat))
            write_json(file, measured)
            print(_key(setting, value), repeat, {k: round(v, 2) for k, v in found[-1].items()}, flush=True)
    print(table(measured))


if __name__ == "__main__":
    main()
