"""One scene's score file: planted renders, the CSV and JSON they give, and what happens when something is missing."""

import csv
import json
import math

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import sha256, write_json
from fujinsplat.core.settings import EvaluateSettings
from fujinsplat.evaluate.collect import read_scores
from fujinsplat.evaluate.command import app
from fujinsplat.evaluate.scoring import Job, score_scene

NO_LPIPS = EvaluateSettings(lpips=False)
RENDERS = {"held": "renders", "clean": "source_renders"}


def save(path, picture):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


@pytest.fixture
def planted(tmp_path):
    """Two held and three source views; every render is off by a known number of levels."""
    rng = np.random.default_rng(7)
    for part, stems in (("held", ["0004", "0005"]), ("clean", ["0001", "0002", "0003"])):
        write_json(tmp_path / part / "views.json", [{"stem": stem} for stem in stems])
        for i, stem in enumerate(stems):
            reference = rng.integers(0, 200, (32, 48, 3)).astype(np.uint8)
            save(tmp_path / part / f"{stem}.png", reference)
            save(tmp_path / RENDERS[part] / f"{stem}.png", (reference + 4 * (i + 1)).astype(np.uint8))
    (tmp_path / "model.ply").write_bytes(b"ply")
    return tmp_path


def job(folder, **changes) -> Job:
    parts = {"source_renders": folder / "source_renders", "clean": folder / "clean"}
    return Job(folder / "renders", folder / "held", **{**parts, **changes})


def test_a_picture_through_the_medium_has_scores_of_its_own(planted):
    """They stand beside the others, and change no mean of theirs."""
    for stem, level in (("0004", 16), ("0005", 32)):
        reference = np.asarray(Image.open(planted / "held" / f"{stem}.png"))
        save(planted / "medium" / f"{stem}.png", (reference + level).astype(np.uint8))
    out = planted / "metrics" / "v.csv"
    score_scene(job(planted), out, NO_LPIPS)
    without = read_scores(out)
    summary = score_scene(job(planted, medium_renders=planted / "medium"), out, NO_LPIPS)
    scores = read_scores(out)
    expected = sum(20 * math.log10(255 / level) for level in (16, 32)) / 2
    assert scores.mean("through_psnr") == pytest.approx(expected, abs=1e-5)
    assert summary["through_medium"]["psnr"] == pytest.approx(expected)
    assert without.mean("through_psnr") is None
    assert scores.views == without.views and scores.source_psnr == without.source_psnr
    (planted / "medium" / "0004.png").unlink()
    with pytest.raises(UserError, match="lacks 1 of 2 renders"):
        score_scene(job(planted, medium_renders=planted / "medium"), out, NO_LPIPS)


def test_rows_means_and_checksums(planted):
    out = planted / "metrics" / "v.csv"
    about = {"scene": "S", "variant": "v", "seeds": {"splat": 3}}
    score_scene(job(planted, model=planted / "model.ply", about=about), out, NO_LPIPS)
    with out.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    expected = {level: 20 * math.log10(255 / level) for level in (4, 8, 12)}
    assert [(row["split"], row["view"]) for row in rows] == [
        ("held", "0004"),
        ("held", "0005"),
        ("source", "0001"),
        ("source", "0002"),
        ("source", "0003"),
    ]
    assert [float(row["psnr"]) for row in rows] == pytest.approx([*map(expected.get, (4, 8, 4, 8, 12))], abs=1e-6)
    assert all(row["lpips"] == "" for row in rows)
    summary = json.loads(out.with_suffix(".json").read_text())
    assert summary["mean"]["psnr"] == pytest.approx((expected[4] + expected[8]) / 2)
    assert summary["train_psnr"] == pytest.approx(sum(expected.values()) / 3)
    assert summary["lpips"] == {"weights": None, "left_out": "evaluate.lpips is off"}
    assert summary["seeds"] == {"splat": 3}
    assert summary["checksums"]["model"] == sha256(planted / "model.ply")
    assert summary["checksums"]["renders"]["0004"] == sha256(planted / "renders" / "0004.png")
    assert summary["checksums"]["references"]["0001"] == sha256(planted / "clean" / "0001.png")
    assert {"python", "torch", "lpips", "scikit-image"} <= set(summary["versions"])
    assert summary["device"] == "cpu" and summary["seconds"] > 0 and summary["peak_memory_mb"] > 10
    assert read_scores(out).mean("train_psnr") == pytest.approx(summary["train_psnr"], abs=1e-6)


def test_the_same_pictures_give_the_same_file(planted):
    for name in ("a", "b"):
        score_scene(job(planted), planted / f"{name}.csv", NO_LPIPS)
    assert (planted / "a.csv").read_bytes() == (planted / "b.csv").read_bytes()


def test_without_clean_twins_or_source_renders_there_is_no_train_psnr(planted):
    assert score_scene(job(planted, clean=None), planted / "a.csv", NO_LPIPS)["train_psnr"] is None
    assert score_scene(job(planted, source_renders=None), planted / "b.csv", NO_LPIPS)["train_psnr"] is None


@pytest.mark.parametrize("folder, stem", [("renders", "0005"), ("source_renders", "0002")])
def test_a_missing_render_stops_before_any_reference_is_opened(planted, folder, stem):
    (planted / folder / f"{stem}.png").unlink()
    for part in ("held", "clean"):
        for path in (planted / part).glob("*.png"):
            path.write_bytes(b"opened: a reference must not be")
    with pytest.raises(UserError, match=f"renders lacks 1 of . renders \\({stem}\\)"):
        score_scene(job(planted), planted / "out" / "v.csv", NO_LPIPS)
    assert not (planted / "out").exists()


def test_a_damaged_render_is_named(planted):
    (planted / "renders" / "0005.png").write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"0005.png is not a readable picture"):
        score_scene(job(planted), planted / "v.csv", NO_LPIPS)
    assert not list(planted.glob("v.*"))


def test_the_command(planted):
    arguments = ["score", "--renders", planted / "renders", "--held", planted / "held", "--clean", planted / "clean"]
    arguments += ["--source-renders", planted / "source_renders"]
    arguments += ["--out", planted / "v.csv", "--settings", '{"lpips": false}', "--device", "cpu", "--threads", "1"]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("psnr 33.0793")
    assert (planted / "v.csv").is_file() and (planted / "v.json").is_file()
