"""Where the files of a scene lie, found by name alone: nothing is opened here, and nothing heavy is imported.

Two layouts are known:

- RealX3D's: `ROOT/SCENE/{train,val,test}/`, RAW and camera RGB beside each other or in subfolders (`raw/`, `rgb/`,
  `images/`, …), with `transforms_*.json` and/or a COLMAP model in `sparse/0`, and `point3d.ply`, in `ROOT/SCENE`;
- the paper's data release: `ROOT/raw/smoke/SCENE/train/STEM.npz` beside `ROOT/rgb/smoke/SCENE/{train,test}/STEM.JPG`,
  poses and points in either scene folder.

`train` is the smoky source, `val` its clean twins, `test` the clean held views. Extensions may have any case.
"""

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.core.errors import UserError, refuse

# picture folders of the parts of a scene
FOLDERS = {"source": "train", "clean": "val", "held": "test"}
RAW_SUFFIXES = frozenset(
    ".3fr .arw .bay .cap .cr2 .cr3 .crw .dcr .dng .erf .fff .gpr .iiq .k25 .kdc .mef .mos .mrw .nef .nrw .orf .pef "
    ".raf .raw .rw2 .rwl .sr2 .srf .srw .x3f".split()
)
DECODED_SUFFIXES = frozenset({".npz"})
RGB_SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png"})
POINT_NAMES = ("point3d.ply", "points3d.ply", "point_cloud.ply", "points.ply", "sparse_pc.ply")
COLMAP_HOMES = ("sparse", "colmap/sparse", "colmap", "distorted/sparse")
LEFT_OUT = "left_out.json"  # what of a folder of photographs is not used, and why
FOUND_POSES = "poses.json"  # what structure from motion says about its model


@dataclass(frozen=True)
class View:
    """The files of one view, at least one of the two. `raw` is None for held views, which are camera RGB only, and in
    captures without RAW; `rgb` is None in captures without camera RGB, whose RAW files render their own."""

    stem: str
    rgb: Path | None
    raw: Path | None

    @property
    def files(self) -> list[Path]:
        return [file for file in (self.raw, self.rgb) if file]


@dataclass(frozen=True)
class Scene:
    """A scene's folders: `homes` are searched for poses and points, `raw_home`/`rgb_home` for pictures."""

    root: Path
    name: str
    layout: str
    raw_home: Path
    rgb_home: Path

    @property
    def homes(self) -> tuple[Path, ...]:
        return (self.rgb_home,) if self.raw_home == self.rgb_home else (self.rgb_home, self.raw_home)

    def relative(self, path: Path) -> str:
        """A file's name in manifests and messages: below the root where it lies there."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def part_folders(self, part: str) -> list[Path]:
        """The folders that hold a part's pictures; empty when the scene has none."""
        homes = dict.fromkeys((self.rgb_home, self.raw_home))
        return [folder for home in homes if (folder := home / FOLDERS[part]).is_dir()]


def find_scene(root: Path | str, name: str) -> Scene:
    """The scene `name` below `root`, in whichever layout it is."""
    root = Path(root)
    if not root.is_dir():
        raise UserError(f"the dataset folder {root} does not exist; download the dataset or correct its root")
    if (root / name).is_dir():
        return Scene(root, name, "realx3d", root / name, root / name)
    raw, rgb = root / "raw" / "smoke" / name, root / "rgb" / "smoke" / name
    if raw.is_dir() and rgb.is_dir():
        return Scene(root, name, "release", raw, rgb)
    if raw.is_dir() or rgb.is_dir():
        there, missing = (raw, rgb) if raw.is_dir() else (rgb, raw)
        raise UserError(f"scene {name} has {there} but {missing} does not exist; the release layout needs both")
    folders = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    found = f"it holds {', '.join(folders[:12])}" if folders else "it is empty"
    raise UserError(f"the scene folder {root / name} does not exist ({found}); correct the scene's name or the root")


