"""Points of the views themselves, light of pictures without RAW, and figures."""

import numpy as np
import pytest
import torch
from smoky import capture

from fujinsplat.core.color import encode
from fujinsplat.core.errors import UserError
from fujinsplat.smoke import estimate, points_from_views
from fujinsplat.smoke.figure import chosen_views, draw, draw_airlight
from fujinsplat.smoke.model import Smoke
from fujinsplat.smoke.triangulate import stretched


def test_points_of_smoky_views_lie_on_the_surfaces():
    large = capture(count=6, scale=4)
    xyz, rgb = points_from_views(large.views, large.cameras)
    assert xyz.dtype == np.float32 and rgb.dtype == np.uint8 and len(xyz) == len(rgb) >= 100
    on_wall = np.abs(xyz[:, 2] - xyz[:, 0] / 4 - 4.5) < 0.1
    on_square = np.abs(xyz[:, 2] - 2.8) < 0.1
    assert (on_wall | on_square).mean() > 0.8


def test_too_few_points_are_refused():
    blank = capture(count=2)
    with pytest.raises(UserError, match="points were found in the smoky views"):
        points_from_views(torch.full_like(blank.views, 0.1), blank.cameras)


def test_stretching_uses_the_whole_range(smoky):
    picture = stretched(smoky.views[0].numpy())
    assert picture.dtype == np.uint8 and picture.min() == 0 and picture.max() == 255


def test_figures_are_drawn(smoky, tmp_path):
    from fujinsplat.core.style import save

    found = estimate(smoky.views, smoky.cameras, smoky.depth, smoky.trusted)
    chosen = chosen_views(found)
    means = [float(found.transmission_of(view).mean()) for view in chosen]
    assert len(chosen) == 6 and means == sorted(means, reverse=True)
    save(draw(found, smoky.views, lambda light: encode(np.clip(3 * light, 0, 1)), "wall"), tmp_path / "smoke.png")
    k = np.linspace(0.5, 1.5, 50)
    m = (1 - k)[:, None] * found.colour.numpy()
    save(draw_airlight(k, m, found.colour.numpy(), "wall"), tmp_path / "airlight.png")
    assert (tmp_path / "smoke.png").stat().st_size > 10_000 and (tmp_path / "airlight.png").is_file()


def test_views_of_several_sizes_are_refused_in_a_sentence(tmp_path):
    import numpy as np
    import pytest

    from fujinsplat.capture import Camera
    from fujinsplat.core.errors import UserError
    from fujinsplat.smoke.light import hazy_light

    cameras = [Camera(str(n), 48 + 16 * n, 32, np.eye(3), np.eye(4)) for n in range(2)]
    with pytest.raises(UserError, match=r"views of 2 sizes \(48x32, 64x32\)"):
        hazy_light(tmp_path, cameras)


def test_an_estimate_of_no_numbers_is_refused(tmp_path):
    shapes = {"colour": 3, "level": (2, 3), "grid": (2, 2, 2), "slope": (2, 1, 1), "depth": (2, 4, 6)}
    tensors = {name: torch.ones(shape) for name, shape in shapes.items()}
    made = Smoke(**tensors, trusted=torch.ones(2, 4, 6).bool(), stems=("1", "2"), statistics={}, keep=1.0, floor=0.0)
    made.depth[0, 0, 0] = 1e6  # half precision has no such number
    made.save(tmp_path / "s.safetensors")
    assert Smoke.load(tmp_path / "s.safetensors").depth[0, 0, 0] > 65504
    for name in shapes:
        tensors[name].view(-1)[0] = torch.nan
        made.save(tmp_path / "s.safetensors")
        with pytest.raises(UserError, match=f"{name} holds values that are not finite; estimate the smoke again"):
            Smoke.load(tmp_path / "s.safetensors")
        tensors[name].view(-1)[0] = 1.0
