"""Small observations made of random colours and compiled labels: exact, and learnable from their summaries."""

import numpy as np
import pytest
import torch

from fujinsplat.controller.data import Observations
from fujinsplat.flow import invert
from fujinsplat.synthesis import compile_labels


def make_observations(count: int = 12, K: int = 7, M: int = 16, **changes) -> Observations:
    random = np.random.default_rng(5)
    contrast = random.uniform(0.3, 0.9, count)
    label = compile_labels(random.uniform(0.1, 0.3, (count, 1)) * np.ones(3), contrast, "fitted", K=K, M=M)[0].float()
    target = torch.from_numpy(random.uniform(0.1, 0.9, (count, 256, 3)).astype(np.float32))
    summary = torch.from_numpy(
        (contrast[:, None, None, None] * random.uniform(0.2, 0.4, (count, 3, 64, 64))).astype(np.float32)
    )
    made = {
        "summary": summary,
        "base": invert(target.double(), label.double(), K, M).float(),
        "target": target,
        "label": label,
        "K": K,
        "M": M,
        "draws": "veil",
        "curves": True,
        "couplings": True,
        "key": "test",
    }
    return Observations(**{**made, **changes})


@pytest.fixture(scope="session")
def observations() -> Observations:
    return make_observations()
