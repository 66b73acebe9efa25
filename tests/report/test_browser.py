"""report.html in a real headless Chromium: what a person would see and do."""

import numpy as np
import pytest
from PIL import Image

from tests.report.conftest import BLOBS, FOCAL, HEIGHT, WIDTH, camera


def test_it_opens_without_errors_or_network(report, open_page):
    seen = open_page(report)
    seen.page.wait_for_load_state("networkidle")
    assert seen.problems == []
    assert seen.beyond_the_file() == []
    assert seen.page.title() == "FujinSplat · toy"
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
    assert seen.page.evaluate(broken) == 0


def test_tables_are_filled_and_sort(report, open_page):
    page = open_page(report).page
    for name in ("main", "ablation", "capacity", "settings"):
        assert page.locator(f"#table-{name} tbody tr").count() >= 3, name
    column = "#table-ablation tbody tr td:nth-child(7)"
    head = page.locator("#table-ablation thead th:nth-child(7) button")
    assert head.inner_text().startswith("PSNR")

    def shown() -> list[float]:
        return [float(t) for t in page.locator(column).all_inner_texts() if t != "–"]

    head.click()
    assert shown() == sorted(shown(), reverse=True) == [20.5, 11.5]
    assert page.locator(column).last.inner_text() == "–"
    head.click()
    assert shown() == [11.5, 20.5]
    assert page.locator(column).last.inner_text() == "–", "gaps stay last in both directions"
    first = page.locator("#table-ablation tbody tr").first.locator("th")
    assert first.inner_text() == "RAW base only"


def test_dragging_the_slider_moves_the_border_between_smoke_and_render(report, open_page):
    seen = open_page(report)
    compare = seen.page.locator(".scene").first.locator(".compare").first
    compare.scroll_into_view_if_needed()
    box = compare.bounding_box()

    def row() -> np.ndarray:
        """Brightness along one line of the picture, away from handle and labels."""
        picture = np.asarray(seen.screenshot(clip=box)).mean(-1)
        return picture[int(0.2 * len(picture))]

    middle = row()
    quarter, half = int(0.25 * len(middle)), int(0.5 * len(middle))
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + box["height"] / 3, steps=4)
    seen.page.mouse.up()
    left = row()
    # the smoky picture is a grey veil: brighter on the dark left side than the clean ramp below it
    assert middle[quarter] > 140 and left[quarter] < 90
    assert abs(middle[int(0.8 * len(middle))] - left[int(0.8 * len(left))]) < 4
    assert middle[half - 12] > left[half - 12] + 10
    compare.locator("input").focus()
    seen.page.keyboard.press("End")
    assert row()[quarter] > 140, "the keyboard moves it too"


def test_another_pose_can_be_chosen(report, open_page):
    page = open_page(report).page
    scene = page.locator(".scene").first
    assert scene.locator(".compare:visible").count() == 1
    scene.get_by_role("tab", name="view 0003").click()
    assert scene.locator(".compare:visible").get_attribute("data-pose") == "2"


def find_colours(picture: np.ndarray) -> dict[str, tuple[float, float]]:
    """Centres of the coloured balls, as fractions of the picture (the white one looks like the viewer's buttons)."""
    masks = {
        name: np.all([picture[..., i] > 150 if c else picture[..., i] < 90 for i, c in enumerate(colour)], axis=0)
        for name, (_, colour) in BLOBS.items()
        if name != "white"
    }
    found = {}
    for name, mask in masks.items():
        if mask.sum() > 30:
            y, x = np.nonzero(mask)
            found[name] = (x.mean() / picture.shape[1], y.mean() / picture.shape[0])
    return found


def test_the_3d_view_shows_the_scene_from_its_camera_and_turns_when_dragged(report, open_page, tmp_path):
    seen = open_page(report)
    page = seen.page
    scene = page.locator(".scene").first
    scene.get_by_role("button", name="Walk through it in 3D").click()
    frame = scene.locator("iframe.view")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()

    def until(condition, what: str):
        for _ in range(120):
            page.wait_for_timeout(250)
            colours = find_colours(picture := np.asarray(seen.screenshot(clip=box)))
            if condition(colours):
                return colours
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / "last.png")
        raise AssertionError(f"{what}; see {tmp_path}/last.png")

    before = until(lambda colours: len(colours) == 3, "the 3D view stayed empty")
    view, K = np.array(camera()["viewmat"]), np.array(camera()["K"])
    for name in before:
        where, _ = BLOBS[name]
        x, y, z = K @ (view @ [*where, 1])[:3]
        assert before[name] == pytest.approx((x / z / WIDTH, y / z / HEIGHT), abs=0.02), name
    assert K[0, 0] == FOCAL
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y + 20, steps=6)
    page.mouse.up()
    until(
        lambda now: "red" in now and abs(now["red"][0] - before["red"][0]) > 0.03,
        "dragging did not turn the 3D view",
    )
    assert seen.problems == []
    assert seen.beyond_the_file() == []
    scene.get_by_role("button", name="Close the 3D view").click()
    assert scene.locator("iframe").count() == 0


@pytest.mark.parametrize("width", [360, 768])
def test_it_fits_a_phone(report, open_page, width):
    page = open_page(report, width=width, height=740).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".compare").first.bounding_box()["width"] > 0.8 * min(width, 480)


def test_dark_follows_the_system_and_the_button_changes_it(report, open_page):
    for scheme, dark in (("dark", True), ("light", False)):
        page = open_page(report, color_scheme=scheme).page
        level = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
        assert (page.evaluate(level) < 60) == dark
        page.locator("#theme").click()
        assert (page.evaluate(level) < 60) != dark


def test_a_figure_opens_in_full(report, open_page):
    page = open_page(report).page
    page.locator(".zoom").first.click()
    assert page.locator("#lightbox").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#lightbox").is_visible()
