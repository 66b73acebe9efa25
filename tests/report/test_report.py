"""report.html without a browser: what it gathers, what it says of what is missing, and how large it gets."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fujinsplat.capture.motion.level import turn_to
from fujinsplat.core.errors import UserError
from fujinsplat.evaluate.tables.model import Cell, Row, Table
from fujinsplat.report import viewer
from fujinsplat.report.command import app
from fujinsplat.report.gather import changed_settings, gather, processors, timings
from fujinsplat.report.highlights import highlights
from fujinsplat.report.page import _table, render, write_report
from tests.conftest import same_content
from tests.report.conftest import ROWS, SCENES, camera, make_outline, save, write_ply


def test_one_file_that_names_nothing_outside_itself(report):
    page = report.read_text()
    outside = re.findall(r'(?:src|href)="(?!data:|#)([^"]{1,80})', page.split('id="view-shell"')[0])
    assert outside == []
    assert report.stat().st_size < 8e6, "two scenes, one renderer"


def test_times_in_tables_are_said_to_be_measured_and_marked(tmp_path):
    pages = {minutes: tmp_path / f"{minutes}.html" for minutes in (4.1, 4.2)}
    for minutes, page in pages.items():
        row = Row([Cell("ours"), Cell(20.0), Cell(minutes, 1)])
        page.write_text(_table(Table("t", "T", ["Method", "PSNR", "Minutes"], [row], timed=frozenset([2]))))
        assert "<p>Minutes: measured, and not the same in two runs.</p>" in page.read_text()
    assert pages[4.1].read_text() != pages[4.2].read_text() and same_content(*pages.values())


@pytest.mark.parametrize("about", [[], {"training": 7}, {"training": {"processor": [[0]]}, "processor": {}}])
def test_a_damaged_summary_of_scores_names_no_cpu(tmp_path, about):
    (tmp_path / "metrics/x").mkdir(parents=True)
    (tmp_path / "metrics/x/y.json").write_text(json.dumps(about))
    assert processors(tmp_path) == {}


def test_numbers_times_and_versions(planted, outline):
    content = gather(planted, outline)
    assert content.averages["psnr"] == pytest.approx(20.5)
    assert [scene.gain for scene in content.scenes] == pytest.approx([8, 10])
    assert [(t.label, t.jobs, t.seconds) for t in content.timings] == [
        ("splat train", 4, 340.0),
        ("isp calibrate", 2, 18.0),
    ]
    assert content.timings[0].memory_mb == 512.5
    assert {"Python", "torch", "snakemake"} <= set(content.versions)
    page = render(content)
    assert "+9.00" in page and "20.50" in page and "6.0" in page


def test_settings_that_differ_are_shown_beside_the_papers():
    """For each: the value here, the paper's, and the rows whose result depends on it."""
    usual = changed_settings(make_outline())
    rows = changed_settings(make_outline(splat={"iterations": 2000}, delta={"lr_alpha": 0.01}))
    assert [row for row in rows if row not in usual] == [
        ("delta.lr_alpha", "0.01", "0.005", "FujinSplat"),
        ("splat.iterations", "2000", "18000", "all"),
    ]
    assert set(usual) <= set(rows)
    assert ("synthesis.smoke", "room", "uniform", "FujinSplat, Never built") in usual
    everywhere = {row[0].split(".")[0] for row in usual if row[3] == "all"}
    assert everywhere <= {"isp", "splat"}, "what the uncorrected base depends on, and nothing of the controller's"


def test_a_strip_shows_every_method_and_both_pictures_of_a_medium(planted):
    """One held view: our method, the base, a medium's picture without and with it, and the clean capture."""
    import shutil

    rows = {**ROWS, "seasplat": {"title": "SeaSplat", "front": "camera", "model": "seasplat", "paper": "SeaSplat"}}
    for kind in ("renders", "renders_medium"):
        shutil.copytree(planted / "renders" / "Yama" / "raw_base", planted / kind / "Yama" / "seasplat")
    content = gather(planted, make_outline(rows))
    yama, kawa = (scene.strip for scene in content.scenes)
    titles = ["FujinSplat", "RAW base only", "SeaSplat", "SeaSplat, with its medium", "clean capture"]
    assert [panel.title for panel in yama] == titles
    assert [panel.psnr for panel in yama[:2]] == [19.0, 11.0] and yama[-1].psnr is None
    assert [panel.title for panel in kawa] == [titles[0], titles[1], titles[-1]]
    assert render(content).count("<figcaption>") >= 8


