"""One command for a folder of photographs: arrange it, write the config, run the workflow, put the results in reach."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from fujinsplat.core import gpu
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file
from fujinsplat.core.progress import say
from fujinsplat.core.runtime import exclusive
from fujinsplat.core.validation import checked, nearest, stage_settings
from fujinsplat.paths import at
from fujinsplat.photos.arrange import arrange
from fujinsplat.photos.find import SIGNATURE, Found, find, ours, safe
from fujinsplat.photos.follow import CHECKOUT, DATASET, show_plan, snakemake
from fujinsplat.photos.given import Given, cameras_of, given_poses
from fujinsplat.photos.presets import cpu_gaussians, settings_of
from fujinsplat.rows.config import Config
from fujinsplat.rows.registries import AllSettings

# results by the names that paths.py has for them, and the short ones that the user sees
PUBLISHED = {
    "scene": "scene.ply",
    "view": "view.html",
    "turntable": "turntable.gif",
    "scene_page": "report.html",
    "cleared": "cleared",
}
WRITTEN = ("config.yaml", "data", "results", "snakemake.log", *PUBLISHED.values())
# the row that needs nothing but the photographs; the second where a config has no such row
ROWS = ("smoke", "raw_base")
# settings that name a file or folder of the user's: relative to where the command is typed, not to where it works
FILES = {
    "controller": ("checkpoint",),
    "isp": ("checkpoint",),
    "actions": ("population",),
    "restored": ("weights", "folder", "directory"),
    "foreign": ("directory",),
}


@dataclass(frozen=True)
class Request:
    """What the command line says."""

    folder: Path
    out: Path | None = None
    poses: Path | None = None
    preset: str = "usual"
    row: str | None = None
    size: int | None = None
    tiff: bool = False
    settings: str | None = None
    cores: int | None = None
    plan: bool = False


def run(request: Request) -> None:
    """From the folder to DIR/scene.ply and its companions."""
    out = (request.out or Path.cwd() / f"{safe(request.folder.resolve().name)}-fujinsplat").absolute()
    if out.resolve() == request.folder.resolve():
        raise UserError(f"--out {out} is the folder of the photographs itself; choose another one, in it or beside it")
    _refuse_foreign(out)
    found = find(request.folder, [out])
    say(found.describe())
    for problem in found.problems:
        say(f"  not used: {problem}")
    if found.kind == "rgb":
        say("without RAW: smoke is cleared in the RGB's decoded light, which is coarser")
    scene = safe(request.folder.resolve().name)
    given = _given(request, found)
    photographs, found = len(found.views), found if given is None else _with_pose(given, found)
    sizes = _sizes(found)
    config = _config(request, scene, sizes)  # what is asked for is checked before anything is written
    if given is not None:
        _refuse_too_few(given, len(found.views), photographs, config)
    row = config["build"]
    command = _command(request, out, _targets(config, scene, row))
    out.mkdir(parents=True, exist_ok=True)
    with exclusive(out / ".lock", lambda: say(f"another command works in {out}; waiting for it")):
        write_config(out / "config.yaml", config)  # first of all: by this file the folder is known as ours
        arrange(found, out / "data" / scene, given)
        side = config["datasets"][DATASET]["settings"].get("capture", {}).get("max_side")
        size = f"at most {side} pixels wide or high" if side else "as large as the photographs"
        sides = {max(size) for size in sizes.values()}
        most = f", up to the {min(sides)} of the smallest photograph" if len(sides) > 1 else ""
        say(f"working size: {size} (--size changes it{most}); row {row}; settings in {out / 'config.yaml'}")
        say(f"the same by hand: {shlex.join(command)}")
        if request.plan:
            show_plan(command, out)
            return
        _drop_apology(out, scene, row)
        snakemake(command, out)
        _publish(out, scene, row)
        _farewell(out)


def _refuse_foreign(out: Path) -> None:
    """What somebody else has put where results go is not written over."""
    taken = [name for name in WRITTEN if os.path.lexists(out / name)]
    if taken and not ours(out):
        raise UserError(
            f"{out} holds files that this command did not make and would write over ({', '.join(taken)}); choose "
            "another folder with --out, or move them"
        )


def _given(request: Request, found: Found) -> Given | None:
    """Poses that are named, or that lie in the folder; none when `--poses none` says so."""
    if request.poses is not None and str(request.poses) == "none":
        return None
    from fujinsplat.capture.frame import stored_size

    size = stored_size(found.views[0])
    given = given_poses(request.poses or request.folder, size, request.poses is not None)
    if given is not None:
        points = "with points" if given.xyz is not None else "points will be triangulated"
        say(f"poses as given by {given.source} ({len(given.cameras)} views, {points}); --poses none finds them anew")
    return given


def _with_pose(given: Given, found: Found) -> Found:
    """The views that the given poses know; the others are named and left out."""
    known = cameras_of(given, found.views)
    unknown = [view for view in found.views if view.stem not in known]
    problems = [f"{view.files[-1]} is left out: {given.source} has no pose for it" for view in unknown]
    for problem in problems:
        say(f"  not used: {problem}")
    return replace(
        found, views=[view for view in found.views if view.stem in known], problems=[*found.problems, *problems]
    )


def _refuse_too_few(given: Given, posed: int, photographs: int, config: dict[str, Any]) -> None:
    share = checked(Config, config, "").settings_for(DATASET).capture.min_posed
    if posed < share * photographs:
        raise UserError(
            f"{given.source} has poses for {posed} of {photographs} photographs, and at least {share:.0%} are needed "
            "(capture.min_posed); take the photographs without a pose out of the folder, or find poses anew with "
            "--poses none"
        )


# the config


def _sizes(found: Found) -> dict[str, tuple[int, int]]:
    """(width, height) of the views by the names of their files."""
    from fujinsplat.capture.frame import stored_size

    return {str(view.files[-1]): stored_size(view) for view in found.views}


def _config(request: Request, scene: str, sizes: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """The whole config of this one scene of views of these sizes: its dataset block and the row it is made with."""
    file = CHECKOUT / "config.yaml"
    if not (CHECKOUT / "Snakefile").is_file():
        raise UserError(f"{CHECKOUT / 'Snakefile'} does not exist; install FujinSplat from a clone (make setup)")
    known = yaml.safe_load(file.read_text())["variants"]
    row = request.row or next(name for name in ROWS if name in known)
    if row not in known:
        raise UserError(f"--row {row}: {file} has no such row{nearest(row, known)}")
    names, rows = [row], {}
    while names:
        name = names.pop()
        rows[name] = _row_from(known[name], CHECKOUT)
        names += [known[name]["like"]] if "like" in known[name] else []
    settings = settings_of(request.preset, request.size)
    sides = [max(size) for size in sizes.values()]
    wanted = settings.get("capture", {}).get("max_side")
    if len(set(sides)) > 1 and (wanted is None or wanted > min(sides)):  # smoke is measured on views of one size
        settings = settings_of(request.preset, min(sides))
        small = [name for name, size in sizes.items() if max(size) == min(sides)]
        more = f" and {len(small) - 3} more" if len(small) > 3 else ""
        say(
            f"photographs of several sizes: all are brought to the {min(sides)} pixels of the smallest "
            f"({', '.join(small[:3])}{more}); without those they could be larger"
        )
    most = None
    if request.preset == "full" and not gpu.present():
        side = settings.get("capture", {}).get("max_side") or max(sides)
        scaled = [(w * min(1.0, side / max(w, h)), h * min(1.0, side / max(w, h))) for w, h in sizes.values()]
        most = cpu_gaussians(scaled, AllSettings().splat.max_width)
        settings["splat"] = {"max_gaussians": most}
    if request.tiff:
        settings["export"] = {"tiff": True}
    if request.settings:
        given = stage_settings(AllSettings, request.settings).model_dump(mode="json", exclude_unset=True)
        for name, values in given.items():
            settings[name] = {**settings.get(name, {}), **_anchored(name, values, Path())}
    if most and settings["splat"]["max_gaussians"] == most:
        say(f"no GPU: at most {most:,} Gaussians")
    block = {"root": "data", "scenes": [scene], "clean_twins": False, "held_views": False, "settings": settings}
    return {"dataset": DATASET, "build": row, "device": "auto", "datasets": {DATASET: block}, "variants": rows}


def _anchored(block: str, values: Any, folder: Path) -> Any:
    """Settings whose files are named as seen from `folder`, absolute: the workflow runs elsewhere."""
    if not isinstance(values, dict):
        return values
    named = {key: values[key] for key in FILES.get(block, ()) if values.get(key)}
    return values | {key: os.path.abspath(folder / os.path.expanduser(path)) for key, path in named.items()}


def _row_from(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A row as a config in `folder` writes it, for a config elsewhere."""
    return {
        key: {name: _anchored(name, values, folder) for name, values in part.items()}
        if isinstance(part, dict)
        else part
        for key, part in spec.items()
    }


