"""Draws from the correction distribution and their labels, for all captures of a dataset at once [supp. F].

One observation of a capture is fixed by: its gain, a pivot colour, a contrast, and the action compiled from them. Every
random choice is seeded by the capture's name, so that a draw does not depend on which other captures there are, except
through two numbers of the whole set: the base's exposure and the depth constant beta.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch

from fujinsplat.actions.population import Pair, Population
from fujinsplat.core.color import luminance
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_tensors
from fujinsplat.core.progress import progress
from fujinsplat.core.reading import reader
from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.synthesis.captures import Captures, seed_of
from fujinsplat.synthesis.external import ExternalBase, Tone
from fujinsplat.synthesis.labels import compile_labels
from fujinsplat.synthesis.recipe import Recipe
from fujinsplat.synthesis.smoke import GRID, Smoke, find_smoke, measured

FORMAT = "fujinsplat draws 1"
LIGHTEST = 0.1  # of its optical depth is left of smoke that is drawn light, at most
BRIGHTEST_PIVOT = 0.97  # linear: a pivot at or above white would leave nothing to restore
TEXTS = ("capture", "source", "recipe", "notes")


@dataclass
class Draws:
    """n draws: label `[n, P]`; floor and ceiling `[n]` of the clean encoded colours; gain, stretch and median `[n]` of
    the capture's RAW; pivot `[n, 3]` and contrast `[n]` in the base's linear output; light `[n]`; sigma, share `[n]`,
    colour `[n, 3]` and bumps `[n, G, G]` of room smoke (sigma 0: the observation is the label's inverse); capture: one
    name per draw;
    source: the pair (or actions) each was drawn from; tone_x `[k]`, tone_y `[n, k]` and matrix `[3, 3]` of the external
    base; recipe; notes: for people."""

    label: np.ndarray
    floor: np.ndarray
    ceiling: np.ndarray
    gain: np.ndarray
    stretch: np.ndarray
    median: np.ndarray
    pivot: np.ndarray
    contrast: np.ndarray
    light: np.ndarray
    white_balance: np.ndarray
    sigma: np.ndarray
    share: np.ndarray
    colour: np.ndarray
    bumps: np.ndarray
    tone_x: np.ndarray
    tone_y: np.ndarray
    matrix: np.ndarray
    capture: list[str]
    source: list[str]
    recipe: Recipe
    notes: dict

    def __len__(self) -> int:
        return len(self.capture)

    def exposed(self, index: int, raw: np.ndarray) -> np.ndarray:
        """Clean RAW `[n, 3]` of one draw's capture as it is used: relit and brought to its brightness."""
        return exposed(raw, self.gain[index], self.stretch[index], self.median[index])

    def base(self, index: int) -> ExternalBase:
        """The external base of one draw."""
        return ExternalBase(self.matrix, Tone(self.tone_x, self.tone_y[index]))

    def smoke(self, index: int) -> Smoke | None:
        """The smoke of one draw, or None where its observation is the label's inverse."""
        if self.sigma[index] == 0:
            return None
        return Smoke(float(self.sigma[index]), float(self.share[index]), self.colour[index], self.bumps[index])

    def of(self, name: str) -> list[int]:
        """The draws of one capture."""
        return [index for index, capture in enumerate(self.capture) if capture == name]

    def save(self, path: Path | str) -> None:
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        texts = {"capture": self.capture, "source": self.source, "recipe": asdict(self.recipe), "notes": self.notes}
        write_tensors(path, arrays, {"format": FORMAT, **{k: json.dumps(v, sort_keys=True) for k, v in texts.items()}})

    @classmethod
    @reader("file of draws", "build it again", place=1)
    def load(cls, path: Path | str) -> "Draws":
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), "np") as stream:
                texts = stream.metadata() or {}
                if texts.get("format") != FORMAT:
                    raise UserError(f"{path} holds no draws; build it with `fujinsplat synthesis draw`")
                arrays = {name: stream.get_tensor(name) for name in ARRAYS}
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; build it with `fujinsplat synthesis draw`") from None
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path} is not readable ({error}); build it again") from None
        capture, source, recipe, notes = (json.loads(texts[k]) for k in ("capture", "source", "recipe", "notes"))
        return cls(**arrays, capture=capture, source=source, recipe=Recipe(**recipe), notes=notes)


