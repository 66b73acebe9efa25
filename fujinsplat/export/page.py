"""report.html of one scene of one's own: nothing to score against, so it shows instead of counting.

Before and after at the photographs' own poses, the smoke that was found, the cameras in 3D, what was left out and why.
The look is the big report's; the page opens without a network.
"""

import base64
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from fujinsplat.capture import SourceViews, read_cameras, read_points
from fujinsplat.capture.layout import FOUND_POSES
from fujinsplat.capture.motion.level import upright_turn
from fujinsplat.core.files import atomic_file, read_json
from fujinsplat.report.page import ASSETS as REPORT
from fujinsplat.report.pictures import jpeg_url

ASSETS = Path(__file__).with_name("assets")
SHOWN = 6  # views with a slider
POINTS = 1500  # points in the cameras' picture


@dataclass(frozen=True)
class Inputs:
    """Files of one scene and row; the last four may be absent."""

    source: Path
    cleared: Path
    renders: Path
    cameras: Path
    points: Path
    manifest: Path
    poses: Path | None = None
    smoke: Path | None = None
    turntable: Path | None = None
    notes: Path | None = None


def write_page(scene: str, row: str, given: Inputs, out: Path) -> None:
    """The page of `scene`."""
    with atomic_file(out) as temporary:
        temporary.write_text(render(scene, row, given))


def render(scene: str, row: str, given: Inputs) -> str:
    views, manifest = SourceViews(given.source), read_json(given.manifest)
    found = read_json(given.poses / FOUND_POSES) if given.poses else {}
    parts = {
        "title": escape(scene),
        "style": (REPORT / "page.css").read_text() + (ASSETS / "scene.css").read_text(),
        "script": (REPORT / "page.js").read_text() + (ASSETS / "scene.js").read_text(),
        "lead": _lead(row, views, manifest, found),
        "facts": _facts(views, manifest, found, given),
        "sliders": _sliders(views, given),
        "smoke": _smoke(given),
        "cameras": _cameras(given),
        "turntable": _turntable(given),
        "left": _left_out(manifest, found, given),
        "notes": _notes(manifest),
    }
    page = (ASSETS / "scene.html").read_text()
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


def _lead(row: str, views: SourceViews, manifest: dict, found: dict) -> str:
    poses = "poses found by structure from motion" if found and not found.get("given") else "poses as they were given"
    how = f", cleared by <b>{escape(row)}</b>" if row else ""
    return f"{len(views)} photographs taken through smoke{how}; {poses}."


def _facts(views: SourceViews, manifest: dict, found: dict, given: Inputs) -> str:
    width, height = manifest["views"][0]["size"]
    facts = [(str(len(views)), "", "views used"), (f"{width}×{height}", "", "working size, pixels")]
    left = len(manifest.get("dropped", {})) + len(_folder_notes(given))
    facts.append((str(left), "", "files or views left out" if left else "nothing was left out"))
    if found.get("error") is not None:
        facts.append((f"{found['error']:.2f}", "px", f"mean error of {found['points']} found points"))
    return "".join(f'<div class="fact"><b>{n}</b> <i>{u}</i><span>{escape(t)}</span></div>' for n, u, t in facts)


def _chosen(stems: list[str]) -> list[str]:
    return [stems[round(i)] for i in np.unique(np.linspace(0, len(stems) - 1, min(SHOWN, len(stems))).round())]


def _sliders(views: SourceViews, given: Inputs) -> str:
    """For some views: the smoky photograph against the render, and against the cleared photograph."""
    cards = []
    turns = {camera.stem: camera.turns for camera in read_cameras(given.cameras)}
    for stem in _chosen(views.stems):
        smoky, size = jpeg_url(given.source / f"{stem}.png", turns=turns[stem])
        shown = [
            ("3D render", given.renders / f"{stem}.png", turns[stem]),
            ("cleared photograph", given.cleared / "images" / f"{stem}.png", 0),  # upright already
        ]
        panels, tabs = [], []
        for number, (what, file, lying) in enumerate(row for row in shown if row[1].is_file()):
            url, _ = jpeg_url(file, turns=lying)
            hidden = " hidden" if number else ""
            name = f"{escape(stem)}: {what}"
            panels.append(
                f'<div class="compare" data-pose="{number}"{hidden}>'
                f'<img class="after" src="{url}" width="{size[0]}" height="{size[1]}" alt="{name}">'
                f'<img class="before" src="{smoky}" width="{size[0]}" height="{size[1]}" alt="{escape(stem)}: smoky">'
                f'<span class="tag left">smoky</span><span class="tag right">{what}</span><span class="handle"></span>'
                f'<input type="range" min="0" max="100" value="50" step="0.1" aria-label="{name}"></div>'
            )
            selected = str(number == 0).lower()
            tabs.append(f'<button role="tab" aria-selected="{selected}" data-pose="{number}">{what}</button>')
        cards.append(
            f'<article class="scene"><header><h3>{escape(stem)}</h3></header><div class="poses">{"".join(panels)}'
            f'<div class="tabs" role="tablist">{"".join(tabs)}</div></div></article>'
        )
    return "\n".join(cards)


