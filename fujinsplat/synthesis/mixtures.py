"""Labels drawn from the fitted expert actions themselves: strengths, mixtures and directions [Sec. 3.3, supp. E]."""

import numpy as np

from fujinsplat.core.errors import UserError
from fujinsplat.synthesis.recipe import Recipe

STRENGTHS = (0.4, 1.1)  # of a mixture's coefficients; supp. E's vocabulary goes from 0.25 to 1
LIGHT_STRENGTHS = (0.0, 0.1)


def draw_actions(
    experts: dict[str, np.ndarray], recipe: Recipe, randoms: list[np.random.Generator], lights: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Labels `[n, P]` and where each came from.

    Actions are all fitted from zero by the same steps, so that averaging coefficients is averaging in one gauge. A draw
    mixes the actions of one or two views of other scenes and scales the result towards the identity.
    """
    pool = {scene: actions for scene, actions in sorted(experts.items()) if scene != recipe.without}
    count = sum(len(actions) for actions in pool.values())
    if count < 2:
        raise UserError(
            f"draws from actions need two or more actions of scenes other than {recipe.without}; there are {count}"
        )
    scenes = list(pool)
    labels, sources = [], []
    for random, light in zip(randoms, lights, strict=True):
        first, second = (scenes[random.integers(len(scenes))] for _ in range(2))
        if random.random() < 0.5:
            second = first
        a, b = pool[first][random.integers(len(pool[first]))], pool[second][random.integers(len(pool[second]))]
        share = random.random()
        strength = random.uniform(*(LIGHT_STRENGTHS if light else STRENGTHS))
        labels.append(strength * (share * a + (1 - share) * b))
        sources.append(f"{strength:.3f} x ({share:.3f} {first} + {1 - share:.3f} {second})")
    return np.array(labels), sources