def test_what_is_missing_is_said_and_the_rest_stands(planted, outline):
    import shutil

    shutil.rmtree(planted / "renders_source" / "Kawa")
    (planted / "metrics" / "Kawa" / "fujinsplat.csv").unlink()
    content = write_report(planted, outline, planted / "report.html")
    missing = " ".join(content.missing)
    assert "Kawa: no render at a source pose" in missing and "Yama: no render" not in missing
    assert "Kawa.html was not built" in missing
    page = (planted / "report.html").read_text()
    assert "Not in this report" in page and page.count('class="compare"') == 3


def test_an_empty_results_folder_makes_a_report_and_an_absent_one_is_an_error(tmp_path, outline):
    (tmp_path / "toy").mkdir()
    write_report(tmp_path / "toy", outline, tmp_path / "toy" / "report.html")
    page = (tmp_path / "toy" / "report.html").read_text()
    assert "Not in this report" in page and "No held view has been scored" in page
    assert "nothing to show yet" in _table(Table("main", "No rows", ["Method"]))
    with pytest.raises(UserError, match="build something first"):
        gather(tmp_path / "absent", outline)


def test_names_cannot_break_the_page(planted, outline):
    nasty = make_outline(dataset="<b>toy</b>")
    page = render(gather(planted, nasty))
    assert "<b>toy</b>" not in page and "&lt;b&gt;toy&lt;/b&gt;" in page


