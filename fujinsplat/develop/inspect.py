"""Looking at a developed scene: its corrected pictures, and how far its actions lie apart."""

import numpy as np
import torch


def corrected(base_u8: np.ndarray, action: np.ndarray, K: int, M: int) -> np.ndarray:
    """T_p of an 8-bit base output `[H, W, 3]`, as the 8-bit picture one looks at."""
    from fujinsplat.flow import apply
    from fujinsplat.isp import materialize

    encoded = torch.from_numpy(base_u8.astype(np.float32) / 255)
    with torch.inference_mode():
        return materialize(apply(encoded, torch.from_numpy(np.asarray(action, np.float32)), K, M).numpy())


def spread(actions: np.ndarray, K: int, M: int) -> dict:
    """The scene mean and how far views lie from it: coefficient norms, and RMS displacement of the 9^3 probes."""
    from fujinsplat.flow import apply, probe_grid

    each = torch.from_numpy(np.asarray(actions, np.float32))
    mean = each.mean(dim=0)
    probes = probe_grid(dtype=torch.float32)
    with torch.inference_mode():
        centre = apply(probes, mean, K, M)
        moved = [apply(probes, action, K, M) for action in each]
    rms = lambda x: float(x.square().mean().sqrt())  # noqa: E731
    return {
        "mean_norm": float(mean.norm()),
        "mean_probe_rms": rms(centre - probes),
        "displacement_norm": [float((action - mean).norm()) for action in each],
        "displacement_probe_rms": [rms(m - centre) for m in moved],
    }
