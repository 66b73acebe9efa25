"""Every path under results/{dataset}/, spelled once.

`at("base")` is the pattern a rule file uses; `at("base", dataset=…, scene=…)` one file; `inside(folder, "base",
scene=…)` the same below a results folder that is somewhere else. `{version}` is empty, or the name of a row's own
settings and a slash.
"""

import re
from pathlib import Path
from typing import Any

RESULTS = "results/{dataset}"
PATHS = {
    # capture: one decoded scene
    "poses": "capture/{scene}/poses",
    "source": "capture/{scene}/source",
    "cameras": "capture/{scene}/cameras.json",
    "points": "capture/{scene}/points.ply",
    "manifest": "capture/{scene}/manifest.json",
    "view_points": "capture/{scene}/points_of_views.ply",
    # clean twins and held views, apart from everything else: see core/boundary.py
    "clean": "references/clean/{scene}",
    "held": "references/held/{scene}",
    # isp, actions, smoke
    "base": "base/{version}{scene}.safetensors",
    "fidelity": "base/{version}{scene}.json",
    "actions": "actions/{version}{scene}.safetensors",
    "veil": "actions/{version}{scene}.veil.json",
    "population": "{version}population.json",
    "smoke": "smoke/{version}{scene}.safetensors",
    "smoke_json": "smoke/{version}{scene}.json",
    "smoke_figure": "smoke/{version}{scene}.png",
    "smoke_print": "smoke/{version}{scene}.pdf",
    "smoke_airlight": "smoke/{version}{scene}.airlight.png",
    "smoke_airlight_print": "smoke/{version}{scene}.airlight.pdf",
    # synthesis, controller
    "network": "synthetic/network",
    "external_base": "synthetic/base.json",
    "captures": "synthetic/captures/{shard}.safetensors",
    "draws": "synthetic/{recipe}/draws.safetensors",
    "observations": "synthetic/{recipe}/{shard}.safetensors",
    "gallery": "synthetic/{recipe}/gallery.png",
    "gallery_print": "synthetic/{recipe}/gallery.pdf",
    "controller": "controller/{controller}.safetensors",
    "controller_losses": "controller/{controller}.csv",
    "controller_figure": "controller/{controller}.png",
    # views, develop, splat, render
    "views": "views/{scene}/{front}.safetensors",
    "views_sheet": "views/{scene}/{front}.png",
    "developed": "developed/{scene}/{variant}.safetensors",
    "developed_summary": "developed/{scene}/{variant}.json",
    "developed_sheet": "developed/{scene}/{variant}.png",
    "gaussians": "gaussians/{scene}/{variant}.ply",
    "model": "gaussians/{scene}/{variant}.linear.safetensors",
    "training": "gaussians/{scene}/{variant}.log.jsonl",
    "reconciled": "gaussians/{scene}/{variant}.delta.json",
    "checkpoints": "checkpoints/{scene}/{variant}",
    "renders": "renders/{scene}/{variant}",
    "renders_source": "renders_source/{scene}/{variant}",
    "renders_medium": "renders_medium/{scene}/{variant}",
    # export: what leaves the house
    "scene": "export/{scene}/{variant}/scene.ply",
    "cleared": "export/{scene}/{variant}/cleared",
    "turntable": "export/{scene}/{variant}/turntable.gif",
    "scene_page": "export/{scene}/{variant}/report.html",
    # evaluate, analysis, report
    "scores": "metrics/{scene}/{variant}.csv",
    "scores_json": "metrics/{scene}/{variant}.json",
    "table": "tables/{table}.{format}",
    "study": "analysis/{study}/{file}",
    "figure": "figures/{figure}.{format}",
    "view": "viewer/{scene}.html",
    "view_of": "viewer/{scene}/{variant}.html",
    "report": "report.html",
    # of every job
    "log": "logs/{job}.log",
    "reads": "logs/{job}.reads.json",
    "benchmark": "benchmarks/{job}.tsv",
}


def at(name: str, **wildcards: Any) -> str:
    """The path of an artefact below the working directory; wildcards that are not given stay in braces."""
    return _filled(f"{RESULTS}/{PATHS[name]}", wildcards)


def inside(results: Path | str, name: str, **wildcards: Any) -> Path:
    """The path of an artefact below a results folder; every wildcard of it is given (`version` may be left out)."""
    return Path(results) / PATHS[name].format(**{"version": "", **wildcards})


def _filled(pattern: str, values: dict[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: str(values[m[1]]) if m[1] in values else m[0], pattern)
