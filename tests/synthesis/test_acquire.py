"""Multi-Illumination: the plan, and downloads from a file server on this machine that can fail in the middle."""

import csv
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from fujinsplat.errors import UserError
from fujinsplat.synthesis import acquire as module
from fujinsplat.synthesis.acquire import FRONTAL, acquire, download, plan, read_scenes

TRAINING = [f"room{number}" for number in range(985)]


def test_the_plan_of_the_paper():
    """985 training scenes, 415 of them twice and under two directions; no frontal flash, no test scene."""
    planned = plan([*TRAINING, *(f"everett_{number}" for number in range(30))])
    assert len(planned) == 1400 and len({p.name for p in planned}) == 1400
    counts = {scene: sum(p.scene == scene for p in planned) for scene in TRAINING}
    assert sorted(counts.values()).count(2) == 415 and min(counts.values()) == 1
    assert not any(p.scene.startswith("everett") for p in planned)
    assert not {p.direction for p in planned} & FRONTAL and {p.exposure for p in planned} == {1}
    assert planned == plan([f"everett_{number}" for number in range(30)] + TRAINING[::-1])


class Server:
    """Serves `files` with Range; the first answer for a name in `cut` ends after that many bytes."""

    def __init__(self, files: dict[str, bytes], cut: dict[str, int] | None = None, ranges: bool = True):
        self.requests: list[tuple[str, str | None]] = []
        outer, cut = self, dict(cut or {})

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.lstrip("/")
                wanted = self.headers.get("Range")
                outer.requests.append((name, wanted))
                if name not in files:
                    return self.send_error(404)
                content = files[name]
                first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and ranges else 0
                if first >= len(content) and first:
                    return self.send_error(416)
                self.send_response(206 if first else 200)
                self.send_header("Content-Length", str(len(content) - first))
                self.end_headers()
                limit = cut.pop(name, len(content))
                self.wfile.write(content[first : min(limit, len(content))])
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(module, "WAIT", 0.0)


def content(seed: int, size: int = 50_000) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def test_a_cut_connection_is_continued(tmp_path):
    """After a break in the middle the rest alone is asked for, and the file is whole."""
    files = {"a.ARW": content(1)}
    with Server(files, cut={"a.ARW": 20_000}) as server:
        digest = download(f"{server.address}/a.ARW", tmp_path / "a.ARW")
        assert server.requests[-1] == ("a.ARW", "bytes=20000-")
    assert (tmp_path / "a.ARW").read_bytes() == files["a.ARW"]
    assert digest == hashlib.sha256(files["a.ARW"]).hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["a.ARW"]


def test_a_server_without_ranges_starts_again(tmp_path):
    with Server({"a.ARW": content(1)}, cut={"a.ARW": 20_000}, ranges=False) as server:
        download(f"{server.address}/a.ARW", tmp_path / "a.ARW")
    assert (tmp_path / "a.ARW").read_bytes() == content(1)


def test_acquire_downloads_once_and_again_what_is_damaged(tmp_path):
    scenes = tmp_path / "scenes.txt"
    scenes.write_text("kitchen\nhall\neverett_lab\n")
    planned = plan(["kitchen", "hall"], 3)
    files = {f"{p.scene}/dir_{p.direction}_exp1.ARW": content(number) for number, p in enumerate(planned)}
    folder = tmp_path / "captures"
    with Server(files) as server:
        acquire(folder, server.address, str(scenes), None, 3, False)
        with (folder / "captures.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert [row["name"] for row in rows] == [p.name for p in planned] and {row["split"] for row in rows} == {
            "train"
        }
        for number, row in enumerate(rows):
            assert (folder / row["path"]).read_bytes() == content(number)
        asked = len(server.requests)
        acquire(folder, server.address, str(scenes), None, 3, False)
        assert len(server.requests) == asked
        (folder / rows[1]["path"]).write_bytes(b"damaged")
        acquire(folder, server.address, str(scenes), None, 3, False)
        assert len(server.requests) == asked + 1
        assert (folder / rows[1]["path"]).read_bytes() == content(1)


def test_only_the_plan(tmp_path):
    (tmp_path / "scenes.txt").write_text("hall kitchen")
    acquire(tmp_path / "captures", "http://127.0.0.1:9", str(tmp_path / "scenes.txt"), None, 1400, True)
    assert [path.name for path in (tmp_path / "captures").iterdir()] == ["captures.csv"]


def test_mistakes_are_named(tmp_path):
    with Server({}) as server, pytest.raises(UserError, match="404"):
        download(f"{server.address}/missing.ARW", tmp_path / "x.ARW")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="could not be fetched"):
        download("http://127.0.0.1:9/x.ARW", tmp_path / "x.ARW")
    with pytest.raises(UserError, match="no training scene"):
        plan(["everett_1"])
    (tmp_path / "scenes.json").write_text('[{"name": "hall"}, {"name": "attic"}]')
    assert read_scenes(str(tmp_path / "scenes.json")) == ["hall", "attic"]
