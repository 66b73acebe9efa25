"""Figures: what they show follows from the results, and they are written as PNG and PDF."""

import numpy as np
import pytest
from PIL import Image

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_json
from fujinsplat.develop.store import Developed
from fujinsplat.evaluate.provenance import Record, rule_edges
from fujinsplat.evaluate.scoring import write_csv
from fujinsplat.paths import inside
from fujinsplat.report.figures import FIGURES, write_figure
from fujinsplat.report.figures.chart import find_chart
from fujinsplat.report.figures.grids import nearest_source
from fujinsplat.report.figures.pipeline import job_counts, layout, reduced
from fujinsplat.views.store import Pictures, Views
from tests.report.conftest import METHOD, camera, make_outline

# the patches of a colour chart, sRGB
PATCHES = """735244 c29682 627a9d 576c43 8580b1 67bdaa d67e2c 505ba6 c15a63 5e3c6c 9dbc40 e0a32e
383d96 469449 af363c e7c71f bb5695 0885a1 f3f3f2 c8c8c8 a0a0a0 7a7a79 555555 343434""".split()


def room_with_chart(x: int, y: int, cell: int = 12, noise: int = 6) -> np.ndarray:
    """A brown room with a green plant and a chart of 6 x 4 patches at (x, y)."""
    rng = np.random.default_rng(x)
    room = np.full((240, 360, 3), (120, 90, 70), np.int64)
    room[150:200, 20:80] = (40, 120, 50)
    room[20:60, 300:350] = (60, 90, 160)
    for i, patch in enumerate(PATCHES):
        top, left = y + cell * (i // 6), x + cell * (i % 6)
        room[top : top + cell - 1, left : left + cell - 1] = [int(patch[j : j + 2], 16) for j in (0, 2, 4)]
    return np.clip(room + rng.integers(-noise, noise + 1, room.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("x, y, cell", [(150, 100, 12), (30, 30, 8), (250, 160, 14)])
def test_the_chart_is_found_where_it_is(x, y, cell):
    left, top, width, height = find_chart(room_with_chart(x, y, cell))
    middle = (left + width / 2, top + height / 2)
    assert abs(middle[0] - (x + 3 * cell)) < 2.2 * cell and abs(middle[1] - (y + 2 * cell)) < 2.2 * cell


def test_a_room_without_a_chart_has_no_inset():
    plain = np.full((240, 360, 3), (120, 90, 70), np.uint8)
    plain[150:200, 20:80] = (40, 120, 50)
    assert find_chart(plain) is None


@pytest.fixture
def drawn(planted):
    """The planted results with what figures need beyond them."""
    for scene in ("Yama", "Kawa"):
        for part, stems in (("source", ("0001", "0002", "0003")), ("held", ("0004", "0005"))):
            write_json(inside(planted, part, scene=scene) / "views.json", [{"stem": stem} for stem in stems])
        stems = ["0001", "0002", "0003"]
        rng = np.random.default_rng(0)
        pictures = Pictures({stem: rng.integers(0, 255, (24, 36, 3), np.uint8) for stem in stems})
        Views.write(planted / "views" / scene / "base.safetensors", pictures, "base")
        actions = 0.3 * rng.normal(size=(3, 573))
        Developed.write(planted / "developed" / scene / "fujinsplat.safetensors", actions, stems, 7, 16, "controller")
    energy = {"energy": [0.95, 0.98, 1.0], "energy_centred": [0.4, 0.7, 1.0]}
    write_json(planted / "analysis" / "family" / "result.json", {"result": energy})
    return planted


@pytest.mark.parametrize("name", ["qualitative", "ablation_renders", "training", "mcf", "action_family"])
def test_figures_are_written_twice_and_are_not_empty(drawn, outline, name, tmp_path):
    paths = write_figure(name, drawn, outline, tmp_path / "figures")
    assert [path.suffix for path in paths] == [".png", ".pdf"]
    picture = np.asarray(Image.open(paths[0]).convert("RGB"))
    assert picture.shape[1] == pytest.approx(1400, abs=60)
    assert picture.std() > 10
    assert paths[1].read_bytes().startswith(b"%PDF")


def test_capacity_needs_scores_and_draws_them(tmp_path, outline):
    with pytest.raises(UserError, match="no scored variant of any capacity"):
        write_figure("capacity", tmp_path, outline, tmp_path)
    rows = {
        "ours": METHOD,
        "k5": {"like": "ours", "settings": {"flow": {"K": 5}}, "paper": "K=5"},
        "m8": {"like": "ours", "settings": {"flow": {"M": 8}}, "paper": "M=8"},
    }
    for i, name in enumerate(rows):
        row = {"split": "held", "view": "1", "psnr": 18.0 + i, "ssim": 0.5, "lpips": 0.5}
        write_csv(tmp_path / "metrics" / "Yama" / f"{name}.csv", [row])
    from fujinsplat.report.figures.curves import capacity

    figure = capacity(tmp_path, make_outline(rows, ["Yama"]))
    couplings = figure.axes[0].lines[0]
    assert couplings.get_xdata().tolist() == [5, 7] and couplings.get_ydata().tolist() == [19.0, 18.0]


def test_what_cannot_be_drawn_says_why(tmp_path, outline):
    for name in set(FIGURES) - {"mcf"}:  # a drawing of the operator itself: it needs nothing
        with pytest.raises(UserError):
            write_figure(name, tmp_path, outline, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
    with pytest.raises(UserError, match="did you mean 'pipeline'"):
        write_figure("pipelin", tmp_path, outline, tmp_path)


def test_the_hazy_input_is_the_nearest_pose_that_looks_the_same_way(tmp_path):
    source = [camera((3, -2, 1.5), stem="far"), camera((1.1, -2, 1.5), stem="near")]
    source.append(camera((1.0, -2, 1.5), target=(5, -9, 1.5), stem="near, looking away"))
    path = tmp_path / "capture" / "Yama"
    path.mkdir(parents=True)
    write_json(path / "cameras.json", {"source": source, "held": [camera((1, -2, 1.5), stem="held")]})
    assert nearest_source(tmp_path, "Yama", "held") == "near"


RECORDS = [
    Record("data/A", "demo_scene", (), "demo A", 0.0, 1.0),
    Record("r/capture/A/source", "capture_source", ("data/A/train/1.dng",), "capture A", 0.0, 2.0),
    Record("r/capture/A/cameras.json", "capture_source", ("data/A/poses.json",), "capture A", 0.1, 2.5),
    Record("r/capture/B/source", "capture_source", ("data/B",), "capture B", 1.0, 4.0),
    Record("r/base/A.safetensors", "isp_calibrate", ("r/capture/A/source",), "isp A", 5.0, 9.0),
    Record("r/out/A.ply", "splat_train", ("r/base/A.safetensors", "r/capture/A/source/1.png"), "splat A", 9.0, 19.0),
]


def test_the_pipeline_is_drawn_from_what_ran():
    edges = rule_edges(RECORDS)
    assert edges == {
        ("demo_scene", "capture_source"),
        ("capture_source", "isp_calibrate"),
        ("isp_calibrate", "splat_train"),
        ("capture_source", "splat_train"),
    }
    jobs, seconds = job_counts(RECORDS)
    assert jobs == {"demo_scene": 1, "capture_source": 2, "isp_calibrate": 1, "splat_train": 1}
    assert seconds["capture_source"] == 5.5
    assert edges - reduced(edges) == {("capture_source", "splat_train")}
    places = layout(sorted(jobs), reduced(edges))
    order = ("demo_scene", "capture_source", "isp_calibrate", "splat_train")
    assert [places[rule][1] for rule in order] == [0, 1, 2, 3]


@pytest.mark.parametrize("box", [(70, 5, 20, 10), (5, 5, 20, 10), (70, 45, 20, 10), (5, 45, 20, 10), None])
def test_an_enlarged_chart_never_covers_the_number(box):
    from fujinsplat.report.figures.grids import _grid

    fig = _grid({(0, 0): (np.zeros((60, 100, 3), np.uint8), box, "21.47")}, ["row"], ["column"], None)
    fig.draw_without_rendering()
    ax = fig.axes[0]
    number = ax.texts[0].get_window_extent()
    assert len(ax.child_axes) == (box is not None)
    assert not any(chart.get_window_extent().overlaps(number) for chart in ax.child_axes)
    assert ax.get_window_extent().contains(number.x0, number.y0) and ax.get_window_extent().contains(
        number.x1, number.y1
    )


def test_the_drawn_coupling_keeps_volume(tmp_path, outline):
    from fujinsplat.report.figures.flow import mcf

    curve, _, jacobian = mcf(tmp_path, outline).axes[:3]
    heights = [bar.get_height() for bar in curve.patches]
    assert sum(heights) == pytest.approx(1) and min(heights) > 0
    numbers = [float(text.get_text()) for text in jacobian.texts]
    assert [numbers[i] for i in (0, 4, 8)] == [1, 1, 1] and [numbers[i] for i in (1, 2, 5)] == [0, 0, 0]
