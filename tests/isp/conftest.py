import numpy as np
import pytest
import torch

from fujinsplat.isp import BaseISP


def lively(seed: int = 0, scale: float = 1.0, encoding: str = "srgb") -> BaseISP:
    """A base with every module switched on."""
    generator = torch.Generator().manual_seed(seed)
    base = BaseISP(0.4, (0.45, -0.3, -0.15), [[1.5, -0.2, 0.0], [-0.4, 1.4, -0.4], [-0.1, -0.2, 1.4]], encoding)
    sizes = {
        "exposure": 0.1,
        "white_balance": 0.1,
        "generator": 0.05,
        "shaper": 0.5,
        "g9": 0.15,
        "r33": 0.8,
        "tone": 0.5,
    }
    with torch.no_grad():
        for name, size in sizes.items():
            parameter = getattr(base, name)
            parameter.copy_(scale * size * torch.randn(parameter.shape, generator=generator))
    return base


@pytest.fixture
def base() -> BaseISP:
    return lively()


@pytest.fixture
def raw() -> torch.Tensor:
    """Camera-linear RAW `[4000, 3]`, dark to clipped."""
    return torch.from_numpy(np.random.default_rng(5).random((4000, 3), np.float32) ** 2)
