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
    home, apart = "results/mine/capture/Hikari", "results/mine/references"
    parts = [f"{home}/source", f"{apart}/clean/Hikari", f"{apart}/held/Hikari"]
    mine.snakemake(*parts)
    for name in ("source/0001.npy", "cameras.json", "points.ply", "manifest.json"):
        assert (mine.folder / home / name).is_file()
    assert (mine.folder / parts[1] / "0003.png").is_file() and (mine.folder / parts[2] / "0004.png").is_file()
    assert mine.jobs(*parts) == {}
    assert "3 source views" in (mine.folder / "results/mine/logs/capture/source/Hikari.log").read_text()
    dng.write(world.home / "val" / "0002.dng", dng.mosaic_of(scenery(9)))
    assert mine.jobs(*parts) == {"capture_clean": 1}


def test_a_missing_file_stops_the_workflow_before_any_job(mine, world):
    (world.home / "train" / "0002.JPG").unlink()
    done = mine.snakemake("results/mine/capture/Hikari/source", check=False)
    assert done.returncode != 0
    assert "train/0002.dng has no camera RGB (JPG or PNG) of the same name" in done.stdout + done.stderr
    assert not (mine.folder / "results").exists()


def test_a_mistake_in_the_folder_is_one_sentence_without_a_traceback(mine, world):
    (world.home / "train" / "0002.JPG").unlink()
    (world.home / "train" / "0003.dng").unlink()
    done = mine.snakemake("--dry-run", "results/mine/capture/Hikari/source", check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "0002.dng has no camera RGB" in said and "0003.JPG has no RAW file" in said
    assert "Traceback" not in said and "InputFunctionException" not in said and "Wildcards" not in said


def test_braces_in_names_do_not_stop_the_plan(mine, world):
    for kind in ("dng", "JPG"):
        (world.home / "train" / f"0002.{kind}").rename(world.home / "train" / f"x{{y}}z.{kind}")
    frames = world.frames("train", [1, 3])["frames"] + world.frames("train", [2])["frames"]
    frames[2]["file_path"] = "train/x{y}z.JPG"
    world.transforms("train", [], frames=frames)
    mine.snakemake("results/mine/capture/Hikari/source")
    assert (mine.folder / "results/mine/capture/Hikari/source/x{y}z.npy").is_file()


def test_poses_are_found_where_a_scene_brings_none(mine, world):
    target = "results/mine/capture/Hikari/cameras.json"
    assert mine.jobs(target) == {"capture_source": 1}
    (world.home / "point3d.ply").unlink()
    assert mine.jobs(target) == {"capture_poses": 1, "capture_source": 1}
    world.without_transforms()
    assert mine.jobs(target) == {"capture_poses": 1, "capture_source": 1}


def test_rows_that_need_clean_twins_of_a_dataset_without_them(mine):
    config = mine.config()
    config["datasets"]["mine"]["clean_twins"] = False
    mine.write_config(config | {"build": "expert_actions"})
    done = mine.snakemake("--dry-run", "results/mine/gaussians/Hikari/expert_actions.ply", check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in said
    assert "dataset mine has clean_twins: false, and the rows expert_actions need clean twins; build other rows" in said
    assert "set clean_twins: false" not in said and "name a controller" not in said, "no controller makes an oracle"
