"""Whole pictures through a Base ISP, in row blocks so that memory stays small."""

import numpy as np
import torch

from fujinsplat.isp.model import BaseISP

BLOCK_PIXELS = 1 << 18  # pixels developed at once: working memory of some 10 MB beside the picture itself


def develop(base: BaseISP, raw_linear: np.ndarray) -> np.ndarray:
    """RAW `[H, W, 3]` (camera-linear, no white balance, [0, 1]) to encoded float32 `[H, W, 3]`.

    Not clamped: highlights and out-of-gamut colours may lie outside [0, 1], and the Monotone Color Flow's tails carry
    them. `materialize` makes the clamped 8-bit picture that files and scores use.
    """
    raw_linear = np.ascontiguousarray(raw_linear, dtype=np.float32)
    base_encoded = np.empty_like(raw_linear)
    flat_in, flat_out = raw_linear.reshape(-1, 3), base_encoded.reshape(-1, 3)
    device = base.base_matrix.device
    with torch.inference_mode():
        for start in range(0, len(flat_in), BLOCK_PIXELS):
            block = torch.from_numpy(flat_in[start : start + BLOCK_PIXELS]).to(device)
            flat_out[start : start + BLOCK_PIXELS] = base(block).cpu().numpy()
    return base_encoded


def materialize(encoded: np.ndarray) -> np.ndarray:
    """Encoded `[..., 3]` to the 8-bit picture: clamped to [0, 1] and rounded (q8)."""
    return np.rint(np.clip(encoded, 0, 1) * 255).astype(np.uint8)
