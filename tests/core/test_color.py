"""The sRGB encoding."""

import numpy as np
import torch

from fujinsplat.core.color import decode, encode, luminance


def test_encoding_is_a_bijection_of_the_reals_and_agrees_between_numpy_and_torch():
    linear = np.concatenate([np.linspace(-0.5, 2, 4001), [0.0031308, 0.0]])
    encoded = encode(linear)
    np.testing.assert_allclose(decode(encoded), linear, atol=1e-7)
    assert (np.diff(encode(np.linspace(-0.5, 2, 4001))) > 0).all()
    np.testing.assert_allclose(encode(torch.from_numpy(linear)).numpy(), encoded, rtol=1e-12)
    np.testing.assert_allclose(decode(torch.from_numpy(encoded)).numpy(), decode(encoded), rtol=1e-12)


def test_white_is_white_and_gradients_are_finite_at_the_knees():
    assert np.isclose(encode(1.0), 1, atol=1e-12) and np.isclose(luminance(np.ones(3)), 1)
    x = torch.tensor([0.0, 0.0031308, 0.04045, -1.0], requires_grad=True)
    (encode(x).sum() + decode(x).sum()).backward()
    assert torch.isfinite(x.grad).all()
