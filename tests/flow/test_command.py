"""`fujinsplat action show` and `apply`, as people type them."""

import numpy as np
import pytest
import torch

from fujinsplat import flow


@pytest.fixture(scope="module")
def action(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("action") / "two.safetensors"
    flow.save(path, flow.Actions(0.1 * torch.randn(2, flow.size(5, 8)), 5, 8, ["0001", "0002"]))
    return path


def test_show_draws_png_and_pdf(fujinsplat, action, tmp_path):
    from PIL import Image

    fujinsplat("action", "show", action, "--out", tmp_path / "drawn.png", "--view", "0002")
    with Image.open(tmp_path / "drawn.png") as picture:
        assert picture.width > 1000 and np.asarray(picture.convert("L")).std() > 10
    assert (tmp_path / "drawn.pdf").read_bytes().startswith(b"%PDF")


def test_apply_is_the_operator_and_invert_leads_back(fujinsplat, action, tmp_path):
    from skimage import io
    from skimage.data import astronaut

    picture = astronaut()[100:200, 150:300]
    io.imsave(tmp_path / "in.png", picture, check_contrast=False)
    fujinsplat("action", "apply", tmp_path / "in.png", action, "--view", "0001", "--out", tmp_path / "out.png")
    wanted = flow.apply(torch.from_numpy(picture / np.float32(255)), flow.load(action).of("0001"), 5, 8)
    found = io.imread(tmp_path / "out.png")
    assert np.abs(found / 255 - wanted.clamp(0, 1).numpy()).max() <= 0.5 / 255 + 1e-6
    fujinsplat(
        "action", "apply", tmp_path / "out.png", action, "--view", "0001", "--invert", "--out", tmp_path / "back.png"
    )
    inside = (found > 0) & (found < 255)
    difference = np.abs(io.imread(tmp_path / "back.png").astype(int) - picture)[inside.all(axis=2)]
    assert np.median(difference) <= 1


def test_sixteen_bits_stay_sixteen(fujinsplat, action, tmp_path):
    import tifffile

    levels = np.linspace(0, 65535, 30 * 40 * 3).reshape(30, 40, 3).astype(np.uint16)
    tifffile.imwrite(tmp_path / "in.tif", levels, photometric="rgb")
    fujinsplat("action", "apply", tmp_path / "in.tif", action, "--out", tmp_path / "out.tif")
    result = tifffile.imread(tmp_path / "out.tif")
    assert result.dtype == np.uint16 and len(np.unique(result)) > 2000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "none.safetensors", "--out", "x.png"], "none.safetensors does not exist"),
        (["show", "{action}", "--view", "9", "--out", "x.png"], "no action of view '9'; there are: 0001, 0002"),
        (["apply", "none.png", "{action}", "--out", "x.png"], "none.png does not exist"),
        pytest.param(
            ["apply", "{action}", "{action}", "--out", "x.png"],
            "is not a readable picture",
            marks=pytest.mark.filterwarnings(
                "ignore::pytest.PytestUnraisableExceptionWarning"
            ),  # imageio leaves it open
        ),
    ],
)
def test_mistakes_are_one_sentence(fujinsplat, action, tmp_path, arguments, message):
    given = [str(a).replace("{action}", str(action)) for a in arguments]
    given[-1] = tmp_path / given[-1]
    done = fujinsplat("action", *given, code=2)
    assert message in done.stderr and "Traceback" not in done.stderr and not list(tmp_path.iterdir())
