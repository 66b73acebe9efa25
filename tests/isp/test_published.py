"""The published Base ISP, derived a second time in plain numpy from its description, pixel by pixel."""

import math

import numpy as np
import pytest
import torch

from fujinsplat.core.settings import IspSettings
from fujinsplat.isp import BaseISP, calibration, initial, objective, reference, samples

from .camera import SimulatedViews
from .conftest import lively
from .test_initial import fidelity

PAPER = IspSettings.paper()


def curve_nodes(parameter, length):
    increments = np.log1p(np.exp(parameter + math.log(math.e - 1)))
    return np.concatenate([[0.0], np.cumsum(increments / increments.sum())]) * length


def trilinear(nodes, u):
    side, value = len(nodes), np.zeros(3)
    for corner in np.ndindex(2, 2, 2):
        cell = np.minimum((u * (side - 1)).astype(int), side - 2)
        part = u * (side - 1) - cell
        weight = np.prod([p if bit else 1 - p for bit, p in zip(corner, part, strict=True)])
        value += weight * nodes[tuple(cell + corner)]
    return value


def expm(matrix):
    total, term = np.eye(3), np.eye(3)
    for k in range(1, 40):
        term = term @ matrix / k
        total = total + term
    return total


def developed(base: BaseISP, pixel: np.ndarray) -> np.ndarray:
    """One RAW pixel `[3]` through the six modules, written from the text alone."""
    p = {name: tensor.detach().double().numpy() for name, tensor in base.state_dict().items()}
    balance = p["base_white_balance"] + p["white_balance"]
    x = pixel * np.exp(p["base_exposure"] + p["exposure"] + balance - balance.mean())
    x = x @ (p["base_matrix"] @ expm(p["generator"]))
    u = np.array([max(v, 0) / (max(v, 0) + 0.05) for v in x])
    grid = np.arange(257) / 256
    u = np.clip([np.interp(u[c], grid, curve_nodes(p["shaper"][c], 1.0)) for c in range(3)], 0, 1)
    action = trilinear(p["g9"], u) + 0.1 * np.tanh(trilinear(p["r33"], u))
    x = 0.05 * np.sinh(np.arcsinh(x / 0.05) + action)
    latent = np.arcsinh(x / 0.05)
    for c in range(3):
        if abs(latent[c]) < 8:
            latent[c] = np.interp(latent[c], np.arange(257) / 16 - 8, curve_nodes(p["tone"][c], 16.0) - 8)
    return 0.05 * np.sinh(latent)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_operator_equals_its_plain_derivation(scale):
    base = lively(4, scale, encoding="none")
    raw = np.random.default_rng(2).random((200, 3)) ** 2 * 1.3 - 0.02
    expected = np.array([developed(base, pixel) for pixel in raw])
    with torch.no_grad():
        exact = base(torch.from_numpy(raw)).numpy()
        fast = base(torch.from_numpy(raw).float()).double().numpy()
        single = base.forward_reference(torch.from_numpy(raw).float()).double().numpy()
    size = np.abs(expected) + 0.1
    assert (np.abs(exact - expected) / size).max() < 1e-9
    # float32 on the CPU: as good as float32 in the reference
    assert (np.abs(fast - expected) / size).max() < 2 * (np.abs(single - expected) / size).max() + 1e-6


def test_bounding_nodes_instead_of_readings_would_be_another_operator():
    generator = torch.Generator().manual_seed(0)
    g9, r33 = torch.zeros(9, 9, 9, 3), 8 * torch.randn(33, 33, 33, 3, generator=generator)
    where = torch.rand(500, 3, generator=generator)
    ours = reference.lattice_action(g9, r33, where)
    other = reference.read_lattice(reference.lattice_nodes(g9, r33), where)
    assert ours.abs().max() <= 0.1 and (ours - other).abs().max() > 0.05
    at_nodes = torch.randint(33, (500, 3), generator=generator) / 32
    ours, other = (reference.lattice_action(g9, r33, at_nodes), reference.lattice_nodes(g9, r33))
    assert torch.allclose(ours, reference.read_lattice(other, at_nodes), atol=1e-6)


