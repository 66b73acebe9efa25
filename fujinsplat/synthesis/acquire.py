"""MIT Multi-Illumination: which of its RAW captures are used, and getting them [supp. F].

Each scene has a folder `multilum/raw/SCENE/` with `listing.txt`, the names of its RAW files. 1,400 captures of the 985
training scenes are used: each scene once, the first-ranked ones twice; exposure 1, never a direction in which the flash
looks at the camera, never a test scene (`everett*`). Scenes rank by the SHA-256 of `90202|SCENE`, the directions of one
scene (by their number) by that of `90202|SCENE|DIRECTION`; so the plan is a function of the listings alone.
"""

import csv
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fujinsplat.capture.raw import check_raw
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import atomic_file, sha256
from fujinsplat.core.progress import progress, say
from fujinsplat.core.reading import reading
from fujinsplat.synthesis.download import download, fetch_text
from fujinsplat.synthesis.sheet import COLUMNS, SHEET, TRAIN

SERVER = "https://data.csail.mit.edu"
FOLDER = "multilum/raw"
LISTING = "listing.txt"
# the one commit of the authors' repository that has the list: an address whose content cannot change
SCENES = (
    "https://raw.githubusercontent.com/lmurmann/multi_illumination/63d804214337e5702c5db71157c52acea3e44350/scenes.json"
)
TEST_PREFIX = "everett"
SEED = 90202
FRONTAL = frozenset({2, 3, 19, 20, 21, 22, 24})
CAPTURES = 1400
EXPOSURE = 1
CHECKSUMS = "checksums.sha256"  # as `sha256sum` writes and checks them
LISTINGS = ".listings"  # folder of fetched listings, so that a stopped run need not ask again
SCENE = re.compile(r"[A-Za-z0-9_][\w.+-]{0,99}")  # becomes a file's name: cannot lead out of the folder
LINE = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?([^/\0]+)")  # of a list of checksums
NAME = re.compile(r"dir_?(\d{1,4})(?!\d)(?:\D+exp_?(\d+))?[^/]*\.arw$", re.IGNORECASE)


@dataclass(frozen=True)
class Planned:
    scene: str
    direction: int
    file: str  # its name on the server

    @property
    def name(self) -> str:
        return f"{self.scene}_dir{self.direction}"

    @property
    def local(self) -> str:
        """Its name here."""
        return f"{self.name}.ARW"

    def url(self, server: str) -> str:
        return f"{_folder(server, self.scene)}/{quote(self.file)}"


def _folder(server: str, scene: str) -> str:
    return f"{server.rstrip('/')}/{FOLDER}/{quote(scene)}"


def rank(*parts: object) -> str:
    """What scenes and directions are sorted by."""
    return hashlib.sha256("|".join(map(str, (SEED, *parts))).encode()).hexdigest()


def usable(listing: str) -> dict[int, str]:
    """File by direction of one scene's listing: RAW files of exposure 1 (or of none, where names state none)."""
    found = {}
    for line in listing.splitlines():
        for word in line.split():
            match = NAME.search(word)
            if match and int(match[1]) not in FRONTAL and match[2] in (None, str(EXPOSURE)):
                found.setdefault(int(match[1]), word.rsplit("/", 1)[-1])
    return found


def training(scenes: list[str]) -> list[str]:
    """Training scenes by rank."""
    for scene in scenes:
        if not SCENE.fullmatch(scene):
            raise UserError(f"the list of scenes names {scene[:80]!r}, which is no name of a folder; give plain names")
    chosen = sorted({scene for scene in scenes if not scene.startswith(TEST_PREFIX)}, key=rank)
    if not chosen:
        raise UserError("the list of scenes holds no training scene; give names that do not start with everett")
    return chosen