def _smoke(given: Inputs) -> str:
    """Transmission maps of the estimated smoke, dark where it is thick."""
    if given.smoke is None:
        return ""
    import io

    from PIL import Image

    from fujinsplat.smoke import Smoke

    smoke, figures = Smoke.load(given.smoke), []
    turns = {camera.stem: camera.turns for camera in read_cameras(given.cameras)}
    for stem in _chosen(list(smoke.stems)):
        passes = np.rot90(smoke.transmission_of(smoke.stems.index(stem)).clamp(0, 1).numpy(), turns[stem])
        stream = io.BytesIO()
        Image.fromarray(np.rint(passes * 255).astype(np.uint8)).save(stream, "PNG")
        url = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
        caption = f"<figcaption>{escape(stem)}: {passes.mean():.0%} passes on average</figcaption>"
        figures.append(f'<figure><img src="{url}" alt="transmission of {escape(stem)}">{caption}</figure>')
    doubts = "".join(f"<li>{escape(words)}</li>" for words in smoke.statistics.get("words", []))
    return (
        '<section id="smoke"><h2>Smoke</h2><p class="hint">How much light passes: white is clear air, black is dense '
        f'smoke.</p>{f"<ul>{doubts}</ul>" if doubts else ""}<div class="maps">{"".join(figures)}</div></section>'
    )


def _cameras(given: Inputs) -> str:
    """Data of the 3D picture: camera centres and axes, and a sample of the points, upright."""
    cameras = [camera.upright() for camera in read_cameras(given.cameras)]
    xyz, rgb = read_points(given.points)
    every = max(1, len(xyz) // POINTS)
    turn = np.eye(4)
    turn[:3, :3] = upright_turn(np.stack([camera.viewmat for camera in cameras]))
    poses = [turn @ np.linalg.inv(camera.viewmat) for camera in cameras]
    data = {
        "points": np.round(xyz[::every].astype(float) @ turn[:3, :3].T, 3).tolist(),
        "colours": rgb[::every].tolist(),
        "cameras": [
            {
                "name": camera.stem,
                "at": np.round(pose[:3, 3], 4).tolist(),
                "axes": np.round(pose[:3, :3].T, 4).tolist(),
                "shape": [camera.width / camera.K[0, 0] / 2, camera.height / camera.K[1, 1] / 2],
            }
            for camera, pose in zip(cameras, poses, strict=True)
        ],
    }
    return json.dumps(data).replace("</", "<\\/")


def _turntable(given: Inputs) -> str:
    if given.turntable is None:
        return ""
    url = f"data:image/gif;base64,{base64.b64encode(given.turntable.read_bytes()).decode()}"
    return f'<figure class="turntable"><img src="{url}" alt="a swing around the scene"></figure>'


def _folder_notes(given: Inputs) -> list[str]:
    return [str(note) for note in read_json(given.notes)] if given.notes and given.notes.is_file() else []


def _left_out(manifest: dict, found: dict, given: Inputs) -> str:
    reasons = [
        f"{stem}: it shares too little with the other views, no pose was found" for stem in found.get("dropped", [])
    ]
    named = {stem.casefold() for stem in found.get("dropped", [])}
    reasons += [f"{stem}: {why}" for stem, why in manifest.get("dropped", {}).items() if stem not in named]
    reasons += _folder_notes(given)
    if not reasons:
        return "<p>Nothing: every photograph of the folder is used.</p>"
    return f"<ul>{''.join(f'<li>{escape(reason)}</li>' for reason in reasons)}</ul>"


def _notes(manifest: dict) -> str:
    counts: dict[str, int] = {}
    for view in manifest["views"]:
        for note in view["notes"]:
            counts[note] = counts.get(note, 0) + 1
    rows = "".join(f"<li>{escape(note)} ({count} views)</li>" for note, count in counts.items())
    return f"<ul>{rows}</ul>" if rows else "<p>Nothing had to be done to the pictures.</p>"
