"""Groups of nodes that spell out one torch call, recognised by their shape in the graph.

A pattern takes the program being made and the name of the group's last node, and gives `(call, names of its inputs)`,
or None where the group is not there exactly; then its nodes run one by one. Inner nodes that nothing else reads are
never asked for again and so vanish by themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from fujinsplat.compat.onednn import linear
from fujinsplat.restore.graph_ops import same_padding, whole
from fujinsplat.restore.norm import layer_norm as normalised

if TYPE_CHECKING:
    from fujinsplat.restore.graph import Program

Found = tuple[Callable[..., Tensor], tuple[str, ...]] | None
GELU_CUBE, GELU_SCALE = 0.044715, 0.7978845608  # of the tanh form
GELU_READS = 4  # so often it reads its argument
DENSE = "abcg,gf->abcf"
# the axis that an order of axes brings to the end, and back again
SWAPS: dict[tuple[int, ...], int] = {(0, 1, 3, 2): 2, (0, 3, 2, 1): 1}


def _is(program: "Program", name: str, operation: str) -> bool:
    return program.constant(name) is None and program.node(name).operation == operation


def _scalar(program: "Program", name: str) -> float | None:
    value = program.constant(name)
    return float(value) if value is not None and value.numel() == 1 else None


def _with_scalar(program: "Program", name: str, operation: str, wanted: float) -> str | None:
    """The other operand of a commutative `operation` with the number `wanted`."""
    if not _is(program, name, operation):
        return None
    first, second = program.node(name).inputs
    for one, other in ((first, second), (second, first)):
        value = _scalar(program, one)
        if value is not None and abs(value - wanted) < 1e-6:
            return other
    return None


def _pair(program: "Program", name: str, operation: str) -> list[tuple[str, str]]:
    """Both orders of a commutative operation's operands; none when the node is another."""
    if not _is(program, name, operation):
        return []
    first, second = program.node(name).inputs
    return [(first, second), (second, first)]


def _unreshaped(program: "Program", name: str) -> str:
    return program.node(name).inputs[0] if _is(program, name, "Reshape") else name


def logistic(program: "Program", name: str) -> Found:
    """1 / (1 + exp(-x))"""
    if not _is(program, name, "Reciprocal"):
        return None
    power = _with_scalar(program, program.node(name).inputs[0], "AddV2", 1.0)
    if power is None or not _is(program, power, "Exp"):
        return None
    negated = program.node(power).inputs[0]
    return (torch.sigmoid, program.node(negated).inputs) if _is(program, negated, "Neg") else None


def leaky_relu(program: "Program", name: str) -> Found:
    """x where x >= 0, else slope x"""
    if not _is(program, name, "SelectV2"):
        return None
    condition, x, scaled = program.node(name).inputs
    if not _is(program, condition, "GreaterEqual") or program.node(condition).inputs[0] != x:
        return None
    if _scalar(program, program.node(condition).inputs[1]) != 0.0:
        return None
    for slope, other in _pair(program, scaled, "Mul"):
        value = _scalar(program, slope)
        if other == x and value is not None:
            return partial(F.leaky_relu, negative_slope=value), (x,)
    return None


def gelu(program: "Program", name: str) -> Found:
    """x/2 (1 + tanh(s (x + c x x^2))), with the dense layer before it where nothing else reads that"""
    x = _gelu_of(program, name)
    if x is None:
        return None
    if program.graph.readers[x] == GELU_READS:
        dense = with_bias(program, x, gelu=True)
        if dense is not None:
            return dense
    return partial(F.gelu, approximate="tanh"), (x,)


def _gelu_of(program: "Program", name: str) -> str | None:
    for half, other in _pair(program, name, "Mul"):
        x = _with_scalar(program, half, "Mul", 0.5)
        curve = _with_scalar(program, other, "AddV2", 1.0)
        if x is None or curve is None or not _is(program, curve, "Tanh"):
            continue
        total = _with_scalar(program, program.node(curve).inputs[0], "Mul", GELU_SCALE)
        if total is None:
            continue
        for first, cubic in _pair(program, total, "AddV2"):
            for scaled, square in _pair(program, cubic, "Mul"):
                same = _with_scalar(program, scaled, "Mul", GELU_CUBE) == x and _is(program, square, "Square")
                if first == x and same and program.node(square).inputs[0] == x:
                    return x
    return None


