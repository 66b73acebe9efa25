"""The graph interpreter: each recognised group equals its nodes one by one, on a graph made here."""

import base64
import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fujinsplat.core.errors import UserError
from fujinsplat.restore import RestorerSettings, restore
from fujinsplat.restore import graph as graph_module
from fujinsplat.restore.graph import Graph
from fujinsplat.restore.maxim import Maxim, archive
from fujinsplat.restore.norm import layer_norm

CHANNELS = 8


class Builder:
    """Writes a graph model the way the converter does: constants in one group of weights, nodes with their inputs."""

    def __init__(self):
        self.nodes, self.weights, self.data = [], [], []

    def constant(self, value) -> str:
        value = np.asarray(value)
        value = value.astype(np.int32 if value.dtype.kind == "i" else np.float32)
        name = f"Const_{len(self.weights)}"
        kind = {"i": ("int32", "DT_INT32"), "f": ("float32", "DT_FLOAT")}[value.dtype.kind]
        self.weights.append({"name": name, "shape": list(value.shape), "dtype": kind[0]})
        self.data.append(value.tobytes())
        self.nodes.append({"name": name, "op": "Const", "attr": {"dtype": {"type": kind[1]}}})
        return name

    def add(self, operation: str, *inputs, **attributes) -> str:
        name = f"n{len(self.nodes)}/{operation}"
        self.nodes.append({"name": name, "op": operation, "input": list(inputs), "attr": attributes})
        return name

    def write(self, folder, output: str):
        self.nodes += [{"name": "xs_0", "op": "Placeholder"}, {"name": "Identity", "op": "Identity", "input": [output]}]
        data = b"".join(self.data)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.bin").write_bytes(data[:100])
        (folder / "b.bin").write_bytes(data[100:])
        manifest = [{"paths": ["a.bin", "b.bin"], "weights": self.weights}]
        signature = {"inputs": {"x": {"name": "xs_0:0"}}, "outputs": {"y": {"name": "Identity:0"}}}
        topology = {"node": self.nodes}
        (folder / "model.json").write_text(
            json.dumps({"signature": signature, "modelTopology": topology, "weightsManifest": manifest})
        )


def text(value: str) -> dict:
    return {"s": base64.b64encode(value.encode()).decode()}


def strides(n: int) -> dict:
    return {"list": {"i": ["1", str(n), str(n), "1"]}}


@pytest.fixture
def model(tmp_path):
    """conv + bias, layer norm, dense + bias, GELU, a resize by a matrix from the shape, leaky ReLU, logistic gate."""
    rng = np.random.default_rng(0)
    b, values = Builder(), {}

    def weight(name, *shape):
        values[name] = rng.normal(size=shape).astype(np.float32) * 0.3
        return b.constant(values[name])

    x = b.add("Conv2D", "xs_0", weight("conv", 3, 3, 3, CHANNELS), padding=text("SAME"), strides=strides(1))
    x = b.add("AddV2", x, weight("conv_bias", 1, 1, 1, CHANNELS))
    # layer norm as it is written out
    axis, share = b.constant([3]), b.constant(np.float32(1 / CHANNELS))
    shape = b.add("Shape", "xs_0")
    n, h, w = (
        b.add("StridedSlice", shape, b.constant([i]), b.constant([i + 1]), b.constant([1]), shrink_axis_mask={"i": "1"})
        for i in range(3)
    )
    flat = b.add("Pack", n, h, w, b.constant(1), axis={"i": "0"})
    mean = b.add("Mul", b.add("Sum", x, axis), share)
    squares = b.add("Mul", b.add("Sum", b.add("Square", x), axis), share)
    variance = b.add("Maximum", b.constant(np.float32(0)), b.add("Sub", squares, b.add("Square", mean)))
    root = b.add("Rsqrt", b.add("AddV2", b.add("Reshape", variance, flat), b.constant(np.float32(1e-6))))
    factor = b.add("Mul", root, weight("scale", 1, 1, 1, CHANNELS))
    centred = b.add("Sub", x, b.add("Reshape", mean, flat))
    y = b.add("AddV2", b.add("Mul", centred, factor), weight("shift", 1, 1, 1, CHANNELS))
    y = b.add("Einsum", y, weight("dense", CHANNELS, CHANNELS), equation=text("abcg,gf->abcf"))
    y = b.add("AddV2", y, weight("dense_bias", 1, 1, 1, CHANNELS))
    half = b.add("Mul", b.constant(np.float32(0.5)), y)
    cube = b.add("Mul", b.add("Mul", b.constant(np.float32(0.044715)), y), b.add("Square", y))
    curve = b.add("Tanh", b.add("Mul", b.constant(np.float32(0.7978846)), b.add("AddV2", y, cube)))
    y = b.add("Mul", half, b.add("AddV2", b.constant(np.float32(1)), curve))
    up = b.add(
        "Conv2DBackpropInput",
        shape,
        weight("up", 2, 2, CHANNELS, CHANNELS),
        y,
        padding=text("VALID"),
        strides=strides(2),
    )
    down = b.add("Conv2D", up, weight("down", 4, 4, CHANNELS, 3), padding=text("SAME"), strides=strides(2))
    below = b.add("GreaterEqual", down, b.constant(np.float32(0)))
    y = b.add("SelectV2", below, down, b.add("Mul", b.constant(np.float32(0.2)), down))
    gate = b.add("Reciprocal", b.add("AddV2", b.constant(np.float32(1)), b.add("Exp", b.add("Neg", y))))
    b.write(tmp_path / "models", b.add("AddV2", b.add("Mul", y, gate), "xs_0"))  # fmt: skip

    def expected(picture: torch.Tensor) -> torch.Tensor:
        v = {name: torch.from_numpy(value) for name, value in values.items()}
        x = F.conv2d(picture.permute(0, 3, 1, 2), v["conv"].permute(3, 2, 0, 1), padding=1).permute(0, 2, 3, 1)
        x = x + v["conv_bias"]
        y = F.layer_norm(x, (CHANNELS,), v["scale"].reshape(-1), v["shift"].reshape(-1), 1e-6)
        y = F.gelu(y @ v["dense"] + v["dense_bias"], approximate="tanh")
        y = F.conv_transpose2d(y.permute(0, 3, 1, 2), v["up"].permute(3, 2, 0, 1), stride=2)
        y = F.conv2d(y, v["down"].permute(3, 2, 0, 1), stride=2, padding=1).permute(0, 2, 3, 1)
        y = F.leaky_relu(y, 0.2)
        return y * torch.sigmoid(y) + picture

    return tmp_path / "models", expected


