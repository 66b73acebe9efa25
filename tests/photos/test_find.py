"""A folder from a camera card, whatever its names and depth, becomes views; all that is wrong with it is told."""

import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from fujinsplat.capture.layout import find_scene, part_views
from fujinsplat.core.errors import UserError
from fujinsplat.demo.sensor import write_dng
from fujinsplat.photos.arrange import arrange
from fujinsplat.photos.find import find, safe


def shot(path: Path, raw: str | None = ".DNG", rgb: str | None = ".JPG", name_raw: str | None = None) -> None:
    """One photograph as `path` + suffixes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if raw:
        write_dng(path.with_name((name_raw or path.name) + raw), np.full((32, 48), 3000, np.uint16))
    if rgb:
        Image.new("RGB", (48, 32), (90, 80, 70)).save(path.with_name(path.name + rgb))


@pytest.fixture
def card(tmp_path) -> Path:
    for number in (1, 2, 3):
        shot(tmp_path / "card" / f"IMG_{number:04d}")
    return tmp_path / "card"


def names(found) -> list[tuple[str, str | None, str | None]]:
    return [(v.stem, v.raw and v.raw.name, v.rgb and v.rgb.name) for v in found.views]


def test_a_flat_folder(card):
    found = find(card)
    assert found.kind == "pairs" and found.problems == []
    assert names(found) == [(f"IMG_{n:04d}", f"IMG_{n:04d}.DNG", f"IMG_{n:04d}.JPG") for n in (1, 2, 3)]


def test_any_depth_and_folders_of_their_own(tmp_path):
    root = tmp_path / "a trip"
    for number in (1, 2, 3):
        shot(root / "RAW" / "day" / f"x{number}", rgb=None)
        shot(root / "images" / f"X{number}", raw=None, rgb=".jpeg")
    found = find(root)
    assert found.problems == [] and [v.stem for v in found.views] == ["X1", "X2", "X3"]
    assert all(view.raw.parent.name == "day" and view.rgb.parent.name == "images" for view in found.views)


def test_card_folders_that_begin_their_numbers_again(tmp_path):
    root = tmp_path / "DCIM"
    for folder in ("100CANON", "101CANON"):
        for number in (1, 2):
            shot(root / folder / f"IMG_{number}", raw=".dng")
    found = find(root)
    assert found.problems == [] and len(found.views) == 4
    assert [v.stem for v in found.views] == ["100CANON_IMG_1", "100CANON_IMG_2", "101CANON_IMG_1", "101CANON_IMG_2"]
    assert all(view.raw.parent == view.rgb.parent for view in found.views)


@pytest.mark.parametrize(
    "raw, rgb",
    [
        ("x{y}z", "x{y}z"),
        ('it\'s "smoky"', 'it\'s "smoky"'),
        ("a b  c", "A B  C"),
        (unicodedata.normalize("NFD", "Küche"), unicodedata.normalize("NFC", "küche")),
        ("煙", "煙"),
        ("$(rm)%;&", "$(rm)%;&"),
        ("shot", "shot.DNG"),
    ],
)
def test_odd_names(card, raw, rgb):
    shot(card / rgb, name_raw=raw)
    found = find(card)
    assert found.problems == [] and len(found.views) == 4
    odd = next(v for v in found.views if not v.stem.startswith("IMG"))
    assert odd.raw.name == raw + ".DNG" and odd.rgb.name == rgb + ".JPG"
    assert odd.stem == safe(odd.stem)


def test_captures_of_one_kind(tmp_path):
    for number in (1, 2, 3):
        shot(tmp_path / "raw" / str(number), rgb=None)
        shot(tmp_path / "rgb" / str(number), raw=None)
    assert find(tmp_path / "raw").kind == "raw" and find(tmp_path / "rgb").kind == "rgb"
    assert all(view.rgb is None for view in find(tmp_path / "raw").views)


def test_strays_among_pairs_are_named_and_left_out(card):
    shot(card / "phone", raw=None)
    shot(card / "extra", rgb=None)
    found = find(card)
    assert len(found.views) == 3 and found.kind == "pairs"
    assert any("phone.JPG has no RAW file" in p for p in found.problems)
    assert any("extra.DNG has no JPG" in p for p in found.problems)


def test_every_problem_at_once(card):
    (card / "IMG_0001.DNG").write_bytes(b"")
    (card / "IMG_0002.JPG").write_bytes(b"nothing of a picture")
    tifffile.imwrite(card / "scan.tif", np.zeros((4, 4), np.uint8))
    (card / "phone.heic").write_bytes(b"heic")
    tifffile.imwrite(card / "IMG_0003.DNG", np.zeros((32, 48), np.uint16))
    (card / "notes.txt").write_text("not a picture")
    with pytest.raises(UserError) as told:
        find(card)
    for words in (
        "no photographs that can be used",
        "IMG_0001.DNG is empty",
        "IMG_0002.JPG is no JPG",
        "scan.tif is TIFF: export",
        "phone.heic is HEIC: convert",
        "IMG_0003.DNG is a plain TIFF",
    ):
        assert words in str(told.value)
    assert "notes.txt" not in str(told.value)


def test_a_jpeg_by_any_of_its_names_is_one(tmp_path):
    for number, suffix in enumerate((".jpg", ".JPEG", ".jpe", ".JFIF")):
        Image.new("RGB", (48, 32)).save(tmp_path / f"{number}{suffix}", "JPEG")
    found = find(tmp_path)
    assert len(found.views) == 4 and found.problems == []
    arrange(found, tmp_path / "scene", None)
    assert len(part_views(find_scene(tmp_path, "scene"), "source")) == 4


@pytest.mark.parametrize("kind", ["a.dng", "a.jpg", "progressive.jpg", "a.png"])
def test_a_copy_that_broke_off_is_left_out_by_name_and_the_rest_goes_on(card, kind):
    texture = np.random.default_rng(0).integers(0, 255, (64, 96, 3), np.uint8)
    broken = card / f"broken{Path(kind).suffix}"
    if broken.suffix == ".dng":
        shot(card / "broken", raw=None)
        write_dng(broken, texture[..., 0].astype(np.uint16) + 900)
    else:
        shot(card / "broken", rgb=None)
        Image.fromarray(texture).save(broken, progressive=kind.startswith("progressive"))
    whole = broken.read_bytes()
    for share in (0.4, 0.7, 0.9):
        broken.write_bytes(whole[: int(share * len(whole))])
        found = find(card)
        assert [view.stem for view in found.views] == ["IMG_0001", "IMG_0002", "IMG_0003"]
        assert str(found.problems[0]).startswith(f"{broken} ") and "copy it" in found.problems[0]
    broken.write_bytes(whole + b"\xff\xda and what a phone appends: \xff\xff\xff")
    assert len(find(card).views) == 4 and not find(card).problems


@pytest.mark.parametrize("suffix", [".bmp", ".GIF", ".psd"])
def test_pictures_of_other_kinds_are_named_with_a_remedy(card, suffix):
    (card / f"IMG_0004{suffix}").write_bytes(b"a picture")
    (problem,) = find(card).problems
    assert problem.startswith(str(card / f"IMG_0004{suffix}")) and ("convert" in problem or "export" in problem)


@pytest.mark.parametrize("name", ["--help", "-rf", "_-_x-_", "(a)-", "--", "", "été-"])
def test_a_safe_name_is_no_option_and_stays_as_it_is(name):
    assert re.fullmatch("[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?", safe(name)) and safe(safe(name)) == safe(name)


@pytest.mark.skipif(not os.geteuid() and not shutil.which("setpriv"), reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_named(card):
    (card / "locked").mkdir(mode=0)
    script = "import sys; from fujinsplat.photos.find import find; print(*find(sys.argv[1]).problems)"
    plain = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run([*plain, sys.executable, "-c", script, card], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{card / 'locked'} cannot be read: permission denied; give yourself the right")


def test_one_view_is_refused(tmp_path):
    shot(tmp_path / "one")
    with pytest.raises(UserError, match="one photograph that can be used, and at least 3"):
        find(tmp_path)
    with pytest.raises(UserError, match="does not exist; name the folder"):
        find(tmp_path / "nowhere")


def test_hidden_files_links_in_a_circle_and_our_own_output_are_passed_over(card):
    shot(card / ".trash" / "old")
    (card / "._IMG_0001.JPG").write_bytes(b"resource fork")
    (card / "round").symlink_to(card, target_is_directory=True)
    shot(card / "fujinsplat" / "train" / "IMG_0009")
    assert len(find(card, leave_out=[card / "fujinsplat"]).views) == 3


def test_ambiguous_partners_are_told(tmp_path):
    for number in (1, 2, 3):
        shot(tmp_path / f"x{number}")
    shot(tmp_path / "raw" / "twice", rgb=None)
    shot(tmp_path / "a" / "twice", raw=None)
    shot(tmp_path / "b" / "twice", raw=None)
    found = find(tmp_path)
    assert len(found.views) == 3 and any("could belong to" in problem for problem in found.problems)


def test_arranging_twice_changes_nothing(card, tmp_path):
    home = tmp_path / "out" / "scene"
    arrange(find(card), home, None)
    links = sorted((home / "train").iterdir())
    assert [link.name for link in links] == sorted(f"IMG_{n:04d}{s}" for n in (1, 2, 3) for s in (".dng", ".jpg"))
    before = [link.lstat().st_mtime_ns for link in links]
    arrange(find(card), home, None)
    assert [link.lstat().st_mtime_ns for link in links] == before
    for path in card.glob("IMG_0003*"):
        path.unlink()
    shot(card / "new")
    arrange(find(card), home, None)
    assert sorted(p.stem for p in (home / "train").iterdir()) == ["IMG_0001"] * 2 + ["IMG_0002"] * 2 + ["new"] * 2
    shutil.rmtree(card)


@pytest.mark.parametrize("kind", ["raw", "rgb"])
def test_every_file_of_a_mixed_folder_is_used_or_named(card, kind):
    """Three pairs among many views of one kind: the pairs' other halves are of no use."""
    for number in range(10, 18):
        shot(card / f"IMG_{number:04d}", **({"rgb": None} if kind == "raw" else {"raw": None}))
    found = find(card)
    assert found.kind == kind and len(found.views) == 11
    used = {file for view in found.views for file in view.files}
    unused = set(card.iterdir()) - used
    assert len(unused) == len(found.problems) == 3
    assert all(any(problem.startswith(f"{path} is left out") for problem in found.problems) for path in unused)