def plan(listings: dict[str, str], captures: int = CAPTURES) -> list[Planned]:
    """Every training scene once, under its first-ranked direction; then by rank a second time, under the next one, and
    so on until there are `captures`."""
    files = {scene: usable(listings[scene]) for scene in training(list(listings))}
    directions = {scene: sorted(found, key=lambda d, s=scene: rank(s, d)) for scene, found in files.items()}
    chosen: list[Planned] = []
    for turn in range(max((len(order) for order in directions.values()), default=0)):
        for scene, order in directions.items():
            if turn < len(order) and len(chosen) < captures:
                chosen.append(Planned(scene, order[turn], files[scene][order[turn]]))
    if not chosen:
        raise UserError(f"no listing names a RAW file of exposure {EXPOSURE}; check --server")
    return sorted(chosen, key=lambda one: (one.scene, one.direction))


def read_scenes(source: str) -> list[str]:
    """Scene names from a text file (one per line), the dataset's scenes.json, or the address of one."""
    import json

    if "://" in source:
        text = fetch_text(source, "save it to a file and give --scenes FILE")
    else:
        try:
            text = Path(source).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UserError(f"{source}: {reason}; give a text file with one scene per line") from None
    if not text.lstrip().startswith("["):
        return text.split()
    try:
        return [str(row["name"]) if isinstance(row, dict) else str(row) for row in json.loads(text)]
    except (ValueError, KeyError, RecursionError) as error:
        raise UserError(
            f"{source} is not a list of scenes ({error}); give names, or the dataset's scenes.json"
        ) from None


def read_checksums(path: Path) -> dict[str, str]:
    """SHA-256 by file name."""
    with reading(path, "list of checksums", "give one as sha256sum writes it"):
        found = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = LINE.fullmatch(line)
            if line.strip() and match is None:
                raise UserError(f"{path}, line {number}: no SHA-256 and name; give a list as sha256sum writes it")
            if match is not None:
                found[match[2]] = match[1]
        return found


def write_checksums(path: Path, checksums: dict[str, str]) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(checksums.items())))


def read_listings(scenes: list[str], server: str, folder: Path) -> dict[str, str]:
    """The listing of every scene, from the server or from an earlier, stopped run."""
    listings = {}
    for scene in progress(scenes, "listings", unit="scene"):
        kept = folder / LISTINGS / f"{quote(scene, safe='')}.txt"
        if not kept.is_file():
            text = fetch_text(f"{_folder(server, scene)}/{LISTING}", f"check --server and the scene name {scene}")
            with atomic_file(kept) as temporary:
                temporary.write_text(text)
        listings[scene] = kept.read_text()
    return listings


def acquire(
    folder: Path,
    server: str | None,
    scenes: str | None,
    captures: int,
    largest_mb: float,
    plan_only: bool,
    checksums: Path | None = None,
) -> None:
    """Write `captures.csv` and download what it lists. What is already there and intact is not fetched again.

    Checksums of files that have come stand in `checksums.sha256` and hold from then on: another file under the same
    name is refused. `checksums` names such a list from elsewhere, which then holds from the first file on.
    """
    folder, server = Path(folder), server or SERVER
    given, kept = read_checksums(checksums) if checksums else {}, folder / CHECKSUMS
    recorded = read_checksums(kept) if kept.is_file() else {}
    pinned = {**recorded, **given}
    ranked = training(read_scenes(scenes or SCENES))
    # listings beyond the wanted number of scenes would not change the plan
    planned = plan(read_listings(ranked[:captures], server, folder), captures)
    with atomic_file(folder / SHEET) as temporary, temporary.open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows((p.name, p.local, TRAIN) for p in planned)
    say(f"{folder / SHEET}: {len(planned)} captures of {len({p.scene for p in planned})} scenes")
    if given and (lacking := [p.local for p in planned if p.local not in given]):
        raise UserError(f"{checksums} has no checksum of {lacking[0]}; complete it, or go without --checksums")
    if plan_only:
        return
    for item in progress(planned, "captures", unit="file"):
        path, wanted = folder / item.local, pinned.get(item.local)
        digest = sha256(path) if path.is_file() else None
        if digest is None or digest != wanted:
            digest = download(item.url(server), path, int(largest_mb * 1e6), wanted)
        elif recorded.get(item.local) == digest:
            continue
        try:
            check_raw(path)
        except UserError:
            path.unlink()  # what is no photograph does not count as one
            raise
        recorded[item.local] = digest
        write_checksums(kept, recorded)