@pytest.mark.parametrize("size", [(8, 12), (16, 10)])
def test_the_graph_computes_what_it_says(model, size):
    folder, expected = model
    picture = torch.rand(1, *size, 3)
    torch.testing.assert_close(Graph.read(folder)(picture), expected(picture), atol=2e-5, rtol=1e-4)


def test_recognised_groups_equal_their_nodes(model, monkeypatch):
    folder, _ = model
    picture = torch.rand(1, 8, 12, 3)
    fused = Graph.read(folder)
    out = fused(picture)
    monkeypatch.setattr(graph_module, "PATTERNS", ())
    plain = Graph.read(folder)
    torch.testing.assert_close(out, plain(picture), atol=2e-5, rtol=1e-4)
    (short,), (long,) = (list(g._programs.values()) for g in (fused, plain))
    assert len(short.steps) < len(long.steps) / 2


@pytest.mark.parametrize("channels", [20, 32, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_layer_norm_is_that_of_torch(channels, dtype):
    """Also of a slice, which does not lie in one piece; what comes back is rounded once."""
    torch.manual_seed(0)
    x = (3 * torch.randn(2, 5, 7, 2 * channels) + 1).to(dtype)[..., :channels]
    of = torch.float64 if dtype == torch.float64 else torch.float32
    weight, bias = torch.randn(channels, dtype=of), torch.randn(channels, dtype=of)
    out = layer_norm(x, weight, bias, 1e-6)
    expected = F.layer_norm(x.to(of), (channels,), weight, bias, 1e-6).to(dtype)
    step = torch.finfo(dtype).eps
    assert out.dtype == dtype and out.shape == x.shape
    torch.testing.assert_close(out, expected, atol=50 * step if dtype != torch.bfloat16 else 1e-5, rtol=2 * step)


@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 3, 2, 1)])
def test_a_dense_layer_along_another_axis_is_one_step(tmp_path, monkeypatch, order):
    """Between a swap of axes and its undoing, and with a number added: one product, nothing moved in memory."""
    rng = np.random.default_rng(1)
    size = (8, 12)[order[3] - 1]
    b = Builder()
    moved = b.add("Transpose", "xs_0", b.constant(list(order)))
    product = b.add("Einsum", moved, b.constant(rng.normal(size=(size, size))), equation=text("abcg,gf->abcf"))
    shifted = b.add("AddV2", product, b.constant(rng.normal(size=(1, 1, 1, size))))
    back = b.add("Transpose", shifted, b.constant(list(order)))
    b.write(tmp_path / "models", b.add("AddV2", b.constant(np.float32(1)), back))
    for batch in (1, 2):
        picture = torch.rand(batch, 8, 12, 3)
        fused = Graph.read(tmp_path / "models")
        out = fused(picture)
        assert [len(program.steps) for program in fused._programs.values()] == [2]  # and the graph's own last node
        with monkeypatch.context() as without:
            without.setattr(graph_module, "PATTERNS", ())
            torch.testing.assert_close(out, Graph.read(tmp_path / "models")(picture), atol=2e-5, rtol=1e-4)