def _mean_of(program: "Program", name: str) -> tuple[str, float] | None:
    """`(x, 1/C)` for a node that is the mean of x over its last axis, written Sum times a number."""
    for total, share in _pair(program, _unreshaped(program, name), "Mul"):
        value = _scalar(program, share)
        if value is not None and _is(program, total, "Sum"):
            x, axes = program.node(total).inputs
            along = program.constant(axes)
            if along is not None and whole(along) in ([3], [-1]):
                return x, value
    return None


def layer_norm(program: "Program", name: str) -> Found:
    """(x - mean) (rsqrt(max(0, mean x^2 - mean^2) + eps) scale) + bias, over the last axis"""
    for product, bias in _pair(program, name, "AddV2"):
        shift = program.constant(bias)
        if shift is None:
            continue
        for centred, factor in _pair(program, product, "Mul"):
            found = _normalised(program, centred, factor)
            if found is not None:
                x, scale, epsilon = found
                weight, shift = (value.reshape(-1).contiguous() for value in (scale, shift))
                if weight.numel() == shift.numel():
                    return partial(normalised, weight=weight, bias=shift, epsilon=epsilon), (x,)
    return None


def _normalised(program: "Program", centred: str, factor: str) -> tuple[str, Tensor, float] | None:
    """x, scale and eps."""
    if not _is(program, centred, "Sub"):
        return None
    x, mean = program.node(centred).inputs
    of = _mean_of(program, mean)
    for root, factor_name in _pair(program, factor, "Mul"):
        scale = program.constant(factor_name)
        if of is None or of[0] != x or scale is None or not _is(program, root, "Rsqrt"):
            continue
        if abs(of[1] * scale.numel() - 1) > 1e-5:
            continue
        for variance, epsilon in _pair(program, program.node(root).inputs[0], "AddV2"):
            value = _scalar(program, epsilon)
            if value is not None and _is_variance(program, variance, x):
                return x, scale, value
    return None


def _is_variance(program: "Program", name: str, x: str) -> bool:
    difference = _with_scalar(program, _unreshaped(program, name), "Maximum", 0.0)
    if difference is None or not _is(program, difference, "Sub"):
        return False
    squares, mean_squared = program.node(difference).inputs
    of = _mean_of(program, squares)
    if of is None or not _is(program, of[0], "Square") or program.node(of[0]).inputs[0] != x:
        return False
    mean = program.node(mean_squared).inputs[0] if _is(program, mean_squared, "Square") else None
    inner = _mean_of(program, mean) if mean is not None else None
    return inner is not None and inner[0] == x


def _product(matrix: Tensor, bias: Tensor | None, gelu: bool) -> Callable[[Tensor], Tensor]:
    """`matrix [out, in]`: one large product however `v` lies in memory."""

    def run(v: Tensor) -> Tensor:
        rows = v.reshape(-1, v.shape[-1]).to(matrix.dtype)
        return linear(rows, matrix, bias, gelu).view(*v.shape[:-1], -1)

    return run