ARRAYS = tuple(entry.name for entry in fields(Draws) if entry.name not in TEXTS)


def make_draws(
    captures: Captures,
    population: Population,
    matrix: np.ndarray,
    recipe: Recipe,
    settings: SynthesisSettings,
    experts: dict[str, np.ndarray] | None = None,
    tones: dict[str, Tone] | None = None,
) -> Draws:
    """Draw and compile for every capture.

    `experts`: fitted actions `[V, P]` by scene, for `draws: actions`. `tones`: of the scenes' calibrated bases; a draw
    has the tone of its pair's scene.
    """
    population = leave_out(population, recipe.without)
    pairs = [pair for pair in population.pairs if getattr(pair, recipe.coordinate)]
    if len(pairs) < 2:
        raise UserError(
            f"the population holds {len(pairs)} pair{'s' * (len(pairs) != 1)} in the {recipe.coordinate} coordinate; "
            "a distribution needs at least two: fit more pairs or set actions.population to a larger file"
        )
    rows = [(index, turn) for index in range(len(captures)) for turn in range(settings.draws_per_capture)]
    randoms = [seed_of(f"{captures.names[index]}/{turn}", settings.seed, "draw") for index, turn in rows]
    take = np.array([index for index, _ in rows])
    chosen = [pairs[random.integers(len(pairs))] for random in randoms]
    lights = np.array([random.random() < settings.light for random in randoms])
    draw = _measured if settings.veil == "measured" else _published
    plain, gain, pivot, contrast = draw(
        captures, population, matrix, recipe.coordinate, settings, take, chosen, randoms
    )
    scene_tones = _scene_tones(chosen, tones, recipe, settings) or [plain.tone] * len(rows)
    stretch = np.exp(settings.relight * np.array([random.random() for random in randoms]))
    thin = np.where(lights, LIGHTEST * np.array([random.random() for random in randoms]), 1.0)
    smokes: list[Smoke | None] = [None] * len(rows)
    # a restricted label cannot undo what lies in a room: its observation is always its own inverse
    whole = recipe.curves and recipe.couplings
    if settings.smoke == "room" and recipe.draws == "veil" and recipe.coordinate == "base" and whole:
        bases = [ExternalBase(matrix, tone) for tone in scene_tones]
        smokes, pivot, contrast = lay_smoke(
            captures, take, bases, gain, stretch, chosen, pivot, contrast, settings, randoms
        )
    contrast = contrast**thin
    sources = [f"{pair.scene}/{pair.view}" for pair in chosen]
    if recipe.draws == "actions":
        from fujinsplat.synthesis.mixtures import draw_actions

        label, sources = draw_actions(experts or {}, recipe, randoms, lights)
        floor, ceiling = np.zeros(len(rows)), np.ones(len(rows))
    else:
        label, floor, ceiling = compiled(pivot, contrast, recipe, settings.knee)
    notes = {
        "contrast_median": float(np.median(contrast)),
        "contrast_range": [float(contrast.min()), float(contrast.max())],
        "exposure": float(plain.tone(np.array(1.0))),
        "gain_at_limit": float(np.mean(gain >= settings.max_gain)),
        "light_share": float(np.mean(lights)),
        "pairs": len(pairs),
        "room_smoke": float(np.mean([smoke is not None for smoke in smokes])),
    }
    return Draws(
        label=label.astype(np.float32),
        floor=floor,
        ceiling=ceiling,
        gain=gain,
        stretch=stretch,
        median=captures.median[take],
        pivot=pivot,
        contrast=contrast,
        light=lights.astype(np.uint8),
        white_balance=captures.white_balance[take],
        sigma=np.array([smoke.sigma * share if smoke else 0.0 for smoke, share in zip(smokes, thin, strict=True)]),
        share=np.array([smoke.share if smoke else 0.0 for smoke in smokes]),
        colour=np.array([smoke.colour if smoke else np.zeros(3) for smoke in smokes]),
        bumps=np.array([smoke.bumps if smoke else np.zeros((GRID, GRID)) for smoke in smokes]),
        capture=[captures.names[index] for index in take],
        source=sources,
        tone_x=scene_tones[0].x,
        tone_y=np.array([tone.y for tone in scene_tones]),
        matrix=np.asarray(matrix),
        recipe=recipe,
        notes=notes,
    )


