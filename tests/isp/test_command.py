"""`fujinsplat isp` on files as the capture stage writes them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from fujinsplat.capture import SourceViews
from fujinsplat.core.errors import UserError
from fujinsplat.isp import clean_fidelity, load, source_fidelity
from fujinsplat.isp.command import app

from .camera import CAMERA_MATRIX, WHITE_BALANCE, SimulatedViews
from .test_storage import authors_state

SHORT = '{"warmup_steps": 2, "joint_steps": 3, "pixels": 500, "patches": 2}'


def write_views(folder, views):
    folder.mkdir(parents=True)
    rows = []
    for stem in views.stems:
        np.save(folder / f"{stem}.npy", np.rint(views.raw(stem) * 65535).astype(np.uint16))
        Image.fromarray(views.rgb(stem)).save(folder / f"{stem}.png")
        rows.append({"stem": stem, "white_balance": WHITE_BALANCE.tolist(), "camera_matrix": CAMERA_MATRIX.tolist()})
    (folder / "views.json").write_text(json.dumps(rows))


@pytest.fixture
def scene(tmp_path):
    write_views(tmp_path / "Yama" / "source", SimulatedViews(count=2))
    write_views(tmp_path / "Yama" / "clean", SimulatedViews(count=2, hazy=False))
    return tmp_path / "Yama"


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_calibrate_writes_base_and_fidelity_from_source_alone(scene, tmp_path):
    (scene / "clean").rename(tmp_path / "elsewhere")
    out, numbers = tmp_path / "base" / "Yama.safetensors", tmp_path / "base" / "Yama.json"
    result = run("calibrate", "--source", scene / "source", "--out", out, "--fidelity", numbers, "--settings", SHORT)
    assert result.exit_code == 0
    written = json.loads(numbers.read_text())
    assert written["scene"] == "Yama" and written["origin"] == "calibrated"
    assert [row["stem"] for row in written["views"]] == ["0000", "0001"]
    again = source_fidelity(load(out), SourceViews(scene / "source"))
    assert again["hazy_psnr"] == written["hazy_psnr"] > 45 and again["hazy_ssim"] == written["hazy_ssim"] > 0.99
    assert load(out).notes["scene"] == "Yama"
    assert sorted(p.name for p in out.parent.iterdir()) == ["Yama.json", "Yama.safetensors"]


def test_calibrating_twice_gives_the_same_file(scene, tmp_path):
    for name in ("a", "b"):
        run("calibrate", "--source", scene / "source", "--out", tmp_path / name, "--settings", SHORT)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_imported_base_takes_the_place_of_calibration(scene, tmp_path, base):
    torch.save({"state_dict": authors_state(base)}, tmp_path / "authors.pt")
    assert run("import", tmp_path / "authors.pt", "--out", tmp_path / "Yama.imported").exit_code == 0
    settings = json.dumps({"checkpoint": str(tmp_path / "{scene}.imported")})
    out, numbers = tmp_path / "base.safetensors", tmp_path / "base.json"
    run("calibrate", "--source", scene / "source", "--out", out, "--fidelity", numbers, "--settings", settings)
    assert torch.equal(load(out).g9, base.g9)
    written = json.loads(numbers.read_text())
    assert written["origin"] == "imported from authors.pt" and written["hazy_psnr"] < 30
    settings = json.dumps({"checkpoint": str(tmp_path / "{scene}.missing")})
    with pytest.raises(UserError, match=r"Yama\.missing does not exist"):
        run("calibrate", "--source", scene / "source", "--out", out, "--settings", settings)


def test_fidelity_compares_with_the_clean_twins(scene, tmp_path):
    out, numbers = tmp_path / "base.safetensors", tmp_path / "all.json"
    run("calibrate", "--source", scene / "source", "--out", out, "--settings", SHORT)
    shown = run("fidelity", out, "--source", scene / "source", "--clean", scene / "clean", "--out", numbers).stdout
    written = json.loads(numbers.read_text())
    assert f"{written['clean_psnr']:.3f}" in shown and "hazy -> clean PSNR" in shown
    assert abs(written["clean_psnr"] - written["hazy_clean_psnr"]) < 0.2  # a faithful base is as hazy as the camera
    assert written["clean_raw_psnr"] > written["clean_psnr"] + 8  # and develops clean RAW as the camera does
    assert "clean" not in run("fidelity", out, "--source", scene / "source").stdout


def test_missing_twin_is_named(scene, base):
    source, clean = SourceViews(scene / "source"), SourceViews(scene / "clean")
    clean.stems.remove("0001")
    with pytest.raises(UserError, match=r"clean has no twin of view 0001"):
        clean_fidelity(base, source, clean)


def test_refusal_leaves_nothing_behind(scene, tmp_path):
    picture = scene / "source" / "0001.png"
    Image.fromarray(255 - np.asarray(Image.open(picture))).save(picture)
    with pytest.raises(UserError, match="view 0001"):
        run(
            "calibrate",
            "--source",
            scene / "source",
            "--out",
            tmp_path / "out" / "base.safetensors",
            "--settings",
            SHORT,
        )
    assert not (tmp_path / "out").exists()


def test_show_draws_a_base(base, tmp_path):
    from fujinsplat.isp import save

    save(base, tmp_path / "base.safetensors", scene="Yama")
    assert run("show", tmp_path / "base.safetensors", "--out", tmp_path / "base.png").exit_code == 0
    picture = np.asarray(Image.open(tmp_path / "base.png").convert("RGB"))
    assert picture.std() > 20 and (tmp_path / "base.pdf").stat().st_size > 5000


def test_grey_response_rises_and_starts_at_black():
    from fujinsplat.isp.figure import grey_response

    from .test_initial import initial_base

    response = grey_response(initial_base(SimulatedViews(count=1)), np.linspace(0, 1, 50))
    assert np.abs(response[0]).max() < 0.06 and (np.diff(response, axis=0) > -1e-3).all() and response[-1].min() > 0.8


@pytest.mark.parametrize(
    "checkpoint, expected", [(None, []), ("bases/{scene}.safetensors", ["bases/Yama.safetensors"])]
)
def test_rule_waits_for_the_imported_base(checkpoint, expected):
    from types import SimpleNamespace

    from fujinsplat.workflow import Plan

    own = {"root": "data/own", "scenes": ["Yama"], "settings": {"isp": {"checkpoint": checkpoint}}}
    plan = Plan({"dataset": "own", "datasets": {"own": own}, "variants": {"fujinsplat": {}}})
    found = plan.capture.base_checkpoint(SimpleNamespace(dataset="own", scene="Yama", version=""))
    assert found == [str(Path(path).resolve()) for path in expected]
