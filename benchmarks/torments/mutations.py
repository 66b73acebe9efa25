"""Damaged files: every reader gives a result or one sentence, whatever the bytes are."""

import contextlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import struct
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

MEMORY = 6 << 30  # bytes of address space that a reader of tiny files may take
BATCH = 60  # mutations in one process
PATIENCE = 900.0  # seconds for one batch, on a busy machine


# readers: what a stage does first with a file of this kind. Imports inside: each batch is a process of its own


def _views(folder: Path, kind: str) -> None:
    from fujinsplat.capture import HeldViews, SourceViews

    views = HeldViews(folder) if kind == "held" else SourceViews(folder)
    for stem in views.stems:
        views.rgb(stem)
        if kind == "source":
            views.raw(stem)
            views.white_balance(stem)
            views.camera_matrix(stem)


def _front(path: Path) -> None:
    from fujinsplat.views.store import Views

    views = Views(path)
    for stem in views.stems:
        views.encoded(stem)


def _picture(path: Path) -> None:
    from fujinsplat.capture.picture import read_rgb

    read_rgb(path)


def _raw(path: Path) -> None:
    from fujinsplat.capture.raw import read_raw
    from fujinsplat.core.settings import CaptureSettings

    read_raw(path, CaptureSettings())


def _call(module: str, name: str, *more: Any) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        from importlib import import_module

        function: Any = import_module(module)
        for word in name.split("."):
            function = getattr(function, word)
        function(path, *more)

    return read


def _observations(path: Path) -> None:
    from fujinsplat.controller.data import load_observations

    load_observations([path])


def _scores(path: Path) -> None:
    from fujinsplat.evaluate.collect import read_scores

    read_scores(path)


def _sheet(path: Path) -> None:
    from fujinsplat.synthesis.sheet import read_sheet

    read_sheet(path.parent)


def _config(path: Path) -> None:
    from fujinsplat.config_command import check

    with contextlib.redirect_stdout(io.StringIO()):
        check(path)


def _record(path: Path) -> None:
    from fujinsplat.evaluate.reads import read_reads

    (path.parent.parent / "logs").mkdir(exist_ok=True)
    shutil.copy(path, path.parent.parent / "logs" / "x.reads.json")
    read_reads(path.parent.parent)


def _summary(path: Path) -> None:
    from fujinsplat.report.gather import processors

    (path.parent.parent / "metrics/x").mkdir(parents=True, exist_ok=True)
    shutil.copy(path, path.parent.parent / "metrics/x/y.json")
    processors(path.parent.parent)


def _fidelity(path: Path) -> None:
    from fujinsplat.evaluate.tables.studies import fidelity_of
    from fujinsplat.paths import inside

    there = inside(path.parent, "fidelity", scene="x", version="")
    there.parent.mkdir(exist_ok=True)
    shutil.copy(path, there)
    fidelity_of(path.parent, "x")


