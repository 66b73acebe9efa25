"""The fused CPU kernel as one differentiable torch operation, and the choice between it and the reference."""

import numpy as np
import torch
from torch import Tensor

from fujinsplat.isp import kernel, kernel_backward
from fujinsplat.isp.reference import Operands

_NOTHING = np.empty((0, 3), np.float32)


def fits(raw_linear: Tensor, base_matrix: Tensor) -> bool:
    """The kernel runs on float32 tensors of the CPU; everything else is the reference's."""
    return all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (raw_linear, base_matrix))


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().numpy())


def _tables(operands: Operands) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    front, shaper, coarse, fine, tone = (_array(t) for t in operands)
    return front, shaper, coarse.reshape(-1), fine.reshape(-1), tone


def encode(operands: Operands, raw_linear: Tensor, encoding: str, out: np.ndarray | None = None) -> Tensor:
    """Encoded RGB of RAW `[..., 3]`, without gradients; `out` `[N, 3]` receives it when given."""
    raw = _array(raw_linear).reshape(-1, 3)
    encoded = np.empty_like(raw) if out is None else out
    kernel.forward(raw, *_tables(operands), encoding == "srgb", False, _NOTHING, _NOTHING, encoded)
    return torch.from_numpy(encoded).reshape(raw_linear.shape)


class _Stages(torch.autograd.Function):
    @staticmethod
    def forward(ctx, raw_linear: Tensor, encoding: str, *tables: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raw = _array(raw_linear).reshape(-1, 3)
        outputs = np.empty_like(raw), np.empty_like(raw), np.empty_like(raw)
        kernel.forward(raw, *_tables(Operands(*tables)), encoding == "srgb", True, *outputs)
        ctx.save_for_backward(raw_linear, *tables)
        ctx.encoding = encoding
        front, lattice, encoded = (torch.from_numpy(output).reshape(raw_linear.shape) for output in outputs)
        return front, lattice, encoded

    @staticmethod
    def backward(ctx, g_front: Tensor, g_lattice: Tensor, g_encoded: Tensor):
        raw_linear, *tables = ctx.saved_tensors
        raw = _array(raw_linear).reshape(-1, 3)
        front, lattice, encoded = (_array(g).reshape(-1, 3) for g in (g_front, g_lattice, g_encoded))
        g_raw = np.empty_like(raw)
        tables_in, srgb = _tables(Operands(*tables)), ctx.encoding == "srgb"
        pieces = kernel_backward.backward(raw, *tables_in, srgb, front, lattice, encoded, g_raw)
        summed = (
            torch.from_numpy(piece.sum(axis=0, dtype=np.float32)).reshape(table.shape)
            for piece, table in zip(pieces, tables, strict=True)
        )
        return torch.from_numpy(g_raw).reshape(raw_linear.shape), None, *summed


def stages(operands: Operands, raw_linear: Tensor, encoding: str) -> tuple[Tensor, Tensor, Tensor]:
    """As `reference.pixels`: (front output, lattice output, encoded RGB), differentiable in everything."""
    return _Stages.apply(raw_linear, encoding, *operands)
