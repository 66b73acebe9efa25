"""How the one command runs the workflow: what it shows, what it says when a job fails, how it stops."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.photos.follow import CHECKOUT, in_own_names, snakemake, training
from fujinsplat.photos.presets import CPU_GAUSSIANS, PIXELS_PER_GAUSSIAN, PRESETS, cpu_gaussians, settings_of
from fujinsplat.photos.run import Request, run
from fujinsplat.rows.registries import AllSettings


@pytest.fixture(autouse=True)
def only_prepared(monkeypatch):
    """What is left to do is asked of Snakemake in test_command.py; here it is enough that the folder is prepared."""
    monkeypatch.setattr("fujinsplat.photos.run.show_plan", lambda *_: None)


def photographs(folder: Path, count: int = 3) -> Path:
    from PIL import Image

    folder.mkdir(parents=True)
    for number in range(count):
        Image.new("RGB", (90, 60)).save(folder / f"{number}.jpg")
    return folder


def test_what_is_asked_for_is_checked_before_anything_is_written(tmp_path):
    folder, out = photographs(tmp_path / "trip"), tmp_path / "out"
    wrong: dict[str, Any]
    for wrong, words in (
        ({"row": "fujinsplat"}, "the row fujinsplat needs more than photographs"),
        ({"row": "clean_views"}, "the row clean_views needs more than photographs .*is made from clean twins"),
        ({"row": "promptir"}, "the row promptir needs more than photographs .*cannot be built here"),
        ({"row": "nonsense"}, "has no such row"),
        ({"poses": tmp_path / "nowhere"}, "does not exist; name the folder of a COLMAP model"),
        ({"settings": '{"nonsense": 1}'}, "is not a setting"),
    ):
        with pytest.raises(UserError, match=words):
            run(Request(folder, out, plan=True, **wrong))
        assert not out.exists()


def test_files_that_settings_name_lie_where_the_command_is_typed(tmp_path, monkeypatch):
    folder = photographs(tmp_path / "trip")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "c.safetensors").touch()
    monkeypatch.chdir(tmp_path / "here")
    run(
        Request(
            folder, Path("out"), row="fujinsplat", settings='{"controller": {"checkpoint": "c.safetensors"}}', plan=True
        )
    )
    config = yaml.safe_load((tmp_path / "here" / "out" / "config.yaml").read_text())
    named = config["datasets"]["photos"]["settings"]["controller"]["checkpoint"]
    assert named == str(tmp_path / "here" / "c.safetensors")
    monkeypatch.setenv("HOME", str(tmp_path / "here"))
    monkeypatch.chdir(tmp_path)
    run(
        Request(
            folder, Path("o"), row="fujinsplat", settings='{"controller": {"checkpoint": "~/c.safetensors"}}', plan=True
        )
    )
    config = yaml.safe_load((tmp_path / "o" / "config.yaml").read_text())
    assert config["datasets"]["photos"]["settings"]["controller"]["checkpoint"] == named


def test_files_that_a_row_names_lie_where_its_config_does(tmp_path, monkeypatch):
    folder, checkout = photographs(tmp_path / "trip"), tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "Snakefile").touch()
    (checkout / "w.pth").touch()
    (checkout / "tools").mkdir()
    own = {"by": "convir", "command": "r {input} {output} {weights}", "weights": "w.pth", "directory": "tools"}
    rows = {"above": {"front": {"restored": own}}, "convir": {"like": "above", "title": "ConvIR"}}
    (checkout / "config.yaml").write_text(yaml.safe_dump({"variants": rows}))
    monkeypatch.setattr("fujinsplat.photos.run.CHECKOUT", checkout)
    monkeypatch.chdir(tmp_path)
    run(Request(folder, tmp_path / "out", row="convir", plan=True))
    written = yaml.safe_load((tmp_path / "out" / "config.yaml").read_text())["variants"]
    assert written["convir"] == rows["convir"]
    files = {"weights": str(checkout / "w.pth"), "directory": str(checkout / "tools")}
    assert written["above"]["front"]["restored"] == own | files


def test_photographs_that_given_poses_do_not_know_are_left_out_down_to_a_share(tmp_path, capsys):
    folder = photographs(tmp_path / "trip", 8)
    frames = [{"file_path": f"{n}.jpg", "transform_matrix": np.eye(4).tolist()} for n in range(8)]
    poses = tmp_path / "transforms.json"

    def known(count: int) -> None:
        poses.write_text(json.dumps({"fl_x": 80.0, "w": 90, "h": 60, "frames": frames[:count]}))

    known(4)
    run(Request(folder, tmp_path / "out", poses, plan=True))
    home = tmp_path / "out" / "data" / "trip"
    assert sorted(link.name for link in (home / "train").iterdir()) == [f"{n}.jpg" for n in range(4)]
    sentence = f"{folder / '7.jpg'} is left out: {poses} has no pose for it"
    assert sentence in capsys.readouterr().err and sentence in json.loads((home / "left_out.json").read_text())
    known(3)
    with pytest.raises(UserError, match=r"poses for 3 of 8 photographs, and at least 50% .*--poses none"):
        run(Request(folder, tmp_path / "other", poses, plan=True))
    assert not (tmp_path / "other").exists()


TALKS = """
import sys
print("total                   2", flush=True)
print("localrule capture_poses:", flush=True)
print("Finished jobid: 3 (Rule: capture_poses)", flush=True)
print("1 of 2 steps (50%) done", flush=True)
print("Error in rule capture_poses:", flush=True)
print("fujinsplat: 2 problems:", flush=True)
print("  - a.dng is empty", flush=True)
print("  - b.dng is empty", flush=True)
print("Exiting because a job execution failed.", flush=True)
sys.exit(int(sys.argv[1]))
"""


def test_a_failed_job_is_told_in_its_own_words_and_what_another_found(tmp_path, capsys):
    log = tmp_path / "results" / "photos" / "logs" / "capture" / "poses" / "trip.log"
    log.parent.mkdir(parents=True)
    link = tmp_path / "data" / "trip" / "train" / "a_b.dng"
    link.parent.mkdir(parents=True)
    link.symlink_to("/card/a b.DNG")
    log.write_text(f"structure from motion\n7 of 8 views have a pose, 9 points\n{link} is left out: it is dark\n")
    with pytest.raises(UserError) as told:
        snakemake([sys.executable, "-c", TALKS, "1"], tmp_path)
    assert str(told.value) == "2 problems:\n  - a.dng is empty\n  - b.dng is empty"
    said = capsys.readouterr().err
    assert "where each photograph was taken" in said and "7 of 8 views have a pose" in said
    assert "/card/a b.DNG is left out: it is dark" in said and "structure from motion" not in said
    assert "Exiting because" in (tmp_path / "snakemake.log").read_text()
    snakemake([sys.executable, "-c", TALKS, "0"], tmp_path)


def test_how_far_a_training_is_told_while_it_runs(tmp_path):
    log = tmp_path / "results" / "photos" / "checkpoints" / "trip" / "smoke" / "log.jsonl"
    assert training(tmp_path, 0.0) == ""
    log.parent.mkdir(parents=True)
    entry = {"iteration": 700, "loss": 0.1, "iterations_per_second": 24.2}
    log.write_text(json.dumps(entry) + "\n")
    assert training(tmp_path, 0.0) == "iteration 700, 24.2 per second"
    assert training(tmp_path, log.stat().st_mtime + 1) == "", "one that was broken off before"
    log.write_text(json.dumps(entry) + '\n{"itera')
    assert training(tmp_path, 0.0) == "", "a line that is being written"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_workflow_too(tmp_path, number):
    script = (
        "import sys; from pathlib import Path; from fujinsplat.photos.follow import snakemake\n"
        "from fujinsplat.core.errors import UserError\n"
        "code = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'\n"
        "try:\n    snakemake([sys.executable, '-c', code], Path(sys.argv[1]))\n"
        "except UserError as error:\n    print(error)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as on a terminal, also in a background job
    )
    log = tmp_path / "snakemake.log"
    for _ in range(600):
        if log.is_file() and log.read_text().strip():
            break
        time.sleep(0.1)
    child = int(log.read_text())
    process.send_signal(number)
    assert "the same command goes on where it stood" in process.communicate(timeout=60)[0]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_settings(preset):
    chosen = AllSettings.model_validate(settings_of(preset, 777))
    assert chosen.capture.max_side == 777
    assert AllSettings.model_validate(settings_of(preset, None)).splat.iterations <= AllSettings().splat.iterations


def test_a_full_training_without_a_gpu_has_a_bound(tmp_path, capsys, monkeypatch):
    """By the pixels it sees; with a GPU it has the settings' own."""
    from PIL import Image

    for number in range(3):
        Image.new("RGB", (1200, 800)).save(tmp_path / f"{number}.jpg")
    bounds = {}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("fujinsplat.core.gpu.WSL", "/nowhere")
    for where, nodes, size in (("cpu", "", None), ("small", "", 60), ("gpu", __file__, None)):
        monkeypatch.setattr("fujinsplat.core.gpu.NODES", nodes)
        run(Request(tmp_path, tmp_path / where, preset="full", size=size, plan=True))
        config = yaml.safe_load((tmp_path / where / "config.yaml").read_text())
        bounds[where] = config["datasets"]["photos"]["settings"].get("splat", {}).get("max_gaussians")
    assert bounds == {"cpu": 3 * 1200 * 800 // PIXELS_PER_GAUSSIAN, "small": CPU_GAUSSIANS[0], "gpu": None}
    assert "at most 180,000 Gaussians" in capsys.readouterr().err
    assert cpu_gaussians([(6000, 4000)] * 100, 1600) == CPU_GAUSSIANS[1]


def test_messages_name_the_photographs_and_not_our_links(tmp_path):
    train = tmp_path / "data" / "trip" / "train"
    train.mkdir(parents=True)
    (train / "a_b.dng").symlink_to("/card/a b.DNG")
    assert in_own_names("data/trip/train/a_b.dng is truncated", tmp_path) == "/card/a b.DNG is truncated"


def test_photographs_of_several_sizes_are_brought_to_one(tmp_path, capsys):
    from PIL import Image

    for number, size in enumerate([(1200, 800), (1200, 800), (600, 450)]):
        Image.new("RGB", size).save(tmp_path / f"{number}.jpg")
    for preset, side in (("quick", 480), ("usual", 600), ("full", 600)):
        run(Request(tmp_path, tmp_path / preset, preset=preset, plan=True))
        config = yaml.safe_load((tmp_path / preset / "config.yaml").read_text())
        assert config["datasets"]["photos"]["settings"]["capture"]["max_side"] == side
        said = capsys.readouterr().err
        assert ("several sizes" in said) == (f"({tmp_path / '2.jpg'})" in said) == (preset != "quick")
        assert "(--size changes it, up to the 600 of the smallest photograph)" in said
        assert "3 RGB pictures" in said, "what an earlier run left in the folder is no photograph"


def test_nothing_of_the_checkout_is_needed_in_the_working_folder():
    assert (CHECKOUT / "Snakefile").is_file() and Path(CHECKOUT / "config.yaml").is_file()


@pytest.mark.parametrize("name", ["config.yaml", "scene.ply", "cleared/holiday.png", "data/trip/sparse/0/images.txt"])
def test_a_folder_with_files_of_somebody_elses_is_refused_and_left_as_it_is(tmp_path, name):
    from PIL import Image

    (tmp_path / "trip").mkdir()
    for number in range(3):
        Image.new("RGB", (90, 60)).save(tmp_path / "trip" / f"{number}.jpg")
    kept = tmp_path / "out" / name
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(UserError, match=f"holds files that this command did not make.*{name.split('/')[0]}.*--out"):
        run(Request(tmp_path / "trip", tmp_path / "out", plan=True))
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [kept] and kept.read_text() == "mine"


def test_a_folder_of_ours_is_used_again_however_early_the_last_run_ended(tmp_path, monkeypatch):
    from PIL import Image

    (tmp_path / "trip").mkdir()
    for number in range(3):
        Image.new("RGB", (90, 60)).save(tmp_path / "trip" / f"{number}.jpg")

    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    request = Request(tmp_path / "trip", tmp_path / "out", plan=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("in nobody's way")
    with monkeypatch.context() as patched:
        patched.setattr("fujinsplat.photos.run.arrange", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(request)
    run(request)
    run(request)
    assert (tmp_path / "out" / "data" / "trip" / "train" / "0.jpg").is_symlink()


def test_what_is_said_of_raw_files_is_true_where_some_are_there(tmp_path, capsys):
    import numpy as np
    from PIL import Image

    from fujinsplat.demo.sensor import write_dng

    for number in range(5):
        Image.new("RGB", (96, 64)).save(tmp_path / f"{number}.jpg")
    write_dng(tmp_path / "0.dng", np.full((64, 96), 3000, np.uint16))
    run(Request(tmp_path, tmp_path / "out", plan=True))
    said = capsys.readouterr().err
    assert "no RAW files" not in said and "decoded light" in said
    assert f"not used: {tmp_path / '0.dng'} is left out: most JPG and PNG files" in said


def test_a_view_that_could_not_be_made_is_not_handed_out_and_tried_again(tmp_path, capsys, monkeypatch):
    from PIL import Image

    from fujinsplat.report import viewer

    (tmp_path / "trip").mkdir()
    for number in range(3):
        Image.new("RGB", (90, 60)).save(tmp_path / "trip" / f"{number}.jpg")
    out = tmp_path / "out"
    page = out / "results/photos/viewer/trip.html"
    tried = []

    def build(*_):
        """As Snakemake does: makes what is missing."""
        (out / "results/photos/export/trip/smoke/cleared").mkdir(parents=True, exist_ok=True)
        if not page.exists():
            tried.append(len(tried))
            page.parent.mkdir(parents=True, exist_ok=True)
            viewer.write_view(tmp_path / "no.ply", tmp_path / "no.json", page, "trip")

    def without_node(*_):
        raise viewer.ViewerMissing("Node is not installed")

    monkeypatch.setattr("fujinsplat.photos.run.snakemake", build)
    for make, shown in ((without_node, False), (lambda *_: "<p>a view</p>", True), (without_node, True)):
        monkeypatch.setattr(viewer, "make_view", make)
        run(Request(tmp_path / "trip", out))
        assert (out / "view.html").exists() == shown == ("walk through it" in capsys.readouterr().err)
    assert tried == [0, 1], "a page that shows something stays"


def test_the_folder_of_the_photographs_is_no_place_for_results(tmp_path):
    from PIL import Image

    for number in range(3):
        Image.new("RGB", (90, 60)).save(tmp_path / f"{number}.jpg")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for out in (tmp_path, tmp_path / "link"):
        with pytest.raises(UserError, match="is the folder of the photographs itself; choose another"):
            run(Request(tmp_path, out, plan=True))
    assert len(list(tmp_path.iterdir())) == 4


def test_the_size_of_photographs_of_one_size_is_free(tmp_path, capsys):
    from PIL import Image

    for number in range(3):
        Image.new("RGB", (90, 60)).save(tmp_path / f"{number}.jpg")
    run(Request(tmp_path, tmp_path / "out", plan=True))
    assert "(--size changes it)" in capsys.readouterr().err