def test_output_safety_term_by_term():
    raw = 0.2 + 0.5 * torch.rand(8, 3, dtype=torch.float64)

    def penalty(matrix):
        return objective.output_safety(objective.probe(raw, 1e-3) @ matrix, 1e-3).item()

    one = torch.eye(3, dtype=torch.float64)
    assert penalty(one) == 0 and penalty(0.03 * one) == 0
    size = max(0, math.log1p(3 * 25) - math.log(28)) ** 2
    assert penalty(5 * one) == pytest.approx(size)
    assert penalty(20 * one) == pytest.approx(
        (math.log1p(1200) - math.log(28)) ** 2 + (math.log(21) - math.log(9)) ** 2
    )
    thin = torch.diag(torch.tensor([1.0, 1.0, 0.001], dtype=torch.float64))
    assert penalty(thin) == pytest.approx(math.log(20) ** 2)
    mirror = torch.diag(torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))
    assert penalty(mirror) == pytest.approx(1)


def test_sampled_energies_estimate_the_mean_over_all_differences():
    nodes = torch.randn(9, 9, 9, 3, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    for order in (1, 2):
        for bounded in (False, True):
            values = 0.1 * torch.tanh(nodes) if bounded else nodes
            # axes are drawn evenly, and all three have equally many differences
            exact = np.mean([torch.diff(values, n=order, dim=axis).square().mean() for axis in range(3)])
            drawn = [objective.sampled_energy(nodes, order, generator, bounded).item() for _ in range(30)]
            assert np.mean(drawn) == pytest.approx(exact, rel=0.02)
            assert np.std(drawn) > 0  # fresh at each step
    ramp = torch.arange(33.0)[None, :, None, None].expand(33, 33, 33, 3)
    assert objective.sampled_energy(ramp, 2, generator) == 0
    assert objective.sampled_energy(ramp, 1, generator).item() == pytest.approx(1 / 3, abs=0.05)


def test_smoothness_terms_are_means():
    base = lively(2)
    operands = base.operands()
    expected = sum(np.mean(np.diff(c.detach().numpy(), n=2, axis=1) ** 2) for c in (operands.shaper, operands.tone))
    assert objective.curvature(operands).item() == pytest.approx(expected, rel=1e-4)
    squares = [np.mean(p.detach().numpy() ** 2) for p in base.front_parameters()]
    assert objective.front_size(base).item() == pytest.approx(sum(squares), rel=1e-5)


def test_parameters_are_projected_into_their_ranges():
    base = BaseISP()
    with torch.no_grad():
        for parameter in base.parameters():
            parameter.copy_(100 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    base.project()
    assert base.exposure.abs() <= 2 * math.log(2) + 1e-6
    assert base.white_balance.abs().max() <= 1 and base.generator.abs().max() == 0.5
    assert base.shaper.abs().max() == 4 and base.tone.abs().max() == 4
    assert base.g9.min() == -32 and base.g9.max() == 16 and base.r33.abs().max() == 8
    with torch.no_grad():
        base.white_balance.copy_(torch.tensor([0.5, 0.2, 0.2]))
    base.project()
    assert base.white_balance.sum().item() == pytest.approx(0, abs=1e-6)


def test_published_calibration_starts_and_stays_within_the_ranges_and_renders_like_the_camera():
    views = SimulatedViews(count=2)
    settings = PAPER.model_copy(update={"warmup_steps": 5, "joint_steps": 15, "pixels": 2048})
    start = initial.initial_state(samples.take(views, settings), settings, "here")
    before = {name: tensor.clone() for name, tensor in start.state_dict().items()}
    start.project()
    assert all(torch.allclose(before[name], tensor, atol=1e-5) for name, tensor in start.state_dict().items())
    assert start.encoding == "none" and fidelity(start, views) > 40
    base, _ = calibration.calibrate(views, settings)
    assert base.encoding == "none" and fidelity(base, views) > 40
