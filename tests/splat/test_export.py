"""Pictures and files that leave the house: renders, camera paths, the PLY, baked display colours."""

import builtins
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from plyfile import PlyData

from fujinsplat.capture import read_cameras
from fujinsplat.core.errors import UserError
from fujinsplat.core.settings import SplatSettings
from fujinsplat.splat.export import agreement, bake, refit, viewer_render
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.path import camera_path
from fujinsplat.splat.ply import read_ply, write_ply
from fujinsplat.splat.render import render_encoded, render_folder, resized


@pytest.fixture
def model():
    from tests.splat.conftest import world

    made = world(300)
    with torch.no_grad():
        made.parameters["shN"] += 0.05 * torch.randn(300, 15, 3, generator=torch.Generator().manual_seed(2))
        made.parameters["opacities"] += torch.randn(300, generator=torch.Generator().manual_seed(3))
    return made


@pytest.fixture
def cameras(scene_files):
    return read_cameras(scene_files.cameras, "source")


def test_ply_keeps_every_number(model, tmp_path):
    write_ply(tmp_path / "a.ply", model, ("a remark",))
    again = read_ply(tmp_path / "a.ply")
    for name, value in model.parameters.items():
        if name == "quats":
            value = torch.nn.functional.normalize(value, dim=-1)
        assert torch.allclose(again.parameters[name], value, atol=1e-6), name


def test_ply_is_the_standard_one(model, tmp_path):
    write_ply(tmp_path / "a.ply", model)
    vertex = PlyData.read(str(tmp_path / "a.ply"))["vertex"]
    names = [p.name for p in vertex.properties]
    assert names[:9] == ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    assert names[9:54] == [f"f_rest_{i}" for i in range(45)]
    assert names[54:] == ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    shn = model.parameters["shN"].detach().numpy()
    assert np.allclose(vertex["f_rest_15"], shn[:, 0, 1])  # channel by channel: green starts at 15
    from gsplat import export_splats

    p = {k: v.detach() for k, v in model.parameters.items()}
    theirs = export_splats(p["means"], p["scales"], p["quats"], p["opacities"], p["sh0"], p["shN"], format="ply")
    (tmp_path / "b.ply").write_bytes(theirs)
    other = PlyData.read(str(tmp_path / "b.ply"))["vertex"]
    for name in ("x", "f_dc_1", "f_rest_7", "f_rest_20", "opacity", "scale_2"):
        assert np.allclose(vertex[name], other[name]), name


@pytest.mark.parametrize("degree", range(4))
def test_ply_of_any_degree(model, tmp_path, degree):
    p = {k: v.detach() for k, v in model.parameters.items()}
    p["shN"] = p["shN"][:, : (degree + 1) ** 2 - 1].clone()
    write_ply(tmp_path / "a.ply", Gaussians(p))
    assert read_ply(tmp_path / "a.ply").sh_degree == degree
    fields = [p.name for p in PlyData.read(str(tmp_path / "a.ply"))["vertex"].properties]
    assert sum(name.startswith("f_rest_") for name in fields) == 45, "many readers ask for degree 3"


def test_an_empty_scene_is_still_a_file(tmp_path, cameras):
    p = {"means": (0, 3), "quats": (0, 4), "scales": (0, 3), "opacities": (0,), "sh0": (0, 1, 3), "shN": (0, 15, 3)}
    empty = Gaussians({name: torch.zeros(shape) for name, shape in p.items()})
    baked = bake(empty, cameras, SplatSettings(bake_steps=3))
    write_ply(tmp_path / "a.ply", baked)
    assert len(read_ply(tmp_path / "a.ply")) == 0
    assert not render_encoded(empty, cameras[0]).any()


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "a.ply").write_text("not a ply")
    with pytest.raises(UserError, match="not a 3DGS PLY"):
        read_ply(tmp_path / "a.ply")
    (tmp_path / "a.safetensors").write_text("x")
    with pytest.raises(UserError, match="not a Gaussian model"):
        Gaussians.load(tmp_path / "a.safetensors")
    with pytest.raises(UserError, match="does not exist"):
        Gaussians.load(tmp_path / "b.safetensors")


