"""The loops against plain tensors."""

import numpy as np
import torch
import torch.nn.functional as F

from fujinsplat.smoke import fit, kernels, pairs
from fujinsplat.smoke.settings import SmokeSettings


def regression(smoky, i, j, step, cells, least):
    """One pair's regressions with torch, cell by cell."""
    height, width = smoky.depth.shape[1:]
    rows, columns = torch.meshgrid(
        torch.arange(step // 2, height, step), torch.arange(step // 2, width, step), indexing="ij"
    )
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    a, b = smoky.cameras[i], smoky.cameras[j]
    z = smoky.depth[i][rows, columns].double()
    x, y = columns + 0.5, rows + 0.5
    local = torch.stack([(x - a.K[0, 2]) / a.K[0, 0] * z, (y - a.K[1, 2]) / a.K[1, 1] * z, z], -1)
    world = (local - torch.tensor(a.viewmat[:3, 3])) @ torch.tensor(a.viewmat[:3, :3])
    there = world @ torch.tensor(b.viewmat[:3, :3]).T + torch.tensor(b.viewmat[:3, 3])
    u = there[:, 0] / there[:, 2] * b.K[0, 0] + b.K[0, 2]
    v = there[:, 1] / there[:, 2] * b.K[1, 1] + b.K[1, 2]
    inside = (there[:, 2] > 0) & (u > 1) & (u < width - 1) & (v > 1) & (v < height - 1)
    at = smoky.depth[j][v.long().clamp(0, height - 1), u.long().clamp(0, width - 1)]
    inside &= (at / there[:, 2] - 1).abs() <= kernels.AGREE
    grid = torch.stack([u / width * 2 - 1, v / height * 2 - 1], -1)[None, None].float()
    other = F.grid_sample(smoky.views[j].permute(2, 0, 1)[None], grid, align_corners=False)[0, :, 0].T.double()
    own = smoky.views[i][rows, columns].double()
    cell = rows * cells[1] // height * cells[0] + columns * cells[0] // width
    out = torch.zeros(cells[0] * cells[1], 6, dtype=torch.float64)
    for c in range(len(out)):
        p, q = own[inside & (cell == c)], other[inside & (cell == c)]
        if len(p) < least:
            continue
        for turn in range(3):
            dp, dq = p - p.mean(0), q - q.mean(0)
            k = ((dp * dp).sum() / (dq * dq).sum()).sqrt()
            rho = (dp * dq).sum() / ((dp * dp).sum() * (dq * dq).sum()).sqrt()
            if turn < 2:
                e = (dp - k * dq).norm(dim=1)
                keep = e < kernels.TRIMMED * e.quantile(0.5)
                p, q = p[keep], q[keep]
        out[c] = torch.tensor([len(p), k, *(p.mean(0) - k * q.mean(0)), rho])
    return out.numpy()


def test_pair_regressions_equal_plain_torch(smoky):
    cams = kernels.pack_cameras(smoky.cameras)
    chosen = np.array([[0, 1], [4, 2], [9, 5]])
    arrays = (smoky.views.numpy(), smoky.depth.numpy(), smoky.trusted.numpy())
    found = kernels.regress_pairs(*arrays, cams, chosen, 2, 4, 3, 30)
    assert (found[..., 0] > 0).sum() > 20
    for (i, j), rows in zip(chosen, found, strict=True):
        assert np.allclose(rows, regression(smoky, i, j, 2, (4, 3), 30), rtol=1e-4, atol=1e-5)


def test_the_true_ratios_are_found(smoky):
    cams = kernels.pack_cameras(smoky.cameras)
    partners = pairs.choose_partners(cams, 4)
    assert partners.shape == (10, 4) and all(i not in row for i, row in enumerate(partners))
    found = pairs.regressions(smoky.views.numpy(), smoky.depth.numpy(), smoky.trusted.numpy(), cams, partners, 1)
    mean = smoky.transmission.mean((1, 2)).log().numpy()
    expected = mean[found.pair[:, 0]] - mean[found.pair[:, 1]]
    assert np.corrcoef(np.log(found.k), expected)[0, 1] > 0.95


def objective(tracks, unknowns, settings, weight):
    """The tracks' sum of weighted squares with every surface colour at its best, in torch."""
    wide, high, across, down = settings.grids
    own, airlight = unknowns[:-3].reshape(-1, fit.unknowns_of(settings.grids)), unknowns[-3:]
    x, y, far = torch.tensor(tracks.place, dtype=torch.float64).unbind(-1)
    view = torch.tensor(tracks.view).long()
    nodes = own[:, : wide * high].reshape(-1, 1, high, wide)[view]
    slopes = own[:, wide * high : -3].reshape(-1, 1, down, across)[view]
    at = torch.stack([2 * x - 1, 2 * y - 1], -1)[:, None, None]
    layer, slope = (F.grid_sample(grid, at, align_corners=True)[:, 0, 0, 0] for grid in (nodes, slopes))
    tau = layer + slope * far
    level = own[view, -3] + own[view, -2] * (2 * x - 1) + own[view, -1] * (2 * y - 1)
    T = torch.exp(-tau)
    rest = torch.tensor(tracks.colour, dtype=torch.float64) - (level * (1 - T))[:, None] * airlight
    point = torch.repeat_interleave(torch.arange(tracks.count), torch.tensor(np.diff(tracks.starts)))
    w = torch.tensor(weight)

    def total(values):
        return torch.zeros(tracks.count, *values.shape[1:], dtype=torch.float64).index_add(0, point, values)

    J = total((w * T)[:, None] * rest) / total(w * T * T)[:, None]
    return 0.5 * (w[:, None] * (rest - T[:, None] * J[point]) ** 2).sum()


def test_the_right_side_is_the_gradient_of_the_objective(smoky):
    settings = SmokeSettings(grid=(3, 2), slopes=(2, 3))
    cams = kernels.pack_cameras(smoky.cameras)
    arrays = (smoky.views.numpy(), smoky.depth.numpy(), smoky.trusted.numpy())
    partners = pairs.choose_partners(cams, 9)
    tracks = fit.Tracks(*kernels.find_tracks(*arrays, cams, partners, 12, 5, 3))
    tracks.place[:, 2] /= 4
    rng = np.random.default_rng(0)
    unknowns = fit.start(tracks, 10, np.array([0.16, 0.12, 0.11]), settings)
    unknowns[:-3] += rng.uniform(0, 0.1, len(unknowns) - 3)
    weight = rng.uniform(0.5, 2, len(tracks.view))
    n = len(unknowns)
    matrix, right = np.zeros((n, n)), np.zeros(n)
    kernels.consensus_equations(
        tracks.starts, tracks.view, tracks.place, tracks.colour, unknowns, settings.grids, weight,
        0.03, 0.3, 0.02, 0.6, 0.0, matrix, right,
    )  # fmt: skip
    leaf = torch.tensor(unknowns, requires_grad=True)
    objective(tracks, leaf, settings, weight).backward()
    assert np.allclose(right, -leaf.grad.numpy(), rtol=1e-6, atol=1e-9)
    full = np.tril(matrix) + np.tril(matrix, -1).T
    assert np.allclose(np.triu(matrix, 1), 0) and np.linalg.eigvalsh(full).min() > -1e-6 * np.abs(full).max()
