"""The plan of a whole RealX3D build, on a stand-in for its folders: the number of jobs of each rule."""

import csv
import json
import math
from collections import Counter

import pytest
import yaml

from fujinsplat.core.settings import SynthesisSettings
from fujinsplat.core.validation import checked
from fujinsplat.evaluate.tables import TABLES
from fujinsplat.report.figures import FIGURES
from fujinsplat.rows.config import Config

# source views of each scene (the paper's dataset table); four held views each
VIEWS = {
    "Akikaze": 25,
    "Futaba": 23,
    "Hinoki": 22,
    "Koharu": 25,
    "Midori": 26,
    "Natsume": 25,
    "Shirohana": 26,
    "Tsubaki": 23,
}
HELD = 4
CAPTURES = 1400


@pytest.fixture(scope="module")
def realx3d(make_workspace, tmp_path_factory):
    """A workspace with RealX3D's folders and the external captures' sheet; files that are planned but never opened."""
    workspace = make_workspace(tmp_path_factory.mktemp("realx3d"), ["Kogarashi"], dataset="realx3d", build="all")
    for scene, count in VIEWS.items():
        folder = workspace.folder / "data/realx3d" / scene
        for part, stems in (("train", range(count)), ("val", range(count)), ("test", range(count, count + HELD))):
            (folder / part).mkdir(parents=True)
            for stem in stems:
                (folder / part / f"{stem:04d}.JPG").write_text("stand-in")
                if part != "test":
                    (folder / part / f"{stem:04d}.ARW").write_text("stand-in")
            (folder / f"transforms_{part}.json").write_text(json.dumps({"frames": []}))
        (folder / "point3d.ply").write_text("stand-in")
    external = workspace.folder / "data/multi_illumination"
    external.mkdir()
    with (external / "captures.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("name", "path", "split"))
        for index in range(CAPTURES):
            rows.writerow((f"room{index:04d}", f"room{index:04d}.dng", "train"))
            (external / f"room{index:04d}.dng").write_text("stand-in")
        rows.writerow(("other", "other.dng", "test"))  # another split is no part of the training
    return workspace


RESTORERS = ("promptir", "moce_ir", "mb_taylorformer", "convir")


def whole(variants: dict[str, dict], name: str) -> dict:
    """A row of the config with what it takes from the rows it is like."""
    row = variants[name]
    usual = {"front": "base", "correction": "none", "model": "gaussians", "recipe": "ours", "settings": {}}
    above = whole(variants, row["like"]) if "like" in row else usual
    settings = {**above["settings"]}
    for block, values in row.get("settings", {}).items():
        settings[block] = {**settings.get(block, {}), **values}
    return {**above, **row, "settings": settings}


def controllers(rows: list[dict], scenes: list[str]) -> tuple[set, set]:
    """(controllers, recipes) that the rows of the variant table need, by what tells them apart."""
    trained, recipes = set(), set()
    for row in rows:
        if row["correction"] not in ("controller", "mean"):
            continue
        flow, synthesis, control = (row["settings"].get(block, {}) for block in ("flow", "synthesis", "controller"))
        shape = (flow.get("K", 7), flow.get("M", 16), synthesis.get("action", "full"), row["recipe"])
        draws = tuple(synthesis.get(name) for name in ("labels", "coordinate", "draws", "population"))
        # drawn from actions, or with a population without the scene's own pairs: one each
        for scene in scenes if {"actions", "leave_out"} & set(draws) else [None]:
            recipe = (*shape, *draws, scene)
            recipes.add(recipe)
            trained.add((control.get("input", "raw"), control.get("objective", "label"), recipe))
    return trained, recipes


def methods(variants: dict[str, dict], names: list[str]) -> list[str]:
    """Rows that stand for a method as a whole: ours, what it starts from, or another model."""
    ours = ("FujinSplat", "RAW base only")
    return [n for n in names if variants[n].get("paper") in ours or whole(variants, n)["model"] != "gaussians"]


def expected(config: dict) -> Counter:
    """The jobs of a build of every variant: what is shared counts once, what a variant alone needs counts per row."""
    scenes, names = config["datasets"]["realx3d"]["scenes"], checked(Config, config).members()
    rows = [whole(config["variants"], name) for name in names]
    trained, recipes = controllers(rows, scenes)
    shards = math.ceil(CAPTURES / SynthesisSettings().shard)
    once_per_scene = ("capture_source", "capture_clean", "capture_held", "actions_fit", "report_view")
    per_result = ("develop_scene", "splat_train", "render_held", "render_source", "evaluate_score")
    once = ("synthesis_network", "synthesis_base", "synthesis_gallery", "report_page")
    # a row with a smoke of its own estimates it, and has views without it; how it is trained on them makes no other
    own = [row["settings"].get("smoke", {}) for row in rows if row["front"] == "cleared"]
    smokes = {json.dumps({k: v for k, v in smoke.items() if k not in ("updates", "loss")}) for smoke in own}
    studies = ("rank_one", "base_fidelity", "observability", "family", "inverse")
    bases = {row["recipe"] for row in rows}  # the published recipe calibrates otherwise, and measures with that base
    fronts = {(json.dumps(row["front"]), row["recipe"] if row["front"] == "base" else "") for row in rows}
    views = len(fronts) + max(0, len(smokes) - 1)
    return Counter(
        {
            **{rule: len(scenes) for rule in once_per_scene},
            **{rule: len(scenes) * len(rows) for rule in per_result},
            **{rule: 1 for rule in (*once, *(f"analysis_{study}" for study in studies))},
            **{rule: len(scenes) * len(bases) for rule in ("isp_calibrate", "actions_veil")},
            "actions_population": len(bases),
            "smoke_estimate": len(scenes) * len(smokes),
            "smoke_show": len(scenes) * bool(smokes),
            "smoke_points": len(scenes)
            * any(row["settings"].get("splat", {}).get("points") == "views" for row in rows),
            "views_make": len(scenes) * views,
            "report_view_of": len(scenes) * (len(methods(config["variants"], names)) - 1),  # the method has its own
            "render_medium": len(scenes) * sum(row["model"] in ("seasplat", "watersplatting") for row in rows),
            "synthesis_sample": shards,
            "synthesis_draw": len(recipes),
            "synthesis_observe": len(recipes) * shards,
            "controller_train": len(trained),
            "evaluate_table": len(TABLES),
            "report_figure": len(FIGURES),
        }
    )


def test_a_whole_realx3d_build_has_the_expected_jobs(realx3d):
    config = realx3d.config()
    assert config["datasets"]["realx3d"]["scenes"] == list(VIEWS)
    jobs = realx3d.jobs()
    assert jobs == expected(config)
    assert jobs["controller_train"] == 14 + 2 * 8, "no_delta shares the method's; action_draws, leave_out: one a scene"
    assert jobs["capture_source"] == 8 and jobs["isp_calibrate"] == 2 * 8, "variants share captures, and two bases"
    skipped = checked(Config, config).skipped
    assert set(skipped) <= {"aod_net", "maxim", *RESTORERS, "seathru_nerf", "i2_nerf"}
    assert jobs["splat_train"] == 8 * (len(config["variants"]) - len(skipped))
    assert jobs["views_make"] < jobs["splat_train"] / 3, "rows share the pictures of their fronts"


def test_one_more_row_adds_one_variants_jobs_and_nothing_else(realx3d, tmp_path):
    config = realx3d.config()
    before = expected(config)
    config["variants"]["mine"] = {"like": "couplings_5", "reconcile": "none"}  # with the controller of couplings_5
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    after = Counter(realx3d.jobs("--configfile", str(path)))
    per_result = ("develop_scene", "splat_train", "render_held", "render_source", "evaluate_score")
    assert after - before == {rule: 8 for rule in per_result} and not before - after
