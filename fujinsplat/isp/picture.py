"""Whole pictures through a Base ISP, with little memory beside the picture itself."""

import numpy as np
import torch

from fujinsplat.isp import fused
from fujinsplat.isp.model import BaseISP

BLOCK_PIXELS = 1 << 16  # pixels handled at once where temporaries arise (the fused kernel makes none)


def develop(base: BaseISP, raw_linear: np.ndarray) -> np.ndarray:
    """RAW `[H, W, 3]` (camera-linear, no white balance, [0, 1]) to encoded float32 `[H, W, 3]`.

    Not clamped: highlights and out-of-gamut colours may lie outside [0, 1], and the Monotone Color Flow's tails carry
    them. `materialize` makes the clamped 8-bit picture that files and scores use.
    """
    raw_linear = np.ascontiguousarray(raw_linear, dtype=np.float32)
    base_encoded = np.empty_like(raw_linear)
    flat_in, flat_out = torch.from_numpy(raw_linear).reshape(-1, 3), base_encoded.reshape(-1, 3)
    with torch.inference_mode():
        if fused.fits(flat_in, base.base_matrix):
            fused.encode(base.operands(), flat_in, base.encoding, out=flat_out)
            return base_encoded
        for start in range(0, len(flat_in), BLOCK_PIXELS):
            block = flat_in[start : start + BLOCK_PIXELS].to(base.base_matrix)
            flat_out[start : start + BLOCK_PIXELS] = base(block).cpu().numpy()
    return base_encoded


def materialize(encoded: np.ndarray) -> np.ndarray:
    """Encoded `[..., 3]` to the 8-bit picture: clamped to [0, 1] and rounded (q8)."""
    picture = np.empty(encoded.shape, np.uint8)
    step = max(1, BLOCK_PIXELS // max(1, encoded[:1].size // 3))  # rows at a time: no whole-picture temporaries
    for start in range(0, len(encoded), step):
        picture[start : start + step] = np.rint(np.clip(encoded[start : start + step], 0, 1) * 255)
    return picture
