"""MAXIM's graph node by node in numpy against our interpreter, in one run.

    python -m benchmarks.bench_maxim       (weights first: `fujinsplat restore fetch`)

Each row: arithmetic, CPU milliseconds per pixel of numpy and of ours, the ratio, what is asked for, and how far the two
pictures are apart in dB. Numpy has its own BLAS for every product. CPU seconds are what a busy machine disturbs least;
the smallest of a few, both sides on one thread.
"""

import os

os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})

import numpy as np

from benchmarks.bench_smoke import cpu_seconds

HEIGHT, WIDTH = 128, 256
REPEATS = 3
WANTED = 5.0


def _whole(value) -> list[int]:
    return [int(v) for v in np.asarray(value).reshape(-1)]


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return missing // 2, missing - missing // 2


def _convolution(a, x, kernel):
    """One product for each tap of the kernel."""
    (high, wide), (down, across) = kernel.shape[:2], a["strides"][1:3]
    if a["padding"] == "SAME":
        x = np.pad(x, ((0, 0), _same(x.shape[1], high, down), _same(x.shape[2], wide, across), (0, 0)))
    rows, columns = (x.shape[1] - high) // down + 1, (x.shape[2] - wide) // across + 1
    return sum(
        x[:, i : i + down * rows : down, j : j + across * columns : across] @ kernel[i, j]
        for i in range(high)
        for j in range(wide)
    )


def _transposed(a, sizes, kernel, x):
    """Kernels as large as the stride, so that nothing overlaps."""
    n, h, w, _ = x.shape
    blocks = np.einsum("nhwi,yxoi->nhywxo", x, kernel, optimize=True)
    return blocks.reshape(n, h * kernel.shape[0], w * kernel.shape[1], -1)


def _einsum(a, x, y):
    if a["equation"] == "abcg,gf->abcf":
        return (x.reshape(-1, x.shape[-1]) @ y).reshape(*x.shape[:-1], -1)
    return np.einsum(a["equation"], x, y, optimize=True)


def _slice(a, x, begin, end, stride):
    index = []
    for axis, (first, last, step) in enumerate(zip(_whole(begin), _whole(end), _whole(stride), strict=True)):
        from_start, to_end, shrinks = (
            a.get(mask, 0) >> axis & 1 for mask in ("begin_mask", "end_mask", "shrink_axis_mask")
        )
        index.append(first if shrinks else slice(None if from_start else first, None if to_end else last, step))
    return x[tuple(index)]


NUMPY = {
    "Abs": lambda a, x: np.abs(x),
    "AddV2": lambda a, x, y: x + y,
    "BroadcastTo": lambda a, x, shape: np.broadcast_to(x, _whole(shape)),
    "Cast": lambda a, x: np.asarray(x).astype(np.float32 if "float" in str(a["DstT"]) else np.int64),
    "ConcatV2": lambda a, *xs: np.concatenate(xs[:-1], int(xs[-1])),
    "Conv2D": _convolution,
    "Conv2DBackpropInput": _transposed,
    "Einsum": _einsum,
    "Exp": lambda a, x: np.exp(x),
    "ExpandDims": lambda a, x, axis: np.expand_dims(x, int(axis)),
    "Floor": lambda a, x: np.floor(x),
    "FloorDiv": lambda a, x, y: x // y,
    "FloorMod": lambda a, x, y: x % y,
    "GatherV2": lambda a, x, indices, axis: np.take(x, indices, int(axis)),
    "Greater": lambda a, x, y: x > y,
    "GreaterEqual": lambda a, x, y: x >= y,
    "Identity": lambda a, x: x,
    "Less": lambda a, x, y: x < y,
    "LessEqual": lambda a, x, y: x <= y,
    "LogicalAnd": lambda a, x, y: x & y,
    "Maximum": lambda a, x, y: np.maximum(x, y),
    "Minimum": lambda a, x, y: np.minimum(x, y),
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "NotEqual": lambda a, x, y: x != y,
    "Pack": lambda a, *xs: np.stack(xs, a.get("axis", 0)),
    "Range": lambda a, start, limit, delta: np.arange(int(start), int(limit), int(delta)),
    "RealDiv": lambda a, x, y: x / y,
    "Reciprocal": lambda a, x: 1 / x,
    "Reshape": lambda a, x, shape: np.reshape(x, _whole(shape)),
    "Rsqrt": lambda a, x: 1 / np.sqrt(x),
    "SelectV2": lambda a, condition, x, y: np.where(condition, x, y),
    "Shape": lambda a, x: np.array(x.shape),
    "Sign": lambda a, x: np.sign(x),
    "Square": lambda a, x: x * x,
    "Squeeze": lambda a, x: np.squeeze(x, tuple(a["squeeze_dims"]) if a.get("squeeze_dims") else None),
    "StridedSlice": _slice,
    "Sub": lambda a, x, y: x - y,
    "Sum": lambda a, x, axes: np.sum(x, tuple(_whole(axes)), keepdims=a.get("keep_dims", False)),
    "Tanh": lambda a, x: np.tanh(x),
    "Transpose": lambda a, x, order: np.transpose(x, _whole(order)),
}


def in_numpy(graph, picture: np.ndarray) -> np.ndarray:
    """The graph's nodes in order, one call each; a value goes after its last use."""
    values = {name: value.numpy() for name, value in graph.weights.items()} | {graph.picture: picture}
    order, stack, seen = [], [graph.output], set(values)
    while stack:
        name = stack[-1]
        missing = [other for other in graph.nodes[name].inputs if other not in seen] if name not in seen else []
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if name not in seen:
            seen.add(name)
            order.append(name)
    last = {other: name for name in order for other in graph.nodes[name].inputs}
    for name in order:
        node = graph.nodes[name]
        values[name] = NUMPY[node.operation](node.attributes, *(values[other] for other in node.inputs))
        for other in set(node.inputs):
            if last[other] == name:
                del values[other]
    return values[graph.output]


def run() -> list[dict]:
    """One dict per arithmetic."""
    import torch

    from fujinsplat.restore.maxim import Maxim, archive

    torch.set_num_threads(1)
    coarse = np.random.default_rng(0).random((1, HEIGHT // 16, WIDTH // 16, 3))
    picture = (0.4 + 0.4 * coarse.repeat(16, 1).repeat(16, 2)).astype(np.float32)
    given, scale = torch.from_numpy(picture), 1e3 / (HEIGHT * WIDTH)
    graphs = {name: Maxim(archive("indoor"), name).graph for name in ("float32", "bfloat16")}
    reference = in_numpy(graphs["float32"], picture)
    plain = cpu_seconds(lambda: in_numpy(graphs["float32"], picture), REPEATS) * scale
    rows = []
    for name, graph in graphs.items():
        error = np.square(graph(given).float().numpy() - reference).mean()  # and its steps are made, once for a size
        ours = cpu_seconds(lambda graph=graph: graph(given), REPEATS) * scale
        decibels = -10 * np.log10(max(float(error), 1e-12))
        rows.append({"precision": name, "numpy": plain, "ours": ours, "ratio": plain / ours, "db": decibels})
    return rows


def main() -> None:
    from fujinsplat.restore.maxim import archive

    if not archive("indoor").is_file():
        print("MAXIM's weights are absent: `fujinsplat restore fetch` gets them (54 MB)")
        return
    for row in run():
        print(
            f"{row['precision']:>8}: numpy {row['numpy']:.4f} ms/pixel, ours {row['ours']:.4f}, {row['ratio']:.1f}x "
            f"(wanted {WANTED:.0f}x); {row['db']:.0f} dB apart"
        )


if __name__ == "__main__":
    main()