def leave_out(population: Population, scene: str | None) -> Population:
    """The population without one scene's pairs."""
    if scene is None:
        return population
    rest = [pair for pair in population.pairs if pair.scene != scene]
    if not rest:
        raise UserError(f"without {scene} the population is empty; draws from actions need pairs of another scene")
    return Population.of(rest, [])


def _scene_tones(chosen: list[Pair], tones: dict[str, Tone] | None, recipe: Recipe, settings) -> list[Tone] | None:
    """The tone of each draw's scene; None where the published exposure is asked for. A scene without a calibrated base
    (a population from elsewhere) borrows the others' tones in turn."""
    if settings.tone == "exposure" or recipe.coordinate == "raw" or not tones:
        return None
    known = sorted(scene for scene in tones if scene != recipe.without) or sorted(tones)
    return [tones[p.scene] if p.scene in known else tones[known[i % len(known)]] for i, p in enumerate(chosen)]


def exposed(raw: np.ndarray, gain: float, stretch: float, median: float) -> np.ndarray:
    """RAW `[n, 3]` with its range of light stretched about its median luminance, at another gain.

    Colours keep their ratios. The sensor's range ends at 1, as it does in a camera.
    """
    if stretch != 1:
        light = np.maximum(luminance(raw), 1e-4 * median) / median
        raw = raw * (light ** (stretch - 1))[..., None]
    return np.minimum(gain * raw, 1.0)


def _developed_medians(captures: Captures, matrix: np.ndarray) -> np.ndarray:
    """Median luminance `[n]` of each capture's linear output at gain and exposure 1."""
    plain = ExternalBase(matrix)
    medians = np.array(
        [
            np.median(luminance(plain.linear(pixels / 65535, balance)))
            for pixels, balance in zip(captures.pixels, captures.white_balance, strict=True)
        ]
    )
    for name, median in zip(captures.names, medians, strict=True):
        if not median > 0:
            raise UserError(f"capture {name} develops to a black picture; remove it from the sheet")
    return medians


def brightness(
    captures: Captures, population: Population, matrix: np.ndarray, coordinate: str, max_gain: float
) -> tuple[np.ndarray, ExternalBase, np.ndarray]:
    """Gains `[n]` of the captures, the base with its exposure, and the median luminance `[n]` of the clean outputs.

    `base`: RAW to the population's RAW median, then one exposure to its median in the base output. `raw`, published:
    each capture's linear output to the population's RAW median, exposure 1.
    """
    developed = _developed_medians(captures, matrix)
    target = population.summary("raw").clean_median
    if coordinate == "raw":
        gain = np.minimum(target / developed, max_gain)
        return gain, ExternalBase(matrix), gain * developed
    gain = np.minimum(target / captures.median, max_gain)
    exposure = population.summary("base").clean_median / float(np.median(gain * developed))
    return gain, ExternalBase(matrix, Tone.exposure(exposure)), exposure * gain * developed


def _published(captures, population, matrix, coordinate, settings: SynthesisSettings, take, chosen, randoms):
    """Direction of a measured pivot, level at the population's ratio to the capture's median, t = exp(-beta d-bar)."""
    summary = population.summary(coordinate)
    gain, base, medians = brightness(captures, population, matrix, coordinate, settings.max_gain)
    beta = -np.log(summary.t_median) / np.median(captures.depth_range)
    directions = np.array([direction(pair, coordinate) for pair in chosen])
    pivot = np.minimum(directions * summary.pivot_ratio * medians[take, None], BRIGHTEST_PIVOT)
    return base, gain[take], pivot, np.exp(-beta * captures.depth_range[take])


def _measured(captures, population, matrix, coordinate, settings: SynthesisSettings, take, chosen, randoms):
    """A pair's clean brightness, pivot and contrast together, each spread a little around what was measured.

    Smoke that is bright beside a dark room and smoke that is as bright as the room are told apart by the RAW alone only
    if draws hold both; one level for all pairs cannot. The base's exposure is the population's, as ever.
    """
    gain, base, _ = brightness(captures, population, matrix, coordinate, settings.max_gain)
    spread = np.exp(settings.jitter * np.array([random.normal(size=3) for random in randoms]))
    fits = [getattr(pair, coordinate) for pair in chosen]
    # the capture as dark or bright as the pair's clean RAW was, beside the population's middle
    relative = np.array([(pair.raw or fit).clean_median for pair, fit in zip(chosen, fits, strict=True)])
    relative = relative / np.array(
        [population.summary("raw" if pair.raw else coordinate).clean_median for pair in chosen]
    )
    gain = np.minimum(gain[take] * relative * spread[:, 0], settings.max_gain)
    levels = np.array([fit.level for fit in fits])[:, None]
    directions = np.array([direction(pair, coordinate) for pair in chosen])
    pivot = np.minimum(directions * levels * spread[:, 1, None], BRIGHTEST_PIVOT)
    return base, gain, pivot, np.array([fit.t for fit in fits]) ** spread[:, 2]


