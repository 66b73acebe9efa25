"""MIT Multi-Illumination: which of its RAW captures are used, and getting them [supp. F].

1,400 captures of the 985 training scenes: each scene once, 415 of them twice, exposure 1, never a direction in which
the flash looks at the camera, never a test scene (`everett*`). The plan is a function of the list of scenes alone.
"""

import csv
import hashlib
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from fujinsplat.errors import UserError
from fujinsplat.files import atomic_file, read_json, sha256, write_json
from fujinsplat.progress import progress, say
from fujinsplat.synthesis.sheet import COLUMNS, SHEET, TRAIN

SERVER = "https://data.csail.mit.edu/multilum"
PATTERN = "{scene}/dir_{direction}_exp{exposure}.ARW"
SCENES = "https://raw.githubusercontent.com/lmurmann/multi_illumination/master/scenes.json"
TEST_PREFIX = "everett"
FRONTAL = frozenset({2, 3, 19, 20, 21, 22, 24})
DIRECTIONS = tuple(d for d in range(25) if d not in FRONTAL)
CAPTURES = 1400
EXPOSURE = 1
RECORD = "downloads.json"
CHUNK = 1 << 20
ATTEMPTS, WAIT = 4, 2.0


@dataclass(frozen=True)
class Planned:
    scene: str
    direction: int
    exposure: int = EXPOSURE

    @property
    def name(self) -> str:
        return f"{self.scene}_dir{self.direction}"

    def url(self, server: str, pattern: str) -> str:
        path = pattern.format(scene=self.scene, direction=self.direction, exposure=self.exposure)
        return f"{server.rstrip('/')}/{path}"


def plan(scenes: list[str], captures: int = CAPTURES) -> list[Planned]:
    """Every training scene once, then as many of them a second time, under another direction, as `captures` needs."""
    training = sorted({scene for scene in scenes if not scene.startswith(TEST_PREFIX)})
    if not training:
        raise UserError("the list of scenes holds no training scene; give names that do not start with everett")
    wanted = min(captures, 2 * len(training))
    order = sorted(training, key=lambda scene: hashlib.sha256(scene.encode()).hexdigest())
    twice = set(order[: max(0, wanted - len(training))])
    chosen = []
    for scene in training if wanted >= len(training) else sorted(order[:wanted]):
        first = int(hashlib.sha256(f"direction/{scene}".encode()).hexdigest(), 16) % len(DIRECTIONS)
        chosen.append(Planned(scene, DIRECTIONS[first]))
        if scene in twice:
            chosen.append(Planned(scene, DIRECTIONS[(first + len(DIRECTIONS) // 2) % len(DIRECTIONS)]))
    return chosen


def read_scenes(source: str) -> list[str]:
    """Scene names from a text file (one per line), the dataset's scenes.json, or the address of one."""
    if source.startswith(("http://", "https://")):
        try:
            with urllib.request.urlopen(source, timeout=60) as response:
                text = response.read().decode()
        except (OSError, ValueError) as error:
            raise UserError(
                f"the list of scenes at {source} is not reachable ({error}); save it to a file and give --scenes FILE"
            ) from None
    else:
        try:
            text = Path(source).read_text()
        except OSError as error:
            raise UserError(f"{source}: {error.strerror}; give a text file with one scene per line") from None
    if not text.lstrip().startswith("["):
        return text.split()
    try:
        return [str(row["name"]) if isinstance(row, dict) else str(row) for row in json.loads(text)]
    except (ValueError, KeyError) as error:
        raise UserError(
            f"{source} is not a list of scenes ({error}); give names, or the dataset's scenes.json"
        ) from None


def acquire(
    folder: Path, server: str | None, scenes: str | None, pattern: str | None, captures: int, plan_only: bool
) -> None:
    """Write `captures.csv` and download what it lists. What is already there and intact is not fetched again."""
    folder = Path(folder)
    server, pattern = server or SERVER, pattern or PATTERN
    planned = plan(read_scenes(scenes or SCENES), captures)
    with atomic_file(folder / SHEET) as temporary, temporary.open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows((p.name, f"{p.name}.ARW", TRAIN) for p in planned)
    say(f"{folder / SHEET}: {len(planned)} captures of {len({p.scene for p in planned})} scenes")
    if plan_only:
        return
    record = read_json(folder / RECORD) if (folder / RECORD).is_file() else {}
    for item in progress(planned, "captures", unit="file"):
        path = folder / f"{item.name}.ARW"
        if path.is_file() and record.get(item.name) == sha256(path):
            continue
        record[item.name] = download(item.url(server, pattern), path)
        write_json(folder / RECORD, record)


def download(url: str, path: Path) -> str:
    """Fetch `url` to `path` and return its SHA-256. A part left by a stopped run is continued where it ends.

    A file is complete when the server's length is reached; until then it is called `.part`.
    """
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(ATTEMPTS):
        try:
            _fetch(url, part)
            break
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise UserError(
                    f"{url}: the server answers {error.code} {error.reason}; check --server and --pattern"
                ) from None
            reason = f"{error.code} {error.reason}"
        except (OSError, EOFError) as error:
            reason = str(error)
        if attempt == ATTEMPTS - 1:
            raise UserError(f"{url} could not be fetched ({reason}); run the same command again to go on")
        time.sleep(WAIT * (attempt + 1))
    digest = sha256(part)
    os.replace(part, path)
    return digest


def _fetch(url: str, part: Path) -> None:
    """One attempt: ask for what is missing; a server that sends everything instead starts the part again."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is missing, or the part is longer than the file: fetch it whole
            part.unlink()
            return _fetch(url, part)
        raise
    with response:
        continued = response.status == 206
        length = response.headers.get("Content-Length")
        total = None if length is None else int(length) + (have if continued else 0)
        with part.open("ab" if continued else "wb") as stream:
            while chunk := response.read(CHUNK):
                stream.write(chunk)
    if total is not None and part.stat().st_size != total:
        raise EOFError(f"connection ended after {part.stat().st_size} of {total} bytes")
