"""From files to files, for the commands."""

from pathlib import Path

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import say
from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.synthesis.captures import Captures
from fujinsplat.synthesis.draws import make_draws
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

    chosen = Recipe.read(recipe)
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
