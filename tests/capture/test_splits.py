"""Source, clean and held pictures cannot reach each other's outputs: spoil two parts and the third does not notice."""

import pytest


def contents(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def spoil(folder):
    """The names stay (they are what tells the parts of a COLMAP model apart); nothing in the files can be read."""
    for path in folder.iterdir():
        path.write_bytes(b"not a picture")


@pytest.mark.parametrize("poses", ["transforms", "colmap"])
def test_each_part_is_made_from_its_own_pictures_alone(capture, poses):
    if poses == "colmap":
        capture.world.without_transforms()
        capture.world.colmap()
    capture.all()
    before = {part: contents(capture.out / part) for part in ("source", "clean", "held")}
    kept = {path: path.read_bytes() for path in capture.world.home.rglob("*") if path.is_file()}
    commands = {"source": capture.source, "clean": capture.clean, "held": capture.held}
    for part, own in (("source", "train"), ("clean", "val"), ("held", "test")):
        for folder in {"train", "val", "test"} - {own}:
            spoil(capture.world.home / folder)
        assert commands[part]() == 0, capture.errors
        assert contents(capture.out / part) == before[part]
        for path, data in kept.items():
            path.write_bytes(data)


def test_parts_are_written_to_places_of_their_own(capture):
    capture.all()
    views = [f"{stem}.{kind}" for stem in ("0001", "0002", "0003") for kind in ("npy", "png")] + ["views.json"]
    expected = ["cameras.json", "manifest.json", "points.ply", "source", "clean", "held", "held/0004.png"]
    expected += ["held/views.json", *(f"{part}/{name}" for part in ("source", "clean") for name in views)]
    assert capture.written() == sorted(expected)
