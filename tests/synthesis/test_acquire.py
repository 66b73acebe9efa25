"""Multi-Illumination: the plan, and downloads from a file server on this machine that can fail in the middle."""

import csv
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from fujinsplat.core.errors import UserError
from fujinsplat.synthesis import acquire as acquire_module
from fujinsplat.synthesis import download as module
from fujinsplat.synthesis.acquire import FRONTAL, acquire, plan, read_scenes, usable
from fujinsplat.synthesis.download import download

TRAINING = [f"room{number}" for number in range(985)]
LIMIT = 10**6


def listing(directions=range(25), exposures=(0, 1, 2)) -> str:
    return "".join(f"dir_{d}_exp{e}.arw\n" for d in directions for e in exposures) + "thumb.jpg\n"


def test_the_plan_of_the_paper():
    """985 training scenes, 415 of them twice and under two directions; no frontal flash, no test scene."""
    scenes = [*TRAINING, *(f"everett_{number}" for number in range(30))]
    planned = plan({scene: listing() for scene in scenes})
    assert len(planned) == 1400 and len({p.name for p in planned}) == 1400
    counts = {scene: sum(p.scene == scene for p in planned) for scene in TRAINING}
    assert sorted(counts.values()).count(2) == 415 and min(counts.values()) == 1
    assert not any(p.scene.startswith("everett") for p in planned)
    assert not {p.direction for p in planned} & FRONTAL and all(p.file.endswith("_exp1.arw") for p in planned)
    assert planned == plan({scene: listing() for scene in scenes[::-1]})


def test_scenes_and_directions_rank_by_their_hashes():
    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    scenes = ["hall", "attic", "kitchen", "lab"]
    (one,) = plan({scene: listing() for scene in scenes}, 1)
    assert one.scene == min(scenes, key=lambda scene: digest(f"90202|{scene}"))
    free = [d for d in range(25) if d not in FRONTAL]
    assert one.direction == min(free, key=lambda d: digest(f"90202|{one.scene}|{d}"))
    twice = plan({scene: listing() for scene in scenes}, 5)
    assert [p.scene for p in twice].count(one.scene) == 2


def test_listings_are_read_as_they_come():
    text = "raw/hall/dir_4_exp1.ARW 25165824\ndir_2_exp1.arw\ndir_5_exp0.arw\ndir_5_exp1.arw\nnotes.txt\n"
    assert usable(text) == {4: "dir_4_exp1.ARW", 5: "dir_5_exp1.arw"}
    assert usable("dir_0.arw\ndir_11.arw") == {0: "dir_0.arw", 11: "dir_11.arw"}
    with pytest.raises(UserError, match="no listing names a RAW file"):
        plan({"hall": "thumb.jpg"})


class Server:
    """Serves `files` with Range; the first answer for a name in `cut` ends after that many bytes."""

    def __init__(
        self, files: dict[str, bytes], cut: dict[str, int] | None = None, ranges: bool = True, length: bool = True
    ):
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
                if length:
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
        digest = download(f"{server.address}/a.ARW", tmp_path / "a.ARW", LIMIT)
        assert server.requests[-1] == ("a.ARW", "bytes=20000-")
    assert (tmp_path / "a.ARW").read_bytes() == files["a.ARW"]
    assert digest == hashlib.sha256(files["a.ARW"]).hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == ["a.ARW"]


def test_a_server_without_ranges_starts_again(tmp_path):
    with Server({"a.ARW": content(1)}, cut={"a.ARW": 20_000}, ranges=False) as server:
        download(f"{server.address}/a.ARW", tmp_path / "a.ARW", LIMIT)
    assert (tmp_path / "a.ARW").read_bytes() == content(1)


def served(names: dict[str, list[int]]) -> dict[str, bytes]:
    """Scenes with the directions they list, laid out as the published server is."""
    files = {f"multilum/raw/{scene}/listing.txt": listing(d, (1,)).encode() for scene, d in names.items()}
    for scene, directions in names.items():
        files |= {f"multilum/raw/{scene}/dir_{d}_exp1.arw": content(len(scene) + d) for d in directions}
    return files


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "..", "-x", ".x", "a/b", "x" * 200])
def test_a_scene_whose_name_leads_out_of_the_folder_is_refused(tmp_path, name):
    (tmp_path / "scenes.txt").write_text(f"hall {name}")
    with pytest.raises(UserError, match="which is no name of a folder"):
        acquire(tmp_path / "captures", "http://127.0.0.1:9", str(tmp_path / "scenes.txt"), 3, 1, False)
    assert [path.name for path in tmp_path.iterdir()] == ["scenes.txt"]


