"""The plan of a whole RealX3D build, on a stand-in for its folders: the number of jobs of each rule."""

import csv
import json
import math
from collections import Counter

import pytest
import yaml

from fujinsplat.config import SynthesisSettings

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


def controllers(variants: dict[str, dict], scenes: list[str]) -> tuple[set, set]:
    """(controllers, recipes) that the rows of the variant table need, by what tells them apart."""
    trained, recipes = set(), set()
    for row in variants.values():
        flags = (row.get("curves", True), row.get("couplings", True))
        if row.get("input", "raw") == "none" or row.get("oracle", "none") != "none" or not any(flags):
            continue
        shape = (row.get("K", 7), row.get("M", 16), *flags)
        draws = (row.get("labels", "published"), row.get("coordinate", "base"), row.get("draws", "veil"))
        for scene in scenes if "actions" in draws else [None]:  # drawn from actions: one each, without its own scene's
            recipe = (*shape, *draws, scene)
            recipes.add(recipe)
            trained.add((row.get("input", "raw"), row.get("objective", "label"), recipe))
    return trained, recipes


def expected(config: dict) -> Counter:
    """The jobs of a build of every variant: what is shared counts once, what a variant alone needs counts per row."""
    scenes, variants = config["datasets"]["realx3d"]["scenes"], config["variants"]
    trained, recipes = controllers(variants, scenes)
    shards = math.ceil(CAPTURES / SynthesisSettings().shard)
    once_per_scene = ("capture_source", "capture_clean", "capture_held", "isp_calibrate", "actions_fit", "actions_veil")
    per_result = ("develop_scene", "splat_train", "render_held", "render_source", "evaluate_score")
    once = ("actions_population", "synthesis_network", "synthesis_base", "synthesis_gallery", "report_page")
    studies = ("rank_one", "base_fidelity", "observability", "family")
    return Counter(
        {
            **{rule: len(scenes) for rule in (*once_per_scene, "report_view")},
            **{rule: len(scenes) * len(variants) for rule in per_result},
            **{rule: 1 for rule in (*once, *(f"analysis_{study}" for study in studies))},
            "synthesis_sample": shards,
            "synthesis_draw": len(recipes),
            "synthesis_observe": len(recipes) * shards,
            "controller_train": len(trained),
            "evaluate_table": 9,
            "report_figure": 5,
        }
    )


def test_a_whole_realx3d_build_has_the_expected_jobs(realx3d):
    config = realx3d.config()
    assert config["datasets"]["realx3d"]["scenes"] == list(VIEWS)
    jobs = realx3d.jobs()
    assert jobs == expected(config)
    assert jobs["splat_train"] == 8 * 20, "eight scenes; eighteen variants and two reference rows"
    assert jobs["controller_train"] == 13 + 8, "no_delta shares the method's; action_draws has one per scene"
    assert jobs["capture_source"] == jobs["isp_calibrate"] == 8, "variants share captures and bases"


def test_one_more_row_adds_one_variants_jobs_and_nothing_else(realx3d, tmp_path):
    config = realx3d.config()
    before = expected(config)
    config["variants"]["mine"] = {"delta": False, "K": 5}  # its controller is that of couplings_5
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    after = Counter(realx3d.jobs("--configfile", str(path)))
    per_result = ("develop_scene", "splat_train", "render_held", "render_source", "evaluate_score")
    assert after - before == {rule: 8 for rule in per_result} and not before - after
