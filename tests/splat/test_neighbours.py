"""Start sizes: distances to the nearest points, against SciPy's k-d tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fujinsplat.splat.neighbours import square_distances


def by_tree(xyz: np.ndarray, k: int) -> np.ndarray:
    from scipy.spatial import cKDTree

    return cKDTree(xyz).query(xyz, k=k + 1)[0][:, 1:] ** 2


COORDINATES = st.floats(-100, 100, width=32) | st.sampled_from([0.0, 1.0, 1e4])


@settings(deadline=None, max_examples=60)
@given(
    xyz=st.integers(4, 40).flatmap(lambda n: arrays(np.float32, (n, 3), elements=COORDINATES)),
    k=st.sampled_from([1, 3]),
)
def test_as_a_tree_finds_them(xyz, k):
    """Coincident points, points on a line and stray points among them."""
    np.testing.assert_allclose(square_distances(xyz, k), by_tree(xyz.astype(np.float64), k), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("flat", [0, 1, 2])
def test_a_cloud_with_a_flat_side_and_strays(flat):
    random = np.random.default_rng(flat)
    xyz = random.normal(size=(5000, 3)).astype(np.float32)
    xyz[:, flat] *= 1e-3
    xyz[::500] *= 1e4
    np.testing.assert_allclose(square_distances(xyz, 3), by_tree(xyz.astype(np.float64), 3), rtol=1e-9)
