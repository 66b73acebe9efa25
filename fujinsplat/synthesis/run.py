"""From files to files, for the commands."""

import json
from pathlib import Path

import numpy as np

from fujinsplat.config import SynthesisSettings
from fujinsplat.errors import UserError
from fujinsplat.files import write_json
from fujinsplat.progress import say
from fujinsplat.synthesis.captures import Captures
from fujinsplat.synthesis.draws import Draws, make_draws
from fujinsplat.synthesis.external import Tone, load_matrix, tone_of
from fujinsplat.synthesis.recipe import Recipe


def draw_to_file(
    captures: list[Path],
    base: Path,
    population: Path,
    out: Path,
    actions: list[Path],
    isps: list[Path],
    recipe: str,
    settings: SynthesisSettings,
) -> None:
    """Draw for all captures of all shards, in the order of the shards' names."""
    from fujinsplat.actions.population import load as load_population

    chosen = _recipe(recipe, settings)
    kept = Captures.joined([Captures.load(path) for path in sorted(captures)])
    experts = _experts(actions, chosen) if chosen.draws == "actions" else None
    measured = load_population(population)
    tones = _tones(isps, measured) if settings.tone == "measured" else None
    draws = make_draws(kept, measured, load_matrix(base), chosen, settings, experts, tones)
    draws.save(out)
    low, high = draws.notes["contrast_range"]
    say(
        f"{len(draws)} draws, t {low:.2f}-{high:.2f}, median {draws.notes['contrast_median']:.2f}, recipe {chosen.name}"
    )


def _recipe(given: str, settings: SynthesisSettings) -> Recipe:
    """A recipe from JSON; what it does not name is as the settings say."""
    usual = {"labels": settings.labels, "coordinate": settings.coordinate, "draws": settings.draws}
    try:
        return Recipe(**{**usual, **json.loads(given)})
    except (ValueError, TypeError) as error:
        raise UserError(f"--recipe {given}: {error}; give a JSON object") from None


def _experts(paths: list[Path], recipe: Recipe) -> dict[str, np.ndarray]:
    """Fitted actions `[V, P]` by scene, the file's stem."""
    from fujinsplat.flow import load

    experts = {}
    for path in paths:
        actions = load(path)
        if (actions.K, actions.M) != (recipe.K, recipe.M):
            raise UserError(
                f"{path} holds actions of K = {actions.K}, M = {actions.M}, but the recipe asks for "
                f"K = {recipe.K}, M = {recipe.M}; draws from actions need the same"
            )
        experts[Path(path).stem] = actions.action.numpy().astype(np.float64)
    return experts


def _tones(paths: list[Path], population) -> dict[str, Tone]:
    """Tones of calibrated bases by scene, the file's stem."""
    from fujinsplat.isp import load

    balances = {scene: summary.white_balance for scene, summary in population.scenes.items()}
    return {
        path.stem: tone_of(load(path), np.asarray(balances.get(path.stem, population.white_balance))) for path in paths
    }


def report_to_file(shards: list[Path], draws: Path, out: Path) -> None:
    """What was drawn, how well cycles close, and the fractions that fell out of range."""
    from safetensors import safe_open

    outside: list[dict] = []
    cycles: list[dict] = []
    for path in sorted(shards):
        with safe_open(str(path), "np") as stream:
            notes = stream.metadata()
        outside += json.loads(notes["outside"])
        cycles += json.loads(notes["cycles"])
    drawn = Draws.load(draws)
    write_json(
        out,
        {
            "recipe": drawn.recipe.name,
            "observations": len(outside),
            "captures": len(set(drawn.capture)),
            "draws": drawn.notes,
            "worst_cycle_db": {name: min(c[name] for c in cycles) for name in cycles[0]},
            "outside_mean": {name: float(np.mean([o[name] for o in outside])) for name in outside[0]},
            "outside_worst": {name: max(o[name] for o in outside) for name in outside[0]},
        },
    )
