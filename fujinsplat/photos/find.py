"""Finding photographs below a folder and putting RAW and camera RGB together, whatever the names look like.

Files are opened to see whether they are what their names say and end where they should; nothing else is decoded. Every
problem is collected, so that a folder is put right once and not file by file.
"""

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from fujinsplat.capture.layout import RAW_SUFFIXES, RGB_SUFFIXES, View, folded, is_empty
from fujinsplat.core.errors import UserError
from fujinsplat.core.progress import progress

# pictures that are no camera RGB and no RAW, with what to do about them
OTHERS = {
    ".tif": "TIFF: export an 8-bit JPEG or PNG of it, or use the RAW file",
    ".tiff": "TIFF: export an 8-bit JPEG or PNG of it, or use the RAW file",
    ".heic": "HEIC: convert it to JPEG, or set the camera to JPEG",
    ".heif": "HEIF: convert it to JPEG, or set the camera to JPEG",
    ".hif": "HEIF: convert it to JPEG, or set the camera to JPEG",
    ".avif": "AVIF: convert it to JPEG",
    ".webp": "WebP: convert it to JPEG",
    ".jxl": "JPEG XL: convert it to JPEG",
    ".bmp": "BMP: convert it to PNG",
    ".gif": "GIF: export the photograph itself as JPEG",
    ".psd": "a Photoshop file: export an 8-bit JPEG or PNG of it, or use the RAW file",
    ".mov": "a video: export single frames as JPEG",
    ".mp4": "a video: export single frames as JPEG",
}
SIGNATURE = "# Written by `fujinsplat photos`"  # how the config.yaml of a folder of results begins
FEWEST = 3  # views that structure from motion can begin with


@dataclass(frozen=True)
class Found:
    """The views of a folder, in order of their names; `problems` in sentences, one per file that is not used."""

    folder: Path
    views: list[View]
    kind: str  # "pairs", "raw" or "rgb"
    problems: list[str] = field(default_factory=list)

    def describe(self) -> str:
        kinds = {"pairs": "pairs of RAW and RGB", "raw": "RAW files without RGB", "rgb": "RGB pictures without RAW"}
        return f"{self.folder}: {len(self.views)} {kinds[self.kind]}"


def find(folder: Path | str, leave_out: Iterable[Path] = (), threads: int = 4) -> Found:
    """The photographs at any depth below `folder`; `leave_out` are folders of our own that may lie in it.

    Raises when too little is left to begin with; the message then holds every problem.
    """
    folder = Path(folder)
    if not folder.is_dir():
        kind = "is no folder" if folder.exists() else "does not exist"
        raise UserError(f"{folder} {kind}; name the folder that holds your photographs")
    problems: list[str] = []
    raw, rgb = _pictures(folder, {path.resolve() for path in leave_out}, problems)
    views, kind = _views(folder, raw, rgb, problems)
    found = Found(folder, _named(folder, _sound(views, problems, threads)), kind, problems)
    if len(found.views) < FEWEST:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        held = "one photograph" if len(found.views) == 1 else f"{len(found.views) or 'no'} photographs"
        raise UserError(
            f"{folder} holds {held} that can be used, and at least {FEWEST} from different positions are needed (RAW "
            f"files, JPG or PNG, best both with the same names){':' if problems else ''}{listed}"
        )
    return found


