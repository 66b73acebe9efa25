"""A small real scene on disk: pictures of known Gaussians, their cameras, a rough point cloud, per-view actions."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "smoke"))

WIDTH, HEIGHT, VIEWS, HELD = 60, 44, 6, 2


@dataclass(frozen=True)
class SceneFiles:
    """`folder` holds the files; `held` the true encoded pictures at held poses, which no stage under test is given."""

    folder: Path
    held: dict[str, np.ndarray]

    @property
    def views(self) -> Path:
        return self.folder / "views.safetensors"

    @property
    def developed(self) -> Path:
        return self.folder / "developed.safetensors"

    @property
    def cameras(self) -> Path:
        return self.folder / "cameras.json"

    @property
    def points(self) -> Path:
        return self.folder / "points.ply"

    def arguments(self) -> list[str]:
        return [f"--input={name}={getattr(self, name)}" for name in ("views", "developed", "cameras", "points")]


def world(count: int = 400, seed: int = 4):
    """A coloured, bumpy wall of Gaussians around z = 3."""
    from fujinsplat.splat.model import Gaussians

    g = torch.Generator().manual_seed(seed)
    xy = (torch.rand(count, 2, generator=g) - 0.5) * torch.tensor([5.0, 4.0])
    z = 3 + 0.4 * torch.sin(2 * xy[:, :1]) * torch.cos(2 * xy[:, 1:])
    colour = 0.5 + 0.4 * torch.stack([torch.sin(2 * xy[:, 0]), torch.cos(3 * xy[:, 1]), torch.sin(xy.sum(1))], -1)
    return Gaussians(
        {
            "means": torch.cat([xy, z], 1),
            "quats": torch.randn(count, 4, generator=g),
            "scales": torch.log(torch.tensor(0.12)) + 0.3 * torch.randn(count, 3, generator=g),
            "opacities": torch.full((count,), 3.0),
            "sh0": ((colour**2.2 - 0.5) / 0.28209479177387814)[:, None],
            "shN": torch.zeros(count, 15, 3),
        }
    )


def camera(stem: str, x: float, y: float):
    from fujinsplat.capture import Camera

    viewmat = np.eye(4)
    turn = 0.15 * x
    viewmat[:3, :3] = [[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]]
    viewmat[:3, 3] = -viewmat[:3, :3] @ np.array([x, y, 0.0])
    K = np.array([[50.0, 0, WIDTH / 2], [0, 50.0, HEIGHT / 2], [0, 0, 1]])
    return Camera(stem, WIDTH, HEIGHT, K, viewmat)


@pytest.fixture(scope="session")
def scene_files(tmp_path_factory) -> SceneFiles:
    from fujinsplat.core.files import write_json
    from fujinsplat.develop.store import Developed
    from fujinsplat.splat.render import render_encoded
    from fujinsplat.views.store import Pictures, Views

    folder = tmp_path_factory.mktemp("scene")
    random = np.random.default_rng(3)
    source = [camera(f"{i:04d}", np.cos(i) * 0.8, np.sin(i) * 0.5) for i in range(VIEWS)]
    held = [camera(f"{VIEWS + i:04d}", np.cos(i + 0.5) * 0.6, np.sin(i + 0.5) * 0.3) for i in range(HELD)]
    truth = world()
    pictures = {c.stem: np.rint(render_encoded(truth, c).numpy() * 255).astype(np.uint8) for c in source + held}
    actions = 0.02 * random.standard_normal((VIEWS, 573)).astype(np.float32)
    Views.write(folder / "views.safetensors", Pictures({c.stem: pictures[c.stem] for c in source}), "test")
    Developed.write(folder / "developed.safetensors", actions, [c.stem for c in source], 7, 16, "test")
    write_json(folder / "cameras.json", {"source": [c.to_json() for c in source], "held": [c.to_json() for c in held]})
    xyz = truth.parameters["means"].detach().numpy()[::2] + 0.05 * random.standard_normal((200, 3))
    write_points(folder / "points.ply", xyz)
    return SceneFiles(folder, {c.stem: pictures[c.stem] for c in held})


def write_points(path: Path, xyz: np.ndarray) -> None:
    """Grey points."""
    from plyfile import PlyData, PlyElement

    vertex = np.zeros(len(xyz), [(a, "f4") for a in "xyz"] + [(c, "u1") for c in ("red", "green", "blue")])
    for k, a in enumerate("xyz"):
        vertex[a] = xyz[:, k]
    for c in ("red", "green", "blue"):
        vertex[c] = 128
    PlyData([PlyElement.describe(vertex, "vertex")]).write(str(path))


@pytest.fixture(scope="session")
def smoky_files(tmp_path_factory) -> dict[str, Path]:
    """What a row with the front `cleared` trains on: a wall through known smoke, six views, RAW and a plain base."""
    from PIL import Image
    from smoky import capture

    from fujinsplat import isp
    from fujinsplat.core.files import write_json
    from fujinsplat.develop.store import Developed
    from fujinsplat.views.store import Pictures, Views

    folder, smoky = tmp_path_factory.mktemp("smoky"), capture(6)
    stems = [camera.stem for camera in smoky.cameras]
    balance = np.array([2.0, 1.0, 1.5])
    raw = np.rint(np.clip(smoky.views.numpy() / balance, 0, 1) * 65535).astype(np.uint16)
    pictures = {stem: (view >> 8).astype(np.uint8) for stem, view in zip(stems, raw, strict=True)}
    (folder / "source").mkdir()
    about = {"white_balance": balance.tolist(), "camera_matrix": None}
    write_json(folder / "source" / "views.json", [{"stem": stem, **about} for stem in stems])
    for stem, view in zip(stems, raw, strict=True):
        np.save(folder / "source" / f"{stem}.npy", view)
        Image.fromarray(pictures[stem]).save(folder / "source" / f"{stem}.png")
    Views.write(folder / "views.safetensors", Pictures(pictures), "test")
    Developed.write(folder / "developed.safetensors", np.zeros((6, 573), np.float32), stems, 7, 16, "test")
    write_json(folder / "cameras.json", {"source": [c.to_json() for c in smoky.cameras], "held": []})
    write_points(folder / "points.ply", smoky.points[::3])
    isp.save(isp.BaseISP(), folder / "base.safetensors")
    files = {"cameras": "cameras.json", "points": "points.ply", "source": "source"}
    return {name: folder / files.get(name, f"{name}.safetensors") for name in ("views", "developed", "base", *files)}
