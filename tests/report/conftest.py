"""A small results tree of real files (PNG, PLY, CSV, TSV), the report made from it, and a real headless browser."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fujinsplat.evaluate.outline import Outline
from fujinsplat.evaluate.paper import line_names
from fujinsplat.evaluate.scoring import write_csv
from fujinsplat.report.viewer import ViewerMissing, find_tool, write_view
from fujinsplat.rows.outline import facts
from fujinsplat.rows.registries import AllSettings
from fujinsplat.rows.row import RowSpec, compose

WIDTH, HEIGHT, FOCAL = 480, 320, 400.0
BLOBS = {"red": ((1, 0, 0), (1, 0, 0)), "green": ((0, 1, 0), (0, 1, 0)), "blue": ((0, 0, 1), (0, 0, 1))}
BLOBS["white"] = ((0, 0, 0), (1, 1, 1))
SCENES = ["Yama", "Kawa"]
METHOD = {"title": "FujinSplat", "correction": "controller", "reconcile": "delta", "paper": "FujinSplat"}
ROWS = {
    "fujinsplat": METHOD,
    "raw_base": {"title": "RAW base only", "paper": "RAW base only"},
    "never_built": {"title": "Never built", "like": "fujinsplat", "reconcile": "none", "paper": "w/o Δ-ISP"},
}


JOBS = (
    ("isp/calibrate/{scene}", 9),
    ("splat/train/{scene}.fujinsplat", 90),
    ("splat/train/{scene}.raw_base", 80),
)


def camera(eye=(3.0, -2.0, 1.5), target=(0.2, 0.2, 0.3), stem="0001") -> dict:
    """A z-up world's camera in OpenCV axes."""
    eye, target = np.array(eye), np.array(target)
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    viewmat = np.eye(4)
    viewmat[:3, :3], viewmat[:3, 3] = rotation, -rotation @ eye
    K = [[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]]
    return {"stem": stem, "width": WIDTH, "height": HEIGHT, "K": K, "viewmat": viewmat.tolist()}


def write_ply(path: Path, seed: int = 0, count: int = 400) -> None:
    """Four balls of Gaussians, one per axis and a white one at the origin, as a 3DGS PLY of degree 3."""
    from plyfile import PlyData, PlyElement

    rng = np.random.default_rng(seed)
    means = np.concatenate([rng.normal(size=(count, 3)) * 0.05 + where for where, _ in BLOBS.values()])
    colours = np.repeat([colour for _, colour in BLOBS.values()], count, axis=0).astype(float)
    names = ["x", "y", "z", "nx", "ny", "nz", *(f"f_dc_{i}" for i in range(3)), *(f"f_rest_{i}" for i in range(45))]
    names += ["opacity", *(f"scale_{i}" for i in range(3)), *(f"rot_{i}" for i in range(4))]
    rows = np.zeros(len(means), dtype=[(name, "f4") for name in names])
    rows["x"], rows["y"], rows["z"] = means.T
    for i in range(3):
        rows[f"f_dc_{i}"] = (colours[:, i] - 0.5) / 0.28209479
        rows[f"scale_{i}"] = np.log(0.03)
    rows["opacity"], rows["rot_0"] = 4, 1
    path.parent.mkdir(parents=True, exist_ok=True)
    PlyData([PlyElement.describe(rows, "vertex")]).write(str(path))