def direction(pair: Pair, coordinate: str) -> np.ndarray:
    """A pair's pivot in the base's linear output, normalised to mean 1, `[3]`."""
    pivot = np.asarray(getattr(pair, coordinate).pivot)
    if coordinate == "raw":
        pivot = pivot * np.asarray(pair.white_balance)
    return pivot / pivot.mean()


def lay_smoke(
    captures: Captures,
    take: np.ndarray,
    bases: list[ExternalBase],
    gain: np.ndarray,
    stretch: np.ndarray,
    chosen: list[Pair],
    pivot: np.ndarray,
    contrast: np.ndarray,
    settings: SynthesisSettings,
    randoms: list[np.random.Generator],
) -> tuple[list[Smoke | None], np.ndarray, np.ndarray]:
    """Room smoke for each draw, and the veil `(pivot, contrast)` that it measures in the base output.

    Its RAW veil is the pair's own, spread a little; None, and the drawn veil as it was, where nothing can be measured.
    """
    pivot, contrast = pivot.copy(), contrast.copy()

    def lay(draw: int) -> Smoke | None:
        row, random, base, pair = int(take[draw]), randoms[draw], bases[draw], chosen[draw]
        balance = captures.white_balance[row]
        level, thickness = np.exp(settings.jitter * random.normal(size=2))
        share = settings.by_depth * random.random()
        bumps = settings.uneven * random.normal(size=(GRID, GRID))
        if pair.raw is None:
            return None
        raw = exposed(captures.colours(row), gain[draw], stretch[draw], captures.median[row])
        # the same light in this capture's camera
        colour = np.minimum(level * np.asarray(pair.raw.pivot) * np.asarray(pair.white_balance) / balance, 1.0)
        depth, place = captures.depth[row], captures.place[row]
        smoke = find_smoke(raw, depth, place, colour, pair.raw.t**thickness, share, bumps - bumps.mean())
        if smoke is None:
            return None
        smoky, clean = base.linear(smoke.over(raw, depth, place), balance), base.linear(raw, balance)
        veil = measured(smoky, clean)
        if veil is None:
            return None
        pivot[draw], contrast[draw] = np.minimum(veil.pivot, BRIGHTEST_PIVOT), veil.t
        return smoke

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        smokes = list(progress(pool.map(lay, range(len(take))), "smoke", total=len(take)))
    return smokes, pivot, contrast


def compiled(
    pivot: np.ndarray, contrast: np.ndarray, recipe: Recipe, knee: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels `[n, P]` (float32 values), and the floor and ceiling `[n]` between which clean colours are invertible."""
    from fujinsplat.core.color import encode
    from fujinsplat.flow import apply
    from fujinsplat.synthesis.restrict import only_couplings, only_curves

    K, M = recipe.K, recipe.M
    labels, floors = compile_labels(pivot, contrast, recipe.labels, K=K, M=M, knee=knee)
    ceilings = torch.ones_like(floors)
    if not recipe.curves:
        labels = only_couplings(labels, K, M)
        floors = torch.zeros_like(floors)
    elif not recipe.couplings:
        labels = only_curves(labels, K, M)
    labels = labels.float().double()
    if recipe.curves and recipe.labels == "fitted":
        # the darkest and the brightest value that a veiled picture holds, as the action develops them
        veil = (1 - contrast)[:, None] * pivot
        ends = torch.from_numpy(encode(np.stack([veil, veil + contrast[:, None]], axis=1)))
        developed = apply(ends, labels, K, M)
        floors = developed[:, 0].amax(dim=1).clamp_min(0.0)
        ceilings = developed[:, 1].amin(dim=1).clamp_max(1.0)
    return labels.numpy(), floors.numpy(), ceilings.numpy()
