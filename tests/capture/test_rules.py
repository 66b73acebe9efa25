"""The capture rules on a dataset of one's own: built by Snakemake, and rebuilt only where an input changed."""

import pytest


@pytest.fixture
def mine(world, make_workspace, tmp_path):
    made = make_workspace(tmp_path / "work", ["Kogarashi"])
    config = made.config()
    config["datasets"]["mine"] = {"root": str(world.root), "scenes": ["Hikari"]}
    made.write_config(config | {"dataset": "mine"})
    return made


def test_a_scene_of_ones_own_is_built_once_and_again_only_where_it_changed(mine, world, dng, scenery):
    home = "results/mine/capture/Hikari"
    parts = [f"{home}/{part}" for part in ("source", "clean", "held")]
    mine.snakemake(*parts)
    for name in ("source/0001.npy", "clean/0003.png", "held/0004.png", "cameras.json", "points.ply", "manifest.json"):
        assert (mine.folder / home / name).is_file()
    assert mine.jobs(*parts) == {}
    assert "3 source views" in (mine.folder / "results/mine/logs/capture/Hikari.source.log").read_text()
    dng.write(world.home / "val" / "0002.dng", dng.mosaic_of(scenery(9)))
    assert mine.jobs(*parts) == {"capture_clean": 1}


def test_a_missing_file_stops_the_workflow_before_any_job(mine, world):
    (world.home / "train" / "0002.JPG").unlink()
    done = mine.snakemake("results/mine/capture/Hikari/source", check=False)
    assert done.returncode != 0
    assert "train/0002.dng has no camera RGB (JPG or PNG) of the same name" in done.stdout + done.stderr
    assert not (mine.folder / "results").exists()