def save(path: Path, picture: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


def plant(results: Path) -> None:
    """Two scenes, two variants, three source and two held views; the third variant was never built."""
    ramp = np.linspace(0, 255, WIDTH)[None, :, None] * np.ones((HEIGHT, 1, 3))
    for s, scene in enumerate(SCENES):
        clean = ramp.astype(np.uint8)
        clean[80:160, 100 + 80 * s : 200 + 80 * s] = (220, 40, 30)
        smoky = (0.3 * clean + 0.7 * 200).astype(np.uint8)
        for stem in ("0001", "0002", "0003"):
            save(results / "capture" / scene / "source" / f"{stem}.png", smoky)
            save(results / "renders_source" / scene / "fujinsplat" / f"{stem}.png", clean)
        for stem in ("0004", "0005"):
            save(results / "references" / "held" / scene / f"{stem}.png", clean)
            save(results / "renders" / scene / "fujinsplat" / f"{stem}.png", clean)
            save(results / "renders" / scene / "raw_base" / f"{stem}.png", smoky)
        cameras = {"source": [camera(stem=s) for s in ("0001", "0002", "0003")]}
        cameras["held"] = [camera(stem=s) for s in ("0004", "0005")]
        (results / "capture" / scene / "cameras.json").write_text(json.dumps(cameras))
        write_ply(results / "gaussians" / scene / "fujinsplat.ply", seed=s)
        log = [
            {"iteration": i, "loss": 0.3 / (1 + i / 50), "psnr": 15 + i / 50, "gaussians": 800 + i, "alpha_mean": 0.1}
            for i in range(10, 200, 10)
        ]
        (results / "gaussians" / scene / "fujinsplat.log.jsonl").write_text("\n".join(map(json.dumps, log)) + "\n")
        for variant, psnr in (("fujinsplat", 20.0 + s), ("raw_base", 12.0 - s)):
            rows = [
                {"split": "held", "view": v, "psnr": psnr + d, "ssim": 0.7, "lpips": 0.4}
                for v, d in (("0004", -1), ("0005", 1))
            ]
            write_csv(results / "metrics" / scene / f"{variant}.csv", rows)
        for job, seconds in JOBS:
            job = job.format(scene=scene)
            path = results / "benchmarks" / f"{job}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:{seconds}\t512.5\n")
    save(results / "analysis" / "rank_one" / "figure.png", np.full((200, 500, 3), 230, np.uint8))


def make_outline(
    specs: dict[str, dict] = ROWS, scenes: list[str] = SCENES, dataset: str = "toy", **settings
) -> Outline:
    """What the report knows of these rows, from their parts and settings alone."""
    used = AllSettings(**settings)
    rows = compose({name: RowSpec(**spec) for name, spec in specs.items()}, line_names())
    return Outline(
        dataset=dataset,
        scenes=scenes,
        rows={name: facts(row, row.settings(used)) for name, row in rows.items()},
        settings=used.model_dump(mode="json"),
        paper=AllSettings.paper().model_dump(mode="json"),
    )


@pytest.fixture
def planted(tmp_path) -> Path:
    plant(tmp_path / "toy")
    return tmp_path / "toy"


@pytest.fixture
def outline() -> Outline:
    return make_outline()


@pytest.fixture(scope="session")
def tool():
    """Node and splat-transform, or the reason why the test is skipped."""
    try:
        return find_tool()
    except ViewerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def report(tmp_path_factory, tool) -> Path:
    """report.html of the planted results, with 3D views."""
    from fujinsplat.report.page import write_report

    results = tmp_path_factory.mktemp("report") / "toy"
    plant(results)
    for scene in SCENES:
        folder = results / "capture" / scene
        ply = results / "gaussians" / scene / "fujinsplat.ply"
        assert write_view(ply, folder / "cameras.json", results / "viewer" / f"{scene}.html", scene)
    write_report(results, make_outline(), results / "report.html")
    return results / "report.html"


@pytest.fixture(scope="session")
def browser():
    """A real Chromium without a window, drawing WebGL on the CPU."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on the PATH: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox", "--disable-gpu-sandbox"]
        running = driver.chromium.launch(executable_path=found, args=arguments)
        yield running
        running.close()


class Watched:
    """A page that remembers what went wrong and what it asked the network for."""

    def __init__(self, page):
        self.page, self.problems, self.requests = page, [], []
        page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda r: self.requests.append(r.url))

    def screenshot(self, **options) -> np.ndarray:
        import io

        return np.asarray(Image.open(io.BytesIO(self.page.screenshot(**options))).convert("RGB")).astype(int)

    def beyond_the_file(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:", "about:"))]


@pytest.fixture
def open_page(browser):
    opened = []

    def open_it(path: Path, width: int = 1200, height: int = 900, **options) -> Watched:
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        opened.append(page)
        watched = Watched(page)
        page.goto(f"file://{path}")
        return watched

    yield open_it
    for page in opened:
        page.close()