def test_linear_model_round_trip(model, tmp_path, cameras):
    model.save(tmp_path / "a.safetensors", {"seed": "1"})
    again = Gaussians.load(tmp_path / "a.safetensors")
    assert torch.equal(render_encoded(model, cameras[0]), render_encoded(again, cameras[0]))


def test_refit_shows_a_lone_gaussian_in_its_display_colour(cameras):
    from tests.splat.conftest import world

    one = world(1)
    with torch.no_grad():
        one.parameters["opacities"][:] = 20.0
        one.parameters["scales"][:] = 3.0
        one.parameters["means"][:] = torch.tensor([0.0, 0, 3])
    ours, shown = render_encoded(one, cameras[0]), viewer_render(refit(one), cameras[0]).detach()
    assert (ours - shown).abs().max() < 0.01


def test_baking_brings_the_viewers_picture_to_ours(model, cameras, scene_files):
    held = read_cameras(scene_files.cameras, "held")
    unbaked = np.mean(list(agreement(model, model, held).values()))
    refitted = np.mean(list(agreement(model, refit(model), held).values()))
    baked = np.mean(list(agreement(model, bake(model, cameras, SplatSettings(bake_steps=150)), held).values()))
    assert unbaked < refitted < baked and baked > 35


def test_pictures_are_what_the_renderer_says(model, cameras, tmp_path):
    render_folder(model, cameras[:2], tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["0000.png", "0001.png"]
    picture = np.asarray(Image.open(tmp_path / "out" / "0001.png"))
    assert np.abs(picture / 255 - render_encoded(model, cameras[1]).numpy()).max() <= 0.5 / 255 + 1e-6


def test_any_resolution_shows_the_same_frame(model, cameras):
    small, large = render_encoded(model, cameras[0]), render_encoded(model, resized(cameras[0], 240))
    assert large.shape == (176, 240, 3)
    reduced = large.reshape(44, 4, 60, 4, 3).mean((1, 3))
    assert (reduced - small).abs().mean() < 0.03


def test_a_path_passes_the_cameras_and_closes(cameras):
    path = camera_path(cameras, 60)
    centres = np.stack([-c.viewmat[:3, :3].T @ c.viewmat[:3, 3] for c in path])
    for c in cameras:
        centre = -c.viewmat[:3, :3].T @ c.viewmat[:3, 3]
        assert np.linalg.norm(centres - centre, axis=1).min() < 1e-6
    steps = np.linalg.norm(np.diff(np.concatenate([centres, centres[:1]]), axis=0), axis=1)
    assert steps.max() < 0.5
    assert all(np.allclose(c.viewmat[:3, :3] @ c.viewmat[:3, :3].T, np.eye(3), atol=1e-9) for c in path)
    with pytest.raises(UserError, match="at least two"):
        camera_path(cameras[:1], 10)


def test_rendering_opens_poses_and_the_model_only(model, scene_files, tmp_path, monkeypatch):
    """Held pictures lie beside the poses; nothing but the two named files may be opened for reading."""
    from typer.testing import CliRunner

    from fujinsplat.splat import command

    model.save(tmp_path / "m.safetensors", {})
    (scene_files.folder / "0006.png").write_bytes(b"a held picture that must not be opened")
    opened, real = [], builtins.open

    def watch(file, mode="r", *args, **kwargs):
        opened.append((str(file), mode))
        return real(file, mode, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", watch)
    arguments = ["render", f"--model={tmp_path / 'm.safetensors'}", f"--cameras={scene_files.cameras}"]
    result = CliRunner().invoke(command.app, [*arguments, f"--out={tmp_path / 'out'}", "--device=cpu"])
    assert result.exit_code == 0, result.output
    assert sorted(p.stem for p in (tmp_path / "out").iterdir()) == ["0006", "0007"]
    assert not any("0006" in file and "r" in mode for file, mode in opened)


def test_command_mistakes_are_sentences(scene_files, tmp_path, model):
    model.save(tmp_path / "m.safetensors", {})
    command = [sys.executable, "-m", "fujinsplat", "splat", "render", f"--cameras={scene_files.cameras}"]
    command += [f"--model={tmp_path / 'm.safetensors'}", f"--out={tmp_path / 'out'}", "--views=side"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "choose held, source or path" in done.stderr and "Traceback" not in done.stderr