def write_config(path: Path, config: dict[str, Any]) -> None:
    """The config as a file, left alone when it says the same already."""
    text = f"{SIGNATURE}; the next run of that command writes it again.\n"
    text += yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    if not path.is_file() or path.read_text() != text:
        with atomic_file(path) as temporary:
            temporary.write_text(text)


def _targets(config: dict[str, Any], scene: str, row: str) -> list[str]:
    """What the workflow is asked for; a row that this folder cannot feed is refused here, before anything runs."""
    from fujinsplat.workflow import Plan
    from fujinsplat.workflow.check import missing_inputs

    problems = [p for p in missing_inputs(checked(Config, config, "")) if not p.startswith("datasets.photos.root")]
    if problems:
        raise UserError(
            f"the row {row} needs more than photographs ({problems[0]}); choose another with --row, or give it a "
            "block of its own in config.yaml"
        )
    return Plan(config).export.targets(DATASET, scene, row)


# the workflow


def _command(request: Request, out: Path, targets: list[str]) -> list[str]:
    words = [sys.executable, "-m", "snakemake", "--snakefile", str(CHECKOUT / "Snakefile"), "--directory", str(out)]
    words += ["--configfile", str(out / "config.yaml"), "--cores", str(request.cores or "all"), "--rerun-incomplete"]
    return [*words, "--nolock", "--", *targets]


