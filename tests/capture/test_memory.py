"""Memory is bounded by a few views, however many a scene has."""

import subprocess
import sys

CODE = """
import resource, sys
from fujinsplat.cli import main
sys.argv = ["fujinsplat", "capture", "source", *sys.argv[1:]]
try:
    main()
except SystemExit as ending:
    assert not ending.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def test_memory_does_not_grow_with_the_number_of_views(world, scenery, dng, tmp_path):
    """Ten views of two megapixels hold no more than three do, up to the size of one decoded view."""
    width, height, count = 1728, 1152, 10
    mosaic = dng.mosaic_of(scenery(1, width, height))
    train = world.home / "train"
    for path in train.iterdir():
        path.unlink()
    peaks = {}
    for first, views in ((1, 3), (4, count)):
        for number in range(first, views + 1):
            dng.write(train / f"{number:04d}.dng", mosaic)
            dng.write_jpg(train / f"{number:04d}.JPG", scenery(1))
        world.transforms("train", list(range(1, views + 1)))
        arguments = [world.root, world.scene, "--out", tmp_path / "out", "--threads", "1"]
        done = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True)
        peaks[views] = float(done.stdout)
    one_view = width * height * 3 * 2 / 2**20
    assert peaks[count] - peaks[3] < one_view, peaks