def test_pictures_are_resized_by_matrices(tmp_path, monkeypatch):
    """Rows, then columns, as the converter writes a resize."""
    rng = np.random.default_rng(2)
    b = Builder()
    rows = b.add("Einsum", b.constant(rng.random((8, 5))), "xs_0", equation=text("gb,cgef->bcef"))
    columns = b.add("Einsum", rows, b.constant(rng.random((12, 7))), equation=text("abgd,gf->abdf"))
    b.write(tmp_path / "models", columns)
    picture = torch.rand(1, 8, 12, 3)
    out = Graph.read(tmp_path / "models")(picture)
    assert out.shape == (5, 1, 3, 7)
    monkeypatch.setattr(graph_module, "PATTERNS", ())
    torch.testing.assert_close(out, Graph.read(tmp_path / "models")(picture), atol=2e-5, rtol=1e-4)


def test_half_precision_stays_close(model):
    folder, expected = model
    picture = torch.rand(1, 16, 16, 3)
    out = Graph.read(folder, torch.bfloat16)(picture)
    assert out.dtype == torch.float32
    assert (out - expected(picture)).abs().max() < 0.1


def test_a_damaged_model_is_one_sentence(model):
    folder, _ = model
    shard = folder / "b.bin"
    shard.write_bytes(shard.read_bytes()[:-4])
    with pytest.raises(UserError, match="the shards end before weight"):
        Graph.read(folder)
    shard.unlink()
    with pytest.raises(UserError, match=r"b\.bin does not exist"):
        Graph.read(folder)
    (folder / "model.json").write_text("{")
    with pytest.raises(UserError, match="is not a graph model"):
        Graph.read(folder)


UNKNOWN = {
    "FusedEverything": ("FusedEverything", {}),
    "StridedSlice with new axes or an ellipsis": ("StridedSlice", {"ellipsis_mask": {"i": "1"}}),
    "Conv2DBackpropInput with SAME padding": ("Conv2DBackpropInput", {"padding": text("SAME"), "strides": strides(2)}),
    "Conv2D with EXPLICIT padding": ("Conv2D", {"padding": text("EXPLICIT"), "strides": strides(1)}),
    "Conv2D with dilation": ("Conv2D", {"padding": text("SAME"), "strides": strides(1), "dilations": strides(2)}),
    "Conv2D with pictures laid out as NCHW": ("Conv2D", {"padding": text("SAME"), "data_format": text("NCHW")}),
    "Cast to another type": ("Cast", {"DstT": {"type": "DT_HALF"}}),
}


@pytest.mark.parametrize("words", UNKNOWN)
def test_an_unknown_operation_is_named(tmp_path, words):
    """When the model is read, before any picture; an operation that is known in another form alone as well."""
    b = Builder()
    operation, attributes = UNKNOWN[words]
    b.write(tmp_path / "models", b.add(operation, "xs_0", **attributes))
    with pytest.raises(UserError, match=f"uses {words}.*does not know; "):
        Graph.read(tmp_path / "models")


def test_a_package_with_another_checksum_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pictures = {"0001": np.zeros((8, 8, 3), np.uint8)}
    with pytest.raises(UserError, match="restore fetch indoor"):
        restore(pictures, RestorerSettings(by="maxim"))
    archive("indoor").parent.mkdir(parents=True)
    archive("indoor").write_bytes(b"something else")
    with pytest.raises(UserError, match="has the checksum"):
        restore(pictures, RestorerSettings(by="maxim"))


def test_pictures_of_any_size_come_back_whole(model, tmp_path):
    import tarfile

    folder, _ = model
    with tarfile.open(tmp_path / "p.tgz", "w:gz") as packed:
        packed.add(folder, "package/models")
    picture = np.random.default_rng(0).integers(0, 255, (37, 70, 3), np.uint8)
    out = Maxim(tmp_path / "p.tgz", "float32")(picture)
    assert out.shape == picture.shape and out.dtype == np.uint8


@pytest.mark.skipif(not archive("indoor").is_file(), reason="MAXIM's weights are optional and not fetched")
def test_maxim_clears_a_hazy_gradient():
    picture = np.full((64, 64, 3), 200, np.uint8)
    picture[16:48, 16:48] = [190, 180, 170]
    out = Maxim(archive("indoor"))(picture)
    assert out.astype(int).std() > picture.astype(int).std()
