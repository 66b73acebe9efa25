"""A tiny scene with real files: DNG mosaics, JPEGs, poses in three forms and points, which tests then spoil."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from plyfile import PlyData, PlyElement

from fujinsplat.core.color import encode

WIDTH, HEIGHT, BLACK, WHITE = 48, 32, 512, 16383
WHITE_BALANCE = (2428 / 1024, 1.0, 1700 / 1024)
XYZ_TO_CAMERA = np.array([[0.70, -0.20, -0.05], [-0.40, 1.20, 0.20], [-0.05, 0.15, 0.60]])
FOCAL = 40.0


def write_dng(path: Path, mosaic: np.ndarray, matrix: np.ndarray | None = XYZ_TO_CAMERA, orientation: int = 1) -> None:
    """An RGGB mosaic uint16 [H, W] as uncompressed DNG."""

    def rationals(values) -> list[int]:
        return [part for value in np.ravel(values) for part in (round(float(value) * 10**6), 10**6)]

    tags = [
        (33421, "H", 2, (2, 2), True),
        (33422, "B", 4, bytes([0, 1, 1, 2]), True),
        (50706, "B", 4, bytes([1, 4, 0, 0]), True),
        (50707, "B", 4, bytes([1, 1, 0, 0]), True),
        (50708, "s", 0, "Fujin test camera", True),
        (50713, "H", 2, (1, 1), True),
        (50714, "H", 1, BLACK, True),
        (50717, "H", 1, WHITE, True),
        (50728, "2I", 3, rationals(1 / np.array(WHITE_BALANCE)), True),
        (274, "H", 1, orientation, True),
    ]
    if matrix is not None:
        tags += [(50721, "2i", 9, rationals(matrix), True), (50778, "H", 1, 21, True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, mosaic.astype(np.uint16), photometric=32803, metadata=None, extratags=tags)


def ramp(number: float, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """A smooth camera-linear picture [H, W, 3] in [0, 1] that neither turning nor mirroring leaves alone."""
    y, x = np.mgrid[:height, :width]
    x, y = (x + 0.5) / width, (y + 0.5) / height
    level = 0.05 + 0.5 * x**2 + 0.2 * y + 0.05 * np.sin(5 * x + number)
    return np.stack([0.45 * level, level, 0.6 * level * (1 - 0.3 * y)], axis=-1)


def mosaic_of(linear: np.ndarray) -> np.ndarray:
    mosaic = linear[..., 1].copy()
    mosaic[0::2, 0::2], mosaic[1::2, 1::2] = linear[0::2, 0::2, 0], linear[1::2, 1::2, 2]
    return np.rint(BLACK + np.clip(mosaic, 0, 1) * (WHITE - BLACK))


def write_jpg(path: Path, linear: np.ndarray, **options) -> None:
    rgb = np.rint(encode(np.clip(linear * WHITE_BALANCE, 0, 1)) * 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rgb).save(path, quality=97, subsampling=0, **options)


def write_ply(path: Path, xyz: np.ndarray, text: bool = False, colours: bool = True) -> None:
    names = [(axis, "f4") for axis in "xyz"] + [(name, "f4") for name in ("nx", "ny", "nz")]
    names += [(name, "u1") for name in ("red", "green", "blue")] if colours else []
    vertex = np.zeros(len(xyz), names)
    for i, axis in enumerate("xyz"):
        vertex[axis] = xyz[:, i]
    if colours:
        vertex["red"], vertex["green"], vertex["blue"] = 10, 20, 30
    PlyData([PlyElement.describe(vertex, "vertex")], text=text).write(str(path))


def pose(number: int) -> np.ndarray:
    """OpenGL camera-to-world [4, 4]: turned about y, a step to the side."""
    angle = 0.1 * number
    matrix = np.eye(4)
    matrix[:3, :3] = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    matrix[:3, 3] = [0.3 * number, 0.1, 2.0]
    return matrix


class World:
    """ROOT/Hikari: source views 0001-0003 with clean twins, held view 0004."""

    scene = "Hikari"

    def __init__(self, root: Path):
        self.root = root
        self.home = root / self.scene
        for number in (1, 2, 3):
            self.view("train", number)
            self.view("val", number)
        self.view("test", 4, raw=False)
        self.transforms("train", [1, 2, 3])
        self.transforms("val", [1, 2, 3])
        self.transforms("test", [4])
        self.xyz = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
        write_ply(self.home / "point3d.ply", self.xyz)

    def view(self, folder: str, number: int, raw: bool = True) -> None:
        linear = ramp(number)
        write_jpg(self.home / folder / f"{number:04d}.JPG", linear)
        if raw:
            write_dng(self.home / folder / f"{number:04d}.dng", mosaic_of(linear))

    def frames(self, folder: str, numbers: list[int]) -> dict:
        return {
            "fl_x": FOCAL,
            "fl_y": FOCAL,
            "cx": WIDTH / 2,
            "cy": HEIGHT / 2,
            "w": WIDTH,
            "h": HEIGHT,
            "frames": [{"file_path": f"./{folder}/{n:04d}.JPG", "transform_matrix": pose(n).tolist()} for n in numbers],
        }

    def transforms(self, folder: str, numbers: list[int], **change) -> None:
        value = {**self.frames(folder, numbers), **change}
        value = {key: item for key, item in value.items() if item is not None}
        (self.home / f"transforms_{folder}.json").write_text(json.dumps(value))

    def without_transforms(self) -> None:
        for path in self.home.glob("transforms*.json"):
            path.unlink()

    def colmap(self, model: str = "PINHOLE", params: str = f"{FOCAL} {FOCAL} 24 16", names=None, binary=False) -> Path:
        """The same poses as a COLMAP model in sparse/0, and its points; COLMAP itself writes the binary form."""
        import pycolmap

        folder = self.home / "sparse" / "0"
        folder.mkdir(parents=True)
        (folder / "cameras.txt").write_text(f"1 {model} {WIDTH} {HEIGHT} {params}\n")
        lines = []
        for number, name in enumerate(names or [f"{n:04d}.JPG" for n in (1, 2, 3, 4)], start=1):
            viewmat = np.linalg.inv(pose(number) @ np.diag([1, -1, -1, 1]))
            x, y, z, w = pycolmap.Rotation3d(viewmat[:3, :3]).quat
            lines += [f"{number} {w} {x} {y} {z} {' '.join(map(str, viewmat[:3, 3]))} 1 {name}", ""]
        (folder / "images.txt").write_text("\n".join(lines) + "\n")
        points = [f"{i + 1} {x} {y} {z} 10 20 30 0.5" for i, (x, y, z) in enumerate(self.xyz.astype(float))]
        (folder / "points3D.txt").write_text("\n".join(points) + "\n")
        if binary:
            model = pycolmap.Reconstruction()
            model.read_text(str(folder))
            for file in folder.glob("*.txt"):
                file.unlink()
            model.write_binary(str(folder))
        return folder


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path / "data")


@pytest.fixture
def scenery():
    return ramp


@pytest.fixture
def dng():
    """The writer of test RAW files and what it writes into them."""
    from types import SimpleNamespace

    return SimpleNamespace(
        write=write_dng,
        write_jpg=write_jpg,
        mosaic_of=mosaic_of,
        black=BLACK,
        white=WHITE,
        white_balance=WHITE_BALANCE,
        xyz_to_camera=XYZ_TO_CAMERA,
    )


class Capture:
    """Runs the three commands in this process as a user would type them; each returns its exit code."""

    def __init__(self, world: World, out: Path, capsys, monkeypatch):
        self.world, self.out, self._capsys, self._monkeypatch = world, out, capsys, monkeypatch
        self.errors = ""

    def run(self, *arguments) -> int:
        from fujinsplat.cli import main

        self._monkeypatch.setattr("sys.argv", ["fujinsplat", "capture", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ending:
            code = ending.code or 0
        self.errors = self._capsys.readouterr().err
        return code

    def source(self, *more) -> int:
        return self.run("source", self.world.root, self.world.scene, "--out", self.out, *more)

    def clean(self, *more) -> int:
        return self._part("clean", *more)

    def held(self, *more) -> int:
        return self._part("held", *more)

    def _part(self, part: str, *more) -> int:
        places = ("--cameras", self.out / "cameras.json", "--out", self.out / part)
        return self.run(part, self.world.root, self.world.scene, *places, *more)

    def all(self) -> None:
        assert (self.source(), self.clean(), self.held()) == (0, 0, 0), self.errors

    def written(self) -> list[str]:
        return sorted(str(p.relative_to(self.out)) for p in self.out.rglob("*")) if self.out.exists() else []


@pytest.fixture
def capture(world, tmp_path, capsys, monkeypatch) -> Capture:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "1")  # the commands set these; monkeypatch puts the old ones back
    import numba

    # numba reads its variable again when it compiles, and refuses another number once its threads run
    monkeypatch.setenv("NUMBA_NUM_THREADS", str(numba.config.NUMBA_NUM_THREADS))
    return Capture(world, tmp_path / "results" / "capture" / world.scene, capsys, monkeypatch)


@pytest.fixture(name="write_ply")
def _write_ply():
    return write_ply