def _along(axis: int, matrix: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The product with `matrix [out, in]` along axis 1 or 2 of `[N, A, B, C]`, which stays as it lies in memory."""
    kernel = matrix[..., None].contiguous()
    column = None if bias is None else bias[:, None]

    def run(v: Tensor) -> Tensor:
        v = v.to(matrix.dtype)
        n, a, b, c = v.shape
        if axis == 2:
            return F.conv1d(v.reshape(n * a, b, c), kernel, bias).view(n, a, -1, c)
        items = [linear(matrix, item.reshape(a, -1).T) for item in v]
        out = items[0][None] if n == 1 else torch.stack(items)
        return (out if column is None else out.add_(column)).view(n, -1, b, c)

    return run


def swapped(program: "Program", name: str) -> Found:
    """A dense layer between a swap of axes and its undoing, and the number that may be added to it."""
    for inner, number in _pair(program, name, "AddV2"):
        value = _scalar(program, number)
        if value is not None and program.constant(inner) is None and program.graph.readers[inner] == 1:
            return _swapped(program, inner, value)
    return _swapped(program, name, 0.0)


def _swapped(program: "Program", name: str, number: float) -> Found:
    axis = _swap(program, name)
    if axis is None:
        return None
    inner = program.node(name).inputs[0]
    for product, bias in _pair(program, inner, "AddV2"):
        value = program.constant(bias)
        if value is None or not _is(program, product, "Einsum") or value.numel() != value.shape[-1]:
            continue
        before, weight = program.node(product).inputs
        once = all(program.graph.readers[node] == 1 for node in (inner, product, before))
        matrix = program.constant(weight)
        if not once or matrix is None or program.node(product).attributes["equation"] != DENSE:
            continue
        if _swap(program, before) == axis:
            shift = (value.reshape(-1) + number).to(program.precision)
            return _along(axis, matrix.T.contiguous().to(program.precision), shift), program.node(before).inputs[:1]
    return None


def _swap(program: "Program", name: str) -> int | None:
    if not _is(program, name, "Transpose"):
        return None
    order = program.constant(program.node(name).inputs[1])
    return None if order is None else SWAPS.get(tuple(whole(order)))


def resize(program: "Program", name: str) -> Found:
    """A product with a matrix along the rows or columns of a picture."""
    if not _is(program, name, "Einsum"):
        return None
    first, second = program.node(name).inputs
    equation = program.node(name).attributes["equation"]
    left, right = program.constant(first), program.constant(second)
    if equation == "gb,cgef->bcef" and left is not None:
        rows = _along(1, left.T.contiguous().to(program.precision), None)
        return lambda v: rows(v).transpose(0, 1), (second,)
    if equation == "abgd,gf->abdf" and right is not None:
        columns = right.T.contiguous().to(program.precision)
        return lambda v: torch.matmul(columns, v.to(columns.dtype)).transpose(2, 3), (first,)
    return None


def _dense(program: "Program", name: str, bias: Tensor | None, gelu: bool = False) -> Found:
    """A product with a constant matrix, or a convolution with a constant kernel, its weights laid out once."""
    node = program.node(name)
    weight = program.constant(node.inputs[1]) if len(node.inputs) == 2 else None
    if weight is None:
        return None
    x, weight = node.inputs[0], weight.to(program.precision)
    bias = None if bias is None else bias.to(program.precision)
    if node.operation == "Einsum" and node.attributes["equation"] == DENSE:
        return _product(weight.T.contiguous(), bias, gelu), (x,)
    if node.operation != "Conv2D":
        return None
    high, wide, _, _ = weight.shape
    _, down, across, _ = node.attributes["strides"]
    if (high, wide, down, across) == (1, 1, 1, 1):
        return _product(weight[0, 0].T.contiguous(), bias, gelu), (x,)
    if gelu:
        return None
    kernel = weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    same = node.attributes["padding"] == "SAME"

    def run(v: Tensor) -> Tensor:
        v = v.permute(0, 3, 1, 2).to(kernel.dtype)  # the memory stays channels-last
        padding = (0, 0)
        if same:
            (top, bottom), (left, right) = same_padding(v.shape[2], high, down), same_padding(v.shape[3], wide, across)
            if top == bottom and left == right:
                padding = (top, left)
            else:
                v = F.pad(v, (left, right, top, bottom))
        return F.conv2d(v, kernel, bias, (down, across), padding).permute(0, 2, 3, 1)

    return run, (x,)


def with_bias(program: "Program", name: str, gelu: bool = False) -> Found:
    """A dense layer or convolution that only this addition of a constant reads."""
    for product, bias in _pair(program, name, "AddV2"):
        value = program.constant(bias)
        if value is None or program.constant(product) is not None or program.graph.readers[product] != 1:
            continue
        if program.node(product).operation in ("Einsum", "Conv2D") and value.numel() == value.shape[-1]:
            return _dense(program, product, value.reshape(-1).contiguous(), gelu)
    return None


def without_bias(program: "Program", name: str) -> Found:
    return _dense(program, name, None)


PATTERNS = (logistic, leaky_relu, gelu, layer_norm, swapped, resize, with_bias, without_bias)
