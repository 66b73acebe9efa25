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

from fujinsplat.restore.graph_ops import same_padding, whole

if TYPE_CHECKING:
    from fujinsplat.restore.graph import Program

Found = tuple[Callable[..., Tensor], tuple[str, ...]] | None
GELU_CUBE, GELU_SCALE = 0.044715, 0.7978845608  # of the tanh form


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
    """x/2 (1 + tanh(s (x + c x x^2)))"""
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
                    return partial(F.gelu, approximate="tanh"), (x,)
    return None


def _mean_of(program: "Program", name: str) -> tuple[str, float] | None:
    """`(x, 1/C)` for a node that is the mean of x over its last axis, written Sum times a number."""
    for total, share in _pair(program, _unreshaped(program, name), "Mul"):
        value = _scalar(program, share)
        if value is not None and _is(program, total, "Sum"):
            x, axes = program.node(total).inputs
            if whole(program.constant(axes)) in ([3], [-1]):
                return x, value
    return None


def layer_norm(program: "Program", name: str) -> Found:
    """(x - mean) (rsqrt(max(0, mean x^2 - mean^2) + eps) scale) + bias, over the last axis"""
    for product, bias in _pair(program, name, "AddV2"):
        if program.constant(bias) is None:
            continue
        for centred, factor in _pair(program, product, "Mul"):
            found = _normalised(program, centred, factor)
            if found is not None:
                x, scale, epsilon = found
                weight, shift = (program.constant(n).reshape(-1).contiguous() for n in (scale, bias))
                if weight.numel() == shift.numel():
                    size = (weight.numel(),)
                    return partial(F.layer_norm, normalized_shape=size, weight=weight, bias=shift, eps=epsilon), (x,)
    return None


def _normalised(program: "Program", centred: str, factor: str) -> tuple[str, str, float] | None:
    if not _is(program, centred, "Sub"):
        return None
    x, mean = program.node(centred).inputs
    of = _mean_of(program, mean)
    for root, scale in _pair(program, factor, "Mul"):
        if of is None or of[0] != x or program.constant(scale) is None or not _is(program, root, "Rsqrt"):
            continue
        if abs(of[1] * program.constant(scale).numel() - 1) > 1e-5:
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


def _product(matrix: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    """One large product however `v` lies in memory: torch makes many small ones of an input that is not contiguous."""
    transposed = matrix.T

    def run(v: Tensor) -> Tensor:
        rows = v.reshape(-1, v.shape[-1]).to(matrix.dtype)
        out = rows @ transposed if bias is None else torch.addmm(bias, rows, transposed)
        return out.view(*v.shape[:-1], -1)

    return run


def _dense(program: "Program", name: str, bias: Tensor | None) -> Found:
    """A product with a constant matrix, or a convolution with a constant kernel, its weights laid out once."""
    node = program.node(name)
    if len(node.inputs) != 2 or program.constant(node.inputs[1]) is None:
        return None
    x, weight = node.inputs[0], program.constant(node.inputs[1]).to(program.precision)
    bias = None if bias is None else bias.to(program.precision)
    if node.operation == "Einsum" and node.attributes["equation"] == "abcg,gf->abcf":
        matrix = weight.T.contiguous()
        return _product(matrix, bias), (x,)
    if node.operation != "Conv2D":
        return None
    high, wide, _, _ = weight.shape
    _, down, across, _ = node.attributes["strides"]
    if (high, wide, down, across) == (1, 1, 1, 1):
        matrix = weight[0, 0].T.contiguous()
        return _product(matrix, bias), (x,)
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


def with_bias(program: "Program", name: str) -> Found:
    """A dense layer or convolution that only this addition of a constant reads."""
    for product, bias in _pair(program, name, "AddV2"):
        value = program.constant(bias)
        if value is None or program.constant(product) is not None or program.graph.readers[product] != 1:
            continue
        if program.node(product).operation in ("Einsum", "Conv2D") and value.numel() == value.shape[-1]:
            return _dense(program, product, value.reshape(-1).contiguous())
    return None


def without_bias(program: "Program", name: str) -> Found:
    return _dense(program, name, None)


PATTERNS = (logistic, leaky_relu, gelu, layer_norm, with_bias, without_bias)