def _pictures(folder: Path, leave_out: set[Path], problems: list[str]) -> tuple[list[Path], list[Path]]:
    """(RAW files, RGB files) in a fixed order; other pictures become problems, everything else is passed over."""
    raw, rgb = [], []
    seen: set[Path] = set()

    def unread(error: OSError) -> None:
        reason = (error.strerror or str(error)).lower()
        problems.append(f"{error.filename} cannot be read: {reason}; give yourself the right to read it")

    for here, folders, names in os.walk(folder, onerror=unread, followlinks=True):
        place = Path(here).resolve()
        if place in seen or place in leave_out or ours(place):  # a link back up, or what we made ourselves
            folders.clear()
            continue
        seen.add(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(here) / name
            suffix = path.suffix.lower()
            if name.startswith(".") or not path.is_file():
                continue
            if suffix in RAW_SUFFIXES or suffix in RGB_SUFFIXES:
                if is_empty(path):
                    problems.append(f"{path} is empty (zero bytes); copy it from the camera again")
                else:
                    (raw if suffix in RAW_SUFFIXES else rgb).append(path)
            elif suffix in OTHERS:
                problems.append(f"{path} is {OTHERS[suffix]}")
    return raw, rgb


def ours(folder: Path) -> bool:
    """Whether a folder holds results of an earlier run."""
    config = folder / "config.yaml"
    try:
        return config.is_file() and config.read_bytes().startswith(SIGNATURE.encode())
    except OSError:
        return False


def _key(path: Path) -> str:
    """What a file's name says about its shot: `IMG_1.CR3`, `img_1.jpg` and `IMG_1.CR3.jpg` are one."""
    stem = path.stem
    if Path(stem).suffix.lower() in RAW_SUFFIXES:
        stem = Path(stem).stem
    return folded(stem)


def _views(folder: Path, raw: list[Path], rgb: list[Path], problems: list[str]) -> tuple[list[View], str]:
    """Views with the most complete kind that most of the folder has; what does not fit becomes a problem."""
    raw_by, rgb_by = _by_key(raw), _by_key(rgb)
    pairs, lonely_raw, lonely_rgb = [], [], []
    for key in sorted(raw_by.keys() | rgb_by.keys()):
        matched, left_raw, left_rgb = _matched(raw_by.get(key, []), rgb_by.get(key, []), problems)
        pairs += matched
        lonely_raw += left_raw
        lonely_rgb += left_rgb
    counts = {"pairs": len(pairs), "raw": len(pairs) + len(lonely_raw), "rgb": len(pairs) + len(lonely_rgb)}
    # a few strays among pairs are strays; many views without a partner are what the capture consists of
    kind = "pairs"
    if 2 * counts["pairs"] < max(counts.values()):
        kind = "raw" if counts["raw"] >= counts["rgb"] else "rgb"
    views = [View("", path_rgb, path_raw) for path_raw, path_rgb in pairs]
    if kind == "raw":
        views = [View("", None, path) for path in [p for p, _ in pairs] + lonely_raw]
        problems += [f"{path} is left out: most RAW files here have no JPG or PNG" for _, path in pairs]
    elif kind == "rgb":
        views = [View("", path, None) for path in [p for _, p in pairs] + lonely_rgb]
        problems += [f"{path} is left out: most JPG and PNG files here have no RAW file" for path, _ in pairs]
    if kind != "raw":
        problems += [f"{path} has no JPG or PNG of the same name and is left out" for path in lonely_raw]
    if kind != "rgb":
        problems += [f"{path} has no RAW file of the same name and is left out" for path in lonely_rgb]
    return sorted(views, key=lambda view: str(view.files[0])), kind


def _by_key(files: list[Path]) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for file in files:
        found[_key(file)].append(file)
    return found


def _matched(raw: list[Path], rgb: list[Path], problems: list[str]):
    """Pairs among the files of one name: in one folder, or in folders of their own (RAW/ beside JPEG/), or
    card by card (100CANON, 101CANON), whichever partner is nearest. Two of a kind in one folder are one too many."""
    raw, rgb = (_one_per_folder(files, problems) for files in (raw, rgb))
    if len(raw) == len(rgb) == 1:
        return [(raw[0], rgb[0])], [], []
    pairs, free = [], list(rgb)
    left = []
    for path in sorted(raw, key=lambda p: min((_distance(p, other) for other in rgb), default=0)):
        near = sorted(free, key=lambda other: (_distance(path, other), str(other)))
        if near and (len(near) == 1 or _distance(path, near[0]) < _distance(path, near[1])):
            pairs.append((path, near[0]))
            free.remove(near[0])
        elif near:
            problems.append(
                f"{path} could belong to {near[0]} or to {near[1]}; keep RAW and RGB of a shot in one folder, or rename"
            )
        else:
            left.append(path)
    return pairs, left, free


def _one_per_folder(files: list[Path], problems: list[str]) -> list[Path]:
    kept: dict[Path, Path] = {}
    for file in files:
        other = kept.setdefault(file.parent, file)
        if other != file:
            problems.append(
                f"{file} has the name of {other} (case and extension do not count) and is left out; rename one of them"
            )
    return list(kept.values())


def _distance(a: Path, b: Path) -> int:
    """Steps from one file's folder to the other's."""
    shared = len(os.path.commonpath([a.parent.absolute(), b.parent.absolute()]).split(os.sep))
    depth = sum(len(str(path.parent.absolute()).split(os.sep)) for path in (a, b))
    return depth - 2 * shared


def _sound(views: list[View], problems: list[str], threads: int) -> list[View]:
    """The views whose files open as what they are; the others become problems, all of them."""

    def problem(view: View) -> list[str]:
        return [sentence for file in view.files if (sentence := _unreadable(file))]

    with ThreadPoolExecutor(max(1, threads)) as pool:
        told = list(progress(pool.map(problem, views), "looking at files", total=len(views), unit="view"))
    problems += [sentence for sentences in told for sentence in sentences]
    return [view for view, sentences in zip(views, told, strict=True) if not sentences]


def _unreadable(file: Path) -> str | None:
    """What is wrong with a file, as far as can be seen without decoding it; one that seems to end early is decoded."""
    from fujinsplat.capture.picture import read_rgb, rgb_size
    from fujinsplat.capture.raw import check_raw, raw_size
    from fujinsplat.capture.whole import cut_short

    is_raw = file.suffix.lower() in RAW_SUFFIXES
    try:
        (raw_size if is_raw else rgb_size)(file)
        if cut_short(file):
            (check_raw if is_raw else read_rgb)(file)
    except UserError as error:
        return str(error)
    return None


def safe(name: str) -> str:
    """A name that every shell, file system and Snakemake take as it is: letters, digits, `_` and `-` within,
    so that it is no option either."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-") or "view"


def _named(folder: Path, views: list[View]) -> list[View]:
    """Views with safe names that no two share: the file's own where that suffices, with its folders where not."""
    own = [safe(_key_as_written(view.files[-1])) for view in views]
    long = [safe("_".join([*view.files[-1].relative_to(folder).parts[:-1], own[i]])) for i, view in enumerate(views)]
    names: list[str] = []
    for short, full in zip(own, long, strict=True):
        name = short if [o.casefold() for o in own].count(short.casefold()) == 1 else full
        taken = {other.casefold() for other in names}
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    named = [replace(view, stem=name) for view, name in zip(views, names, strict=True)]
    return sorted(named, key=lambda view: folded(view.stem))


def _key_as_written(path: Path) -> str:
    stem = Path(path.stem)
    return stem.stem if stem.suffix.lower() in RAW_SUFFIXES else path.stem