def test_what_libraw_cannot_open_does_not_count(tmp_path):
    (tmp_path / "scenes.txt").write_text("hall")
    folder = tmp_path / "captures"
    with Server(served({"hall": [7]})) as server, pytest.raises(UserError, match=r"hall_dir7.ARW is not a RAW file"):
        acquire(folder, server.address, str(tmp_path / "scenes.txt"), 1, 1, False)
    assert [path.name for path in folder.glob("[!.]*")] == ["captures.csv"], "neither the file nor a record of it"


def test_acquire_downloads_once_and_again_what_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(acquire_module, "check_raw", lambda path: None)
    scenes = tmp_path / "scenes.txt"
    scenes.write_text("kitchen\nhall\neverett_lab\n")
    folder = tmp_path / "captures"
    with Server(served({"kitchen": [0, 5], "hall": [7, 8]})) as server:
        acquire(folder, server.address, str(scenes), 3, 1, False)
        with (folder / "captures.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == 3 and {row["split"] for row in rows} == {"train"}
        for row in rows:
            scene, direction = row["name"].split("_dir")
            assert (folder / row["path"]).read_bytes() == content(len(scene) + int(direction))
        asked = len(server.requests)
        acquire(folder, server.address, str(scenes), 3, 1, False)
        assert len(server.requests) == asked
        (folder / rows[1]["path"]).write_bytes(b"damaged")
        acquire(folder, server.address, str(scenes), 3, 1, False)
        assert len(server.requests) == asked + 1
    listed = (folder / "checksums.sha256").read_text().splitlines()
    for line, row in zip(listed, sorted(rows, key=lambda row: row["path"]), strict=True):
        digest = hashlib.sha256((folder / row["path"]).read_bytes()).hexdigest()
        assert line == f"{digest}  {row['path']}", "as sha256sum writes it"


@pytest.mark.parametrize("pinned_by", ["an earlier run", "a list from elsewhere"])
def test_another_file_than_the_pinned_one_is_refused_whoever_serves_it(tmp_path, monkeypatch, pinned_by):
    monkeypatch.setattr(acquire_module, "check_raw", lambda path: None)
    (tmp_path / "scenes.txt").write_text("hall")
    folder, listed = tmp_path / "captures", None
    files = served({"hall": [7]})
    if pinned_by == "an earlier run":
        with Server(files) as server:
            acquire(folder, server.address, str(tmp_path / "scenes.txt"), 1, 1, False)
        (folder / "hall_dir7.ARW").unlink()
    else:
        listed = tmp_path / "list"
        listed.write_text(f"{hashlib.sha256(content(11)).hexdigest()} *hall_dir7.ARW\n")
    files["multilum/raw/hall/dir_7_exp1.arw"] = content(99)
    with Server(files) as server, pytest.raises(UserError, match="is another file than the one that is pinned"):
        acquire(folder, server.address, str(tmp_path / "scenes.txt"), 1, 1, False, listed)
    assert not list(folder.glob("*.ARW")) and not list(folder.glob(".*.part"))
    files["multilum/raw/hall/dir_7_exp1.arw"] = content(11)
    with Server(files) as server:
        acquire(folder, server.address, str(tmp_path / "scenes.txt"), 1, 1, False, listed)
    assert (folder / "hall_dir7.ARW").read_bytes() == content(11)


def test_a_part_that_another_server_began_is_fetched_whole(tmp_path):
    (tmp_path / ".a.ARW.part").write_bytes(content(2)[:1000])
    with Server({"a.ARW": content(1)}) as server:
        download(f"{server.address}/a.ARW", tmp_path / "a.ARW", LIMIT, hashlib.sha256(content(1)).hexdigest())
    assert (tmp_path / "a.ARW").read_bytes() == content(1)


@pytest.mark.parametrize(
    "text, words", [("x  a.ARW", "line 1"), ("0" * 64 + "  ../a", "line 1"), ("", "no checksum of")]
)
def test_a_list_of_checksums_that_is_none(tmp_path, text, words):
    (tmp_path / "list").write_text(text + "\n" + "0" * 64 + "  other.ARW\n")
    (tmp_path / "scenes.txt").write_text("hall")
    with Server(served({"hall": [7]})) as server, pytest.raises(UserError, match=words):
        acquire(tmp_path / "captures", server.address, str(tmp_path / "scenes.txt"), 1, 1, False, tmp_path / "list")


ANSWERS = {
    "no HTTP": b"hello\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nx",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx",
    "broken chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a header without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000,
    "plain HTTP elsewhere": b"HTTP/1.1 302 Found\r\nLocation: http://example.org/a.ARW\r\n\r\n",
    "a file of this machine": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    "FTP": b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/a\r\n\r\n",
    "an address that is none": b"HTTP/1.1 302 Found\r\nLocation: https://[x/\r\n\r\n",
    "itself, for ever": b"HTTP/1.1 302 Found\r\nLocation: /a.ARW\r\n\r\n",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_whatever_a_server_answers_is_one_sentence_and_leaves_nothing(tmp_path, answer):
    import socketserver

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(ANSWERS[answer])

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(UserError):
                download(f"http://127.0.0.1:{server.server_address[1]}/a.ARW", tmp_path / "a.ARW", LIMIT)
        finally:
            server.shutdown()
            thread.join()
    assert not (tmp_path / "a.ARW").exists()


def test_only_the_plan(tmp_path):
    (tmp_path / "scenes.txt").write_text("hall kitchen")
    with Server(served({"kitchen": [0, 5], "hall": [7, 8]})) as server:
        acquire(tmp_path / "captures", server.address, str(tmp_path / "scenes.txt"), 1400, 1, True)
        assert not any(name.endswith(".arw") for name, _ in server.requests)
    assert [path.name for path in (tmp_path / "captures").glob("[!.]*")] == ["captures.csv"]


def test_a_missing_listing_leaves_no_plan(tmp_path):
    (tmp_path / "scenes.txt").write_text("hall kitchen")
    with Server(served({"kitchen": [0, 5]})) as server, pytest.raises(UserError, match=r"hall/listing.txt: .* 404"):
        acquire(tmp_path / "captures", server.address, str(tmp_path / "scenes.txt"), 3, 1, False)
    assert list((tmp_path / "captures").glob("[!.]*")) == []


@pytest.mark.parametrize("length", [True, False])
def test_files_beyond_the_limit_are_refused_and_leave_nothing(tmp_path, length):
    with Server({"a.ARW": content(1)}, length=length) as server, pytest.raises(UserError, match=r"more than the 0\.03"):
        download(f"{server.address}/a.ARW", tmp_path / "a.ARW", 30_000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://example.org/a.ARW", "ftp://127.0.0.1/a.ARW", "file:///etc/passwd"])
def test_only_https_is_fetched_from_elsewhere(tmp_path, url):
    with pytest.raises(UserError, match="only https"):
        download(url, tmp_path / "a.ARW", LIMIT)


def test_mistakes_are_named(tmp_path):
    with Server({}) as server, pytest.raises(UserError, match="404"):
        download(f"{server.address}/missing.ARW", tmp_path / "x.ARW", LIMIT)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="could not be fetched"):
        download("http://127.0.0.1:9/x.ARW", tmp_path / "x.ARW", LIMIT)
    with pytest.raises(UserError, match="no training scene"):
        plan({"everett_1": listing()})
    (tmp_path / "scenes.json").write_text('[{"name": "hall"}, {"name": "attic"}]')
    assert read_scenes(str(tmp_path / "scenes.json")) == ["hall", "attic"]


def test_a_number_of_absurd_length_is_no_direction():
    from fujinsplat.synthesis.acquire import usable

    digits = "1" * 5000
    assert usable(f"dir_{digits}_exp1.arw\ndir_5_exp1.arw\n") == {5: "dir_5_exp1.arw"}
    assert usable(f"dir_{digits}.arw") == {}
    assert usable(f"dir_5_exp{digits}.arw") == {}, "an exposure that is not 1"
