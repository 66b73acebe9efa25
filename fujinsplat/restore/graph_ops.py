"""TensorFlow's operations that a dehazing graph is made of, in torch; pictures are `[N, H, W, C]`.

Each takes the node's attributes and its inputs. Integers are int64 throughout.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

DTYPES = {"DT_FLOAT": torch.float32, "DT_INT32": torch.int64, "DT_BOOL": torch.bool}


def whole(value: Tensor) -> list[int]:
    """The numbers of an integer tensor of any shape."""
    return [int(v) for v in value.reshape(-1).tolist()]


def _strided_slice(attributes: dict, x: Tensor, begin: Tensor, end: Tensor, stride: Tensor) -> Tensor:
    masks = [attributes.get(name, 0) for name in ("begin_mask", "end_mask", "shrink_axis_mask")]
    index = []
    for axis, (first, last, step) in enumerate(zip(whole(begin), whole(end), whole(stride), strict=True)):
        at_begin, at_end, shrinks = (bool(mask >> axis & 1) for mask in masks)
        if shrinks:
            index.append(first)
        else:
            index.append(slice(None if at_begin else first, None if at_end else last, step))
    return x[tuple(index)]


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's SAME: zeros before and after, the odd one after."""
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return missing // 2, missing - missing // 2


def convolution(attributes: dict, x: Tensor, kernel: Tensor) -> Tensor:
    """Conv2D: kernel `[kh, kw, in, out]`."""
    stride = attributes["strides"][1:3]
    x = x.permute(0, 3, 1, 2)
    if attributes["padding"] == "SAME":
        (top, bottom), (left, right) = (same_padding(x.shape[2 + i], kernel.shape[i], stride[i]) for i in (0, 1))
        x = F.pad(x, (left, right, top, bottom))
    return F.conv2d(x, kernel.permute(3, 2, 0, 1), stride=stride).permute(0, 2, 3, 1)


def _transposed_convolution(attributes: dict, sizes: Tensor, kernel: Tensor, x: Tensor) -> Tensor:
    """Conv2DBackpropInput, VALID: kernel `[kh, kw, out, in]`."""
    weight = kernel.permute(3, 2, 0, 1).to(x.dtype)
    out = F.conv_transpose2d(x.permute(0, 3, 1, 2), weight, stride=attributes["strides"][1:3])
    return out.permute(0, 2, 3, 1)


def _alike(operands: tuple[Tensor, ...]) -> list[Tensor]:
    """All in the shortest of their types, which products run in."""
    common = min((x.dtype for x in operands), key=lambda dtype: dtype.itemsize)
    return [x.to(common) for x in operands]


def einsum(attributes: dict, *operands: Tensor) -> Tensor:
    return torch.einsum(attributes["equation"], *_alike(operands))


def _cast(attributes: dict, x: Tensor) -> Tensor:
    return (x.trunc() if x.is_floating_point() else x).to(attributes["DstT"])


def _squeeze(attributes: dict, x: Tensor) -> Tensor:
    axes = attributes.get("squeeze_dims") or [axis for axis, size in enumerate(x.shape) if size == 1]
    return x.squeeze(tuple(axes))


def _gather(attributes: dict, x: Tensor, indices: Tensor, axis: Tensor) -> Tensor:
    along = int(axis)
    picked = torch.index_select(x, along, indices.reshape(-1))
    return picked.reshape(*x.shape[:along], *indices.shape, *x.shape[along + 1 :])


def _sum(attributes: dict, x: Tensor, axes: Tensor) -> Tensor:
    return x.sum(whole(axes), keepdim=attributes.get("keep_dims", False))


def _range(attributes: dict, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    return torch.arange(int(start), int(limit), int(delta))


OPERATIONS = {
    "Abs": lambda a, x: x.abs(),
    "AddV2": lambda a, x, y: x + y,
    "BroadcastTo": lambda a, x, shape: x.expand(whole(shape)),
    "Cast": _cast,
    "ConcatV2": lambda a, *xs: torch.cat(_alike(xs[:-1]), int(xs[-1])),
    "Conv2D": convolution,
    "Conv2DBackpropInput": _transposed_convolution,
    "Einsum": einsum,
    "Exp": lambda a, x: x.exp(),
    "ExpandDims": lambda a, x, axis: x.unsqueeze(int(axis)),
    "Floor": lambda a, x: x.floor(),
    "FloorDiv": lambda a, x, y: torch.div(x, y, rounding_mode="floor"),
    "FloorMod": lambda a, x, y: torch.remainder(x, y),
    "GatherV2": _gather,
    "Greater": lambda a, x, y: x > y,
    "GreaterEqual": lambda a, x, y: x >= y,
    "Identity": lambda a, x: x,
    "Less": lambda a, x, y: x < y,
    "LessEqual": lambda a, x, y: x <= y,
    "LogicalAnd": lambda a, x, y: x & y,
    "Maximum": lambda a, x, y: torch.maximum(x, y),
    "Minimum": lambda a, x, y: torch.minimum(x, y),
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "NotEqual": lambda a, x, y: x != y,
    "Pack": lambda a, *xs: torch.stack(xs, a.get("axis", 0)),
    "Range": _range,
    "RealDiv": lambda a, x, y: x / y,
    "Reciprocal": lambda a, x: x.reciprocal(),
    "Reshape": lambda a, x, shape: x.reshape(whole(shape)),
    "Rsqrt": lambda a, x: x.rsqrt(),
    "SelectV2": lambda a, condition, x, y: torch.where(condition, x, y),
    "Shape": lambda a, x: torch.tensor(x.shape),
    "Sign": lambda a, x: x.sign(),
    "Square": lambda a, x: x.square(),
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Sub": lambda a, x, y: x - y,
    "Sum": _sum,
    "Tanh": lambda a, x: x.tanh(),
    "Transpose": lambda a, x, order: x.permute(whole(order)),
}


def unknown(operation: str, attributes: dict) -> str | None:
    """What of a node is not among these, in words; None when all of it is."""
    if operation in ("Const", "Placeholder"):
        return None
    if operation not in OPERATIONS:
        return operation
    if attributes.get("new_axis_mask") or attributes.get("ellipsis_mask"):
        return f"{operation} with new axes or an ellipsis"
    if operation == "Conv2DBackpropInput" and attributes.get("padding") != "VALID":
        return f"{operation} with {attributes.get('padding')} padding"
    if operation == "Conv2D" and attributes.get("padding") not in ("SAME", "VALID"):
        return f"{operation} with {attributes.get('padding')} padding"
    if operation == "Cast" and attributes.get("DstT") is None:
        return f"{operation} to another type than {', '.join(DTYPES)}"
    if attributes.get("data_format", "NHWC") != "NHWC":
        return f"{operation} with pictures laid out as {attributes['data_format']}"
    if any(step != 1 for step in attributes.get("dilations") or ()):
        return f"{operation} with dilation"
    return None
