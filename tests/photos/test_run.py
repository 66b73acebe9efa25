"""How the one command runs the workflow: what it shows, what it says when a job fails, how it stops."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from fujinsplat.core.errors import UserError
from fujinsplat.photos.presets import PRESETS, settings_of
from fujinsplat.photos.run import Request, _snakemake, in_own_names, run
from fujinsplat.rows.registries import AllSettings

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
        _snakemake([sys.executable, "-c", TALKS, "1"], tmp_path)
    assert str(told.value) == "2 problems:\n  - a.dng is empty\n  - b.dng is empty"
    said = capsys.readouterr().err
    assert "where each photograph was taken" in said and "7 of 8 views have a pose" in said
    assert "/card/a b.DNG is left out: it is dark" in said and "structure from motion" not in said
    assert "Exiting because" in (tmp_path / "snakemake.log").read_text()
    _snakemake([sys.executable, "-c", TALKS, "0"], tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_workflow_too(tmp_path, number):
    script = (
        "import sys; from pathlib import Path; from fujinsplat.photos.run import _snakemake\n"
        "from fujinsplat.core.errors import UserError\n"
        "code = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'\n"
        "try:\n    _snakemake([sys.executable, '-c', code], Path(sys.argv[1]))\n"
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
        assert ("several sizes" in said) == (preset != "quick")
        assert "3 RGB pictures" in said, "what an earlier run left in the folder is no photograph"


def test_nothing_of_the_checkout_is_needed_in_the_working_folder():
    from fujinsplat.photos.run import CHECKOUT

    assert (CHECKOUT / "Snakefile").is_file() and Path(CHECKOUT / "config.yaml").is_file()