def is_empty(path: Path) -> bool:
    return path.stat().st_size == 0


def folded(stem: str) -> str:
    """What counts of a picture's name: cameras, disks and pose files disagree about case and about how an accented
    letter is composed."""
    return unicodedata.normalize("NFC", stem).casefold()


def _index(files: list[Path], what: str, problems: list[str]) -> dict[str, Path]:
    """Files by folded stem; no two may share a key."""
    found: dict[str, Path] = {}
    for file in files:
        other = found.setdefault(folded(file.stem), file)
        if other != file:
            problems.append(
                f"{other} and {file} are two {what} files for one view (names that differ only in case or "
                "extension count as one); remove or rename one of them"
            )
        if is_empty(file):
            problems.append(f"{file} is empty (zero bytes); copy or download it again")
    return found


def _pictures(scene: Scene, part: str, problems: list[str]) -> tuple[dict[str, Path], dict[str, Path]]:
    """(RAW files, RGB files) of a part by folded stem. Hidden files and files of other kinds are passed over."""
    raw_suffixes = DECODED_SUFFIXES if scene.layout == "release" else RAW_SUFFIXES
    files = sorted(
        file
        for folder in scene.part_folders(part)
        for pattern in ("*", "*/*")  # one level of subfolders, which may be links
        for file in folder.glob(pattern)
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    raw = [file for file in files if file.suffix.lower() in raw_suffixes]
    rgb = [file for file in files if file.suffix.lower() in RGB_SUFFIXES]
    return _index(raw, "RAW", problems), _index(rgb, "RGB", problems)


def part_views(scene: Scene, part: str) -> list[View]:
    """The views of a part in order of their stems; every one has its RAW and its camera RGB (held: RGB alone).

    A capture may also be RAW alone or camera RGB alone, in all its views.
    """
    if not scene.part_folders(part):
        remedy = {
            "source": "put the smoky RAW and camera RGB files there",
            "clean": "put the clean twins there, or set clean_twins: false for this dataset if it has none",
            "held": "put the held views there, or set held_views: false for this dataset if it has none",
        }[part]
        raise UserError(f"{scene.rgb_home / FOLDERS[part]} does not exist; {remedy}")
    problems: list[str] = []
    raw, rgb = _pictures(scene, part, problems)
    for folder in scene.part_folders(part):
        if not os.access(folder, os.R_OK | os.X_OK):
            raise UserError(f"{folder} cannot be read: permission denied; give yourself the right to read it")
    if not rgb and not raw:
        raise UserError(f"{scene.rgb_home / FOLDERS[part]} holds no pictures; put RAW and camera RGB files there")
    if part == "held" and not rgb:
        raise UserError(f"{scene.rgb_home / FOLDERS[part]} holds no JPG or PNG; held views need the camera's RGB")
    if part != "held" and ((raw and rgb) or scene.layout == "release"):
        for key in sorted(raw.keys() ^ rgb.keys()):
            there, missing = (raw[key], "camera RGB (JPG or PNG)") if key in raw else (rgb[key], "RAW file")
            problems.append(f"{there} has no {missing} of the same name; add it or remove this file")
    refuse(problems)
    if part == "held":
        return [View(rgb[key].stem, rgb[key], None) for key in sorted(rgb)]
    keys = sorted(rgb.keys() | raw.keys())
    return [View((rgb.get(key) or raw[key]).stem, rgb.get(key), raw.get(key)) for key in keys]


def part_stems(scene: Scene, part: str) -> dict[str, str]:
    """The names of a part's views by folded stem, from the file names alone; empty when the part does not exist."""
    raw, rgb = _pictures(scene, part, [])
    return {key: file.stem for key, file in (rgb if part == "held" else {**raw, **rgb}).items()}


def transforms_files(scene: Scene) -> dict[str, Path]:
    """`transforms*.json` of a scene: by part, or under "all" for one file that holds every frame."""
    found: dict[str, Path] = {}
    names = {"all": "transforms.json"} | {part: f"transforms_{folder}.json" for part, folder in FOLDERS.items()}
    for home in scene.homes:
        for part, name in names.items():
            if (home / name).is_file():
                found.setdefault(part, home / name)
    if "source" in found:
        found.pop("all", None)
    return found


def colmap_models(home: Path) -> list[Path]:
    """The folders of COLMAP models, text or binary, in `home` and its usual subfolders, numbered or not."""
    folders = [home] + [home / name for name in COLMAP_HOMES]
    numbered = [
        folder
        for parent in folders
        if parent.is_dir()
        for folder in sorted(parent.iterdir())
        if folder.is_dir() and folder.name.isdecimal()
    ]
    found = [f for f in [*folders, *numbered] if any((f / f"images.{kind}").is_file() for kind in ("bin", "txt"))]
    return list(dict.fromkeys(found))


def colmap_folder(scene: Scene) -> Path | None:
    """The folder of the scene's COLMAP model: of several, the one whose list of images is longest, because COLMAP
    often leaves a stub of two or three views in sparse/0."""
    models = [model for home in scene.homes for model in colmap_models(home)]

    def length(model: Path) -> int:
        return colmap_files(model, "images")[0].stat().st_size

    return max(models, key=length) if models else None


def colmap_files(folder: Path, *names: str) -> list[Path]:
    """The model's files of these names; binary goes before text, as COLMAP itself chooses."""
    kind = "bin" if (folder / "images.bin").is_file() else "txt"
    return [path for name in names if (path := folder / f"{name}.{kind}").is_file()]


def points_file(scene: Scene) -> Path | None:
    """The point cloud's PLY."""
    for home in scene.homes:
        files = {file.name.lower(): file for file in sorted(home.iterdir()) if file.is_file()}
        for name in POINT_NAMES:
            if name in files:
                return files[name]
    return None


def pose_files(scene: Scene) -> list[Path]:
    """The files that poses and intrinsics of source and held views are read from; the clean twins' are the source's."""
    transforms = transforms_files(scene)
    if "source" in transforms or "all" in transforms:
        return [path for part, path in transforms.items() if part != "clean"]
    folder = colmap_folder(scene)
    if folder is None:
        raise UserError(
            f"{scene.rgb_home} has no transforms_train.json and no COLMAP model in sparse/0; run structure from motion "
            "(`fujinsplat capture poses`) on the scene's pictures"
        )
    return colmap_files(folder, "cameras", "images")


def has_poses(scene: Scene) -> bool:
    """Whether the scene brings poses of its own."""
    transforms = transforms_files(scene)
    return "source" in transforms or "all" in transforms or colmap_folder(scene) is not None


def has_points(scene: Scene) -> bool:
    """Whether the scene brings points of its own."""
    folder = colmap_folder(scene)
    return points_file(scene) is not None or bool(folder and colmap_files(folder, "points3D"))


def point_files(scene: Scene) -> list[Path]:
    file = points_file(scene)
    if file is not None:
        return [file]
    folder = colmap_folder(scene)
    found = colmap_files(folder, "points3D") if folder else []
    if not found:
        raise UserError(
            f"{scene.rgb_home} has no point3d.ply and no COLMAP points3D in sparse/0; add the point cloud of the "
            "structure from motion that gave the poses"
        )
    return found


def scene_files(root: Path | str, scene: str, parts: tuple[str, ...]) -> list[str]:
    """The input files of some parts among source, clean, held, poses, points, for a rule's `input:`."""
    found = find_scene(root, scene)
    files: list[Path] = []
    for part in parts:
        if part == "poses":
            files += pose_files(found)
        elif part == "points":
            files += point_files(found)
        else:
            files += [file for view in part_views(found, part) for file in view.files]
    return [str(file) for file in files]
