"""How smoky each scene is: the statistics measured on RealX3D, one row per demo scene, and how a view's smoke is met.

The contrast t of a view is that of METHOD's population fit: `H = t J + (1 - t) c` by least squares on 15 matched
percentiles per channel, one t, in RAW without white balance.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Weather:
    """One scene's smoke and exposure.

    `airlight` is (R/G, B/G) of the smoke's light in RAW; `ratio` its level over the clean median; `low`, `median` and
    `high` the contrasts of its views; `exposure` the clean median luminance in RAW.
    """

    airlight: tuple[float, float]
    ratio: float
    low: float
    median: float
    high: float
    exposure: float

    def varied(self, thickness: float, light: float) -> "Weather":
        """The same day with `thickness` times the smoke's optical depth and `light` times the exposure."""
        contrasts = {name: getattr(self, name) ** thickness for name in ("low", "median", "high")}
        return replace(self, **contrasts, exposure=self.exposure * light)


WEATHER = {
    "Kogarashi": Weather((0.49, 0.51), 1.88, 0.27, 0.337, 0.43, 0.051),
    "Oroshi": Weather((0.44, 0.57), 1.14, 0.28, 0.289, 0.33, 0.053),
    "Hayate": Weather((0.41, 0.59), 8.29, 0.28, 0.612, 0.90, 0.022),
    "Kochi": Weather((0.53, 0.43), 1.47, 0.33, 0.419, 0.52, 0.051),
    "Minami": Weather((0.36, 0.50), 1.04, 0.26, 0.456, 0.63, 0.054),
    "Yamase": Weather((0.46, 0.52), 1.16, 0.15, 0.156, 0.18, 0.055),
    "Tsumuji": Weather((0.28, 0.47), 2.32, 0.22, 0.307, 0.41, 0.044),
    "Nowaki": Weather((0.44, 0.57), 1.38, 0.28, 0.372, 0.50, 0.053),
}
SCENES = tuple(WEATHER)


def number(name: str) -> int:
    """A stable 32-bit number of a name: the same on every machine and in every process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def stream(seed: int, name: str, purpose: str) -> np.random.Generator:
    """The random numbers of one purpose in one scene; no other scene or purpose touches them."""
    return np.random.default_rng([seed, number(name), number(purpose)])


def weather(name: str, seed: int) -> Weather:
    """The table's row, or for any other name one drawn from the range that the table covers."""
    if name in WEATHER:
        return WEATHER[name]
    rng = stream(seed, name, "weather")
    median = rng.uniform(0.2, 0.55)
    spread = rng.uniform(0.05, 0.5)
    return Weather(
        airlight=(rng.uniform(0.36, 0.53), rng.uniform(0.43, 0.59)),
        ratio=rng.uniform(1.1, 2.3),
        low=max(0.15, median * (1 - 0.7 * spread)),
        median=median,
        high=min(0.9, median * (1 + spread)),
        exposure=rng.uniform(0.045, 0.06),
    )


def contrasts(row: Weather, views: int, rng: np.random.Generator) -> np.ndarray:
    """The contrast of each view in capture order: smoke thickens and thins in puffs, over exactly [low, high]."""
    time = np.linspace(0, 1, views)
    wave = np.zeros(views)
    for harmonic, strength in ((1, 1.0), (2, 0.7), (3, 0.5)):
        wave += strength * np.sin(2 * np.pi * harmonic * time + rng.uniform(0, 2 * np.pi))
    wave += 0.35 * rng.normal(size=views)
    rank = np.argsort(np.argsort(wave)) / max(views - 1, 1)
    below = row.low + (row.median - row.low) * np.minimum(2 * rank, 1)
    return below + (row.high - row.median) * np.maximum(2 * rank - 1, 0)


def measure(hazy_raw: np.ndarray, clean_raw: np.ndarray) -> tuple[float, np.ndarray]:
    """Contrast t and pivot c `[3]` of a pair of linear RAW pictures `[..., 3]` without white balance."""
    q = np.linspace(2, 98, 15)
    hazy = np.percentile(hazy_raw.reshape(-1, 3), q, axis=0)
    clean = np.percentile(clean_raw.reshape(-1, 3), q, axis=0)
    h, j = hazy - hazy.mean(0), clean - clean.mean(0)
    t = float((h * j).sum() / (j * j).sum())
    return t, (hazy.mean(0) - t * clean.mean(0)) / max(1 - t, 1e-6)