def test_eight_scenes_stay_below_sixty_megabytes(tmp_path, outline):
    """Worst case: noise, which neither JPEG nor packing can make small, at RealX3D's size and the views' limit."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (1180, 1800, 3)).astype(np.uint8)
    results = tmp_path / "toy"
    scene = "Scene1"
    for stem in ("0001", "0002", "0003"):
        save(results / "capture" / scene / "source" / f"{stem}.png", noise)
        save(results / "renders_source" / scene / "fujinsplat" / f"{stem}.png", noise)
    shell = f"<html>{'x' * 3_100_000}{viewer.DATA_MARK}</html>"
    data = json.dumps({"content": "A" * (4 * viewer.SCENE_BYTES // 3)})
    (results / "viewer").mkdir()
    page = shell.replace(viewer.DATA_MARK, viewer.DATA_MARK + data + viewer.DATA_MARK)
    (results / "viewer" / f"{scene}.html").write_text(page)
    one = make_outline(ROWS, [scene])
    write_report(results, one, results / "report.html")
    shared = 4 * len(shell) // 3
    per_scene = (results / "report.html").stat().st_size - shared
    assert shared + 8 * per_scene < 60e6


def test_timings_put_jobs_of_one_kind_together(outline):
    from fujinsplat.evaluate.benchmarks import Run

    runs = [Run("render", f"source/{scene}.fujinsplat", 2.0, None) for scene in SCENES]
    runs += [Run("render", "held/Yama.fujinsplat@2", 1.0, 5.0), Run("synthesis", "observe/default.0003", 1.0, None)]
    assert [(t.label, t.jobs) for t in timings(runs, outline)] == [
        ("render source", 2),
        ("render held", 1),
        ("synthesis observe default", 1),
    ]


# 3D views


@pytest.fixture
def scene(tmp_path):
    write_ply(tmp_path / "scene.ply")
    (tmp_path / "cameras.json").write_text(json.dumps({"source": [camera()], "held": []}))
    return tmp_path


def test_without_node_the_page_says_how_to_add_it(scene, monkeypatch):
    monkeypatch.setattr(viewer.shutil, "which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not viewer.write_view(scene / "scene.ply", scene / "cameras.json", scene / "view.html", "Yama")
    reason = viewer.split_view((scene / "view.html").read_text())
    assert "Node is not installed: install Node 20 or later" in reason and "--forcerun report_view" in reason


def test_an_old_node_is_named(scene, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("node", "npm"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\necho v16.20.2\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(viewer.ViewerMissing, match=r"Node v16.20.2 is too old"):
        viewer.find_tool()


def test_a_view_splits_into_renderer_and_data(scene, tool, monkeypatch):
    monkeypatch.chdir(scene)  # rules name files relative to the working directory
    page = viewer.make_view(Path("scene.ply"), Path("cameras.json"), "Yama")
    shell, data = viewer.split_view(page)
    assert shell.count(viewer.DATA_MARK) == 1
    assert json.loads(data)["title"] == "Yama" and json.loads(data)["filename"] == "scene.compressed.ply"
    assert shell.replace(viewer.DATA_MARK, viewer.DATA_MARK + data + viewer.DATA_MARK) == page
    write_ply(scene / "other.ply", seed=5)
    again, _ = viewer.split_view(viewer.make_view(scene / "other.ply", scene / "cameras.json", "Kawa"))
    assert again == shell, "the renderer is the same for every scene"


def test_large_splats_are_packed_below_the_limit(scene, tool, monkeypatch):
    import base64

    for limit in (60_000, 20_000, 9_000):  # fewer harmonics, none at all, fewer Gaussians
        monkeypatch.setattr(viewer, "SCENE_BYTES", limit)
        data = json.loads(viewer.split_view(viewer.make_view(scene / "scene.ply", scene / "cameras.json", "Yama"))[1])
        assert len(base64.b64decode(data["content"])) < limit + 12_000  # fixed codebooks and headers


@pytest.mark.parametrize("up", [(0, 0, 1), (0, -1, 0), (0, 1, 0), (0.3, -0.5, 0.8)])
def test_turning_upright(up):
    up = np.array(up) / np.linalg.norm(up)
    turn = turn_to(up, np.array([0.0, -1.0, 0.0]))
    assert turn @ up == pytest.approx([0, -1, 0], abs=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1)
    x, y, z = np.radians(viewer._euler(turn))
    rx = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
    ry = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    rz = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
    assert rz @ ry @ rx == pytest.approx(turn, abs=1e-9)


def test_a_damaged_splat_is_named(scene, tool):
    (scene / "scene.ply").write_bytes(b"not a ply")
    with pytest.raises(UserError, match=r"scene.ply is not a Gaussian PLY"):
        viewer.write_view(scene / "scene.ply", scene / "cameras.json", scene / "view.html", "Yama")
    assert not (scene / "view.html").exists()


# the terminal


def test_highlights(planted, outline):
    text = highlights(planted, outline)
    assert "FujinSplat     PSNR 20.50 dB  SSIM 0.700  LPIPS 0.400" in text
    assert "RAW base only  PSNR 11.50 dB" in text and "Never built" not in text


def test_commands(planted, outline):
    given = outline.model_dump_json(exclude_defaults=True)
    done = CliRunner().invoke(app, ["page", str(planted), "--outline", given])
    assert done.exit_code == 0, done.output
    assert (planted / "report.html").is_file()
    done = CliRunner().invoke(app, ["highlights", str(planted), "--outline", given])
    assert "report.html" in done.stdout
    done = CliRunner().invoke(app, ["figures", str(planted), "--figure", "training", "--outline", given])
    assert done.exit_code == 0 and (planted / "figures" / "training.pdf").is_file()


def test_names_in_a_table_stand_as_code_and_nothing_else_becomes_markup():
    table = Table("overview", "All rows", ["Variant", "Row"], [Row([Cell("A <b>"), Cell("`a_row`")])])
    table.caption = "`<i>` is no markup"
    page = _table(table)
    assert "<code>a_row</code>" in page and "<code>&lt;i&gt;</code> is no markup" in page and "`" not in page
    assert "A &lt;b&gt;" in page
