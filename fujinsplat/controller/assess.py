"""How good a controller is on source views, against their clean twins: analysis only, nothing is fitted by it.

Per scene, mean PSNR over views of what is put before the Gaussians: the base output itself, the same corrected by the
label of each pair's own measured (c, t), by the controller, and by the fitted expert action; and how far the controller
moves a view that has no smoke (the clean twin's RAW), as PSNR against that view's base output.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fujinsplat.actions.population import Population
from fujinsplat.capture import SourceViews
from fujinsplat.controller.network import Controller, summarise
from fujinsplat.controller.presentations import predict
from fujinsplat.core.errors import UserError
from fujinsplat.core.metrics import psnr
from fujinsplat.flow import apply
from fujinsplat.isp import develop, materialize
from fujinsplat.isp import load as load_base
from fujinsplat.paths import inside
from fujinsplat.synthesis.labels import Method, compile_labels

COLUMNS = ("base", "oracle", "controller", "expert", "clean_shift")


@dataclass
class SceneViews:
    """One scene's views, as 8-bit pictures over 255 `[V, H, W, 3]`: base output, clean camera RGB, and the base output
    of the clean twins' RAW; RAW and RGB summaries `[V, 3, 64, 64]` of the smoky and of the clean captures."""

    name: str
    stems: list[str]
    base: torch.Tensor
    clean: torch.Tensor
    clean_base: torch.Tensor
    summaries: dict[str, torch.Tensor]
    clean_summaries: dict[str, torch.Tensor]


def read_scene(name: str, source: Path, clean: Path, base: Path) -> SceneViews:
    """Develop a scene's smoky and clean RAW with its base."""
    smoky, twins, isp = SourceViews(source), SourceViews(clean), load_base(base)
    absent = sorted(set(smoky.stems) - set(twins.stems))
    if absent:
        raise UserError(f"{clean} has no clean twin of view {absent[0]}; the assessment needs one for every view")
    developed = {stem: (develop(isp, smoky.raw(stem)), develop(isp, twins.raw(stem))) for stem in smoky.stems}

    def pictures(values) -> torch.Tensor:
        return torch.from_numpy(np.stack([value.astype(np.float32) / 255 for value in values]))

    def summaries(views: SourceViews, which: int) -> dict[str, torch.Tensor]:
        raws = [summarise(torch.from_numpy(views.raw(stem))) for stem in smoky.stems]
        rgbs = [summarise(torch.from_numpy(developed[stem][which])) for stem in smoky.stems]
        return {"raw": torch.stack(raws), "rgb": torch.stack(rgbs)}

    return SceneViews(
        name,
        smoky.stems,
        base=pictures(materialize(developed[stem][0]) for stem in smoky.stems),
        clean=pictures(twins.rgb(stem) for stem in smoky.stems),
        clean_base=pictures(materialize(developed[stem][1]) for stem in smoky.stems),
        summaries=summaries(smoky, 0),
        clean_summaries=summaries(twins, 1),
    )


def oracle_labels(scene: SceneViews, population: Population, labels: Method, K: int = 7, M: int = 16) -> torch.Tensor:
    """The compiled label of each pair's own (c, t) in the base output, `[V, P]`.

    A pair without a fit gets the population's median contrast about its own scene's median pivot: what is left to know.
    """
    fits = {pair.view: pair.base for pair in population.pairs if pair.scene == scene.name and pair.base}
    known = list(fits.values()) or population.fits("base")
    middle = (np.median([fit.pivot for fit in known], axis=0), float(np.median([fit.t for fit in known])))
    chosen = [(fits[stem].pivot, fits[stem].t) if stem in fits else middle for stem in scene.stems]
    pivots = np.minimum(np.array([pivot for pivot, _ in chosen]), 0.97)
    return compile_labels(pivots, [t for _, t in chosen], labels, K=K, M=M)[0].float()


def mean_psnr(picture: torch.Tensor, reference: torch.Tensor) -> float:
    """Mean over views of the PSNR of 8-bit pictures `[V, H, W, 3]`; the picture is rounded first."""
    rounded = (picture.clamp(0, 1) * 255).round() / 255
    return float(np.mean([psnr(a.double(), b.double()) for a, b in zip(rounded, reference, strict=True)]))


@torch.inference_mode()
def assess_scene(
    scene: SceneViews,
    controller: Controller,
    input: str,
    oracle: torch.Tensor | None = None,
    expert: torch.Tensor | None = None,
) -> dict[str, float]:
    """The scene's row; `nan`-free: columns that were not asked for are absent."""
    K, M = controller.K, controller.M
    actions, idle = predict(controller, scene.summaries[input]), predict(controller, scene.clean_summaries[input])
    row = {
        "base": mean_psnr(scene.base, scene.clean),
        "controller": mean_psnr(apply(scene.base, actions, K, M), scene.clean),
        "clean_shift": mean_psnr(apply(scene.clean_base, idle, K, M), scene.clean_base),
    }
    if oracle is not None:
        row["oracle"] = mean_psnr(apply(scene.base, oracle, K, M), scene.clean)
    if expert is not None:
        row["expert"] = mean_psnr(apply(scene.base, expert), scene.clean)
    return row


def summarise_rows(rows: dict[str, dict[str, float]]) -> dict[str, float]:
    """Equal-scene means, the gain over the base, and its share of the oracle's and of the expert's gain."""
    columns = [column for column in COLUMNS if all(column in row for row in rows.values())]
    mean = {column: float(np.mean([row[column] for row in rows.values()])) for column in columns}
    mean["gain"] = mean["controller"] - mean["base"]
    for reference in ("oracle", "expert"):
        if reference in mean:
            mean[f"share_of_{reference}"] = mean["gain"] / (mean[reference] - mean["base"])
    return mean


def assess_files(results: Path, controllers: list[Path], scenes: list[str], out: Path | None, labels: Method) -> None:
    """Assess stored controllers on scenes of a results folder, print one table each and write all of them to `out`."""
    from fujinsplat.actions.population import load as load_population
    from fujinsplat.controller.store import load
    from fujinsplat.core.files import write_json
    from fujinsplat.flow import load as load_actions

    population = load_population(inside(results, "population"))
    tables: dict[str, dict] = {str(path): {} for path in controllers}
    for name in scenes:
        source, clean, base, fitted = (
            inside(results, part, scene=name) for part in ("source", "clean", "base", "actions")
        )
        scene = read_scene(name, source, clean, base)
        expert = load_actions(fitted).action if fitted.is_file() else None
        for path in controllers:
            network = load(str(path).replace("{scene}", name))
            oracle = oracle_labels(scene, population, labels, network.K, network.M)
            tables[str(path)][name] = assess_scene(scene, network, network.notes["input"], oracle, expert)
    report = {path: {"scenes": rows, "mean": summarise_rows(rows)} for path, rows in tables.items()}
    for path, table in report.items():
        print(path)
        for name, row in [*table["scenes"].items(), ("mean", table["mean"])]:
            print(f"  {name:14s}" + "".join(f"  {column} {value:.2f}" for column, value in row.items()))
    if out:
        write_json(out, report)