# by name: files below a build, and their reader
READERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "source array": ("results/*/capture/*/source/*.npy", lambda path: _views(path.parent, "source")),
    "source picture": ("results/*/capture/*/source/*.png", lambda path: _views(path.parent, "source")),
    "list of views": ("results/*/capture/*/source/views.json", lambda path: _views(path.parent, "source")),
    "held picture": ("results/*/references/held/*/*.png", lambda path: _views(path.parent, "held")),
    "cameras": ("results/*/capture/*/cameras.json", _call("fujinsplat.capture", "read_cameras")),
    "points": ("results/*/capture/*/points.ply", _call("fujinsplat.capture", "read_points")),
    "base": ("results/*/base/*.safetensors", _call("fujinsplat.isp", "load")),
    "actions": ("results/*/actions/*.safetensors", _call("fujinsplat.flow", "load")),
    "pairs": ("results/*/actions/*.veil.json", _call("fujinsplat.actions.population", "load_pairs")),
    "population": ("results/*/population.json", _call("fujinsplat.actions.population", "load")),
    "captures": ("results/*/synthetic/captures/*.safetensors", _call("fujinsplat.synthesis.captures", "Captures.load")),
    "external base": ("results/*/synthetic/base.json", _call("fujinsplat.synthesis.external", "load_matrix")),
    "draws": ("results/*/synthetic/*/draws.safetensors", _call("fujinsplat.synthesis.draws", "Draws.load")),
    "observations": ("results/*/synthetic/default/0*.safetensors", _observations),
    "controller": ("results/*/controller/*.safetensors", _call("fujinsplat.controller.store", "load")),
    "smoke": ("results/*/smoke/*.safetensors", _call("fujinsplat.smoke.model", "Smoke.load")),
    "front": ("results/*/views/*/*.safetensors", _front),
    "developed": ("results/*/developed/*/*.safetensors", _call("fujinsplat.develop.store", "Developed")),
    "model": ("results/*/gaussians/*/*.linear.safetensors", _call("fujinsplat.splat.model", "Gaussians.load")),
    "splat": ("results/*/gaussians/*/*.ply", _call("fujinsplat.splat.ply", "read_ply")),
    "render": ("results/*/renders/*/*/*.png", _call("fujinsplat.evaluate.protocol", "read_picture")),
    "scores": ("results/*/metrics/*/*.csv", _scores),
    "photograph": ("data/*/*/train/*.JPG", _picture),
    "RAW": ("data/*/*/train/*.dng", _raw),
    "poses": ("data/*/*/transforms_train.json", _call("fujinsplat.capture.poses", "read_transforms", (96, 64))),
    "dataset's points": ("data/*/*/point3d.ply", _call("fujinsplat.capture", "read_points")),
    "depth map": (
        "data/*/external/*.depth.npy",
        _call("fujinsplat.core.reading", "load_array", "depth map", "make it again"),
    ),
    "training log": ("results/*/gaussians/*/*.log.jsonl", _call("fujinsplat.evaluate.scoring", "_training")),
    "fidelity": ("results/*/base/*.json", _fidelity),
    "score summary": ("results/*/metrics/*/*.json", _summary),
    "record of a job": ("results/*/logs/splat/**/*.reads.json", _record),
    "config": ("config.yaml", _config),
    "sheet": ("data/*/external/*.csv", _sheet),
}


# mutations


def cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def flipped(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20, 200))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def header(data: bytes, rng: Random) -> bytes:
    """The first bytes, where formats say how much there is."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(min(len(changed), 256))] = rng.choice((0, 255, 127, 128, rng.randrange(256)))
    return bytes(changed)


def numbers(data: bytes, rng: Random) -> bytes:
    """Runs of float32 that are no numbers, or huge."""
    changed = bytearray(data)
    bad = struct.pack("<f", rng.choice((float("nan"), float("inf"), -1e38, 3e38)))
    start = rng.randrange(max(1, len(changed) - 64)) & ~3
    for offset in range(start, min(start + 4 * rng.choice((1, 4, 16)), len(changed) - 4), 4):
        changed[offset : offset + 4] = bad
    return bytes(changed)


def words(data: bytes, rng: Random) -> bytes:
    """Numbers and words of a text, or of a header that is text, become others."""
    import re

    limit = min(len(data), 20000)
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?|\"\w+\"|null|true", data[:limit]))
    if not found:
        return flipped(data, rng)
    match = rng.choice(found)
    others = (b"0", b"-1", b"1e999", b"1000000000000", b"NaN", b"null", b'"x"', b"[]", b"{}", b"", b'"../../x"')
    return data[: match.start()] + rng.choice(others) + data[match.end() :]


def replaced(data: bytes, rng: Random) -> bytes:
    return rng.choice((b"", b"\0" * 64, b"{}", b"[]", b"null", b"ply\n", b"\x93NUMPY", rng.randbytes(len(data) % 5000)))


def repeated(data: bytes, rng: Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + data[max(0, place - rng.randrange(1, 200)) :]


def value(data: bytes, rng: Random) -> bytes:
    """A JSON file that is still JSON: something in it removed or of another kind."""
    try:
        content = json.loads(data)
    except ValueError:
        return words(data, rng)
    places = list(_places(content))
    if not places:
        return b"[]"
    parent, key = rng.choice(places)
    if rng.random() < 0.3:
        del parent[key]
    else:
        parent[key] = rng.choice(
            (None, -1, 0, 1e300, 10**30, "x", "../../../x", [], {}, True, [[0] * 3] * 3, float("nan"))
        )
    return json.dumps(content).encode()


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = content.keys() if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield content, key
        yield from _places(content[key])


MUTATIONS = (cut, flipped, header, numbers, words, replaced, repeated, value)


def damaged(data: bytes, rng: Random) -> tuple[str, bytes]:
    """One mutation, by name."""
    chosen = rng.choice(MUTATIONS if data else (replaced,))
    return chosen.__name__, chosen(data, rng)


# a batch in a process of its own: a crash or a memory bomb is that process's end, and counted


def outcome(read: Callable[[Path], None], path: Path) -> str:
    """`accepted`, `refused`, or what came instead of a sentence."""
    from fujinsplat.core.errors import UserError

    try:
        with warnings.catch_warnings(action="ignore"):
            read(path)
        return "accepted"
    except UserError as error:
        text = str(error)
        return "refused" if ";" in text or " is " in text else f"a sentence without a remedy: {text[:100]}"
    except BaseException as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"


def batch(name: str, original: str, seed: str, count: int, pipe: Any, work: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)  # LibRaw and others complain there
    rng, read = Random(seed), READERS[name][1]
    source = Path(original)
    folder = Path(work) / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    few = source.parent.name in ("source", "train") or source.name == "views.json" or "references" in source.parts
    if few:
        shutil.copytree(source.parent, folder)
    else:
        folder.mkdir(parents=True)
    path = folder / source.name
    data = source.read_bytes()
    for index in range(count):
        how, changed = damaged(data, rng)
        path.write_bytes(changed)
        pipe.send((index, how, "started"))
        pipe.send((index, how, outcome(read, path)))
    pipe.close()


def mutate(build: Path, work: Path, until: float, rng: Random, counts: Counter, losses: list[str]) -> None:
    """Batches over the kinds of files that the build has, each kind as often as any other, until the time is up."""
    found = {name: sorted(map(str, build.glob(pattern))) for name, (pattern, _) in READERS.items()}
    names = [name for name, files in found.items() if files]
    if absent := sorted(set(READERS) - set(names)):
        print(f"  the build has no {', '.join(absent)}")
    while time.monotonic() < until:
        rng.shuffle(names)
        for name in names:
            if time.monotonic() >= until:
                return
            run_batch(name, rng.choice(found[name]), str(rng.random()), BATCH, work, counts, losses)


def run_batch(name: str, file: str, seed: str, count: int, work: Path, counts: Counter, losses: list[str]) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=batch, args=(name, file, seed, count, theirs, str(work)))
    process.start()
    theirs.close()
    last, deadline = ("?", "finished"), time.monotonic() + PATIENCE
    try:
        while ours.poll(max(0.0, deadline - time.monotonic())):
            _, how, what = ours.recv()
            last = (how, what)
            if what == "started":
                continue
            counts[what if what in ("accepted", "refused") else "other"] += 1
            if what not in ("accepted", "refused"):
                losses.append(f"{name}, {how}: {what}")
    except EOFError:
        pass
    process.join(1)
    if process.is_alive():
        process.kill()
        process.join()
        losses.append(f"{name}, {last[0]}: still at work after {PATIENCE:g} s (seed {seed})")
    elif last[1] == "started":
        losses.append(f"{name}, {last[0]}: the process ended with {process.exitcode} (seed {seed})")