# results


def _drop_apology(out: Path, scene: str, row: str) -> None:
    """A page that says why there is no 3D view goes, so that it is tried again: Node may be there by now."""
    from fujinsplat.report.viewer import is_apology

    page = out / at("view", dataset=DATASET, scene=scene, variant=row)
    if page.is_file() and is_apology(page):
        page.unlink()


def _publish(out: Path, scene: str, row: str) -> None:
    """The results under their short names, in the folder that was asked for."""
    from fujinsplat.report.viewer import is_apology

    wild = {"dataset": DATASET, "scene": scene, "variant": row}
    for name, short in PUBLISHED.items():
        made = out / at(name, **wild)
        if name == "view" and (not made.is_file() or is_apology(made)):
            (out / short).unlink(missing_ok=True)  # of an earlier scene, if there is one
        elif made.is_file():
            with atomic_file(out / short) as temporary:
                shutil.copyfile(made, temporary)
    target = out / PUBLISHED["cleared"]
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    shutil.copytree(out / at("cleared", **wild), target, ignore=shutil.ignore_patterns(".snakemake_timestamp"))


def _farewell(out: Path) -> None:
    for name, what in {
        "view.html": "walk through it (opens offline)",
        "scene.ply": "the scene, for any Gaussian viewer",
        "cleared": "the cleared views with their poses, for other programs",
        "turntable.gif": "a swing around it",
        "report.html": "before and after, cameras, what was left out",
    }.items():
        if (out / name).exists():
            say(f"{out / name}: {what}")
