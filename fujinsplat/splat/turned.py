"""Gaussians in a world that is turned: places, attitudes and the colours that depend on the direction of view."""

import numpy as np
import torch
from torch import Tensor

from fujinsplat.splat.export import DIRECTIONS, sphere
from fujinsplat.splat.model import Gaussians
from fujinsplat.splat.raster.reference import harmonics


@torch.no_grad()
def turned(gaussians: Gaussians, rotation: np.ndarray) -> Gaussians:
    """The same Gaussians after `new = rotation @ old` [3, 3]: cameras that turn with them see what they saw."""
    p = {name: value.detach() for name, value in gaussians.parameters.items()}
    device = p["means"].device
    turn = torch.from_numpy(np.asarray(rotation, np.float64)).to(device)
    values = {name: value.clone() for name, value in p.items()}
    values["means"] = (p["means"].double() @ turn.T).to(p["means"].dtype)
    values["quats"] = _product(_quaternion(rotation).to(device), p["quats"].double()).to(p["quats"].dtype)
    sh = torch.cat([p["sh0"], p["shN"]], 1)
    # a colour seen along `d` is seen along `rotation @ d` afterwards; this determines the new coefficients
    after = sphere(DIRECTIONS).double().to(device)
    mixed = torch.linalg.pinv(harmonics(after, sh.shape[1])) @ harmonics(after @ turn, sh.shape[1])
    sh = torch.einsum("ij,njc->nic", mixed, sh.double()).to(sh.dtype)
    values |= {"sh0": sh[:, :1].contiguous(), "shN": sh[:, 1:].contiguous()}
    return Gaussians(values, gaussians.display)


def _quaternion(rotation: np.ndarray) -> Tensor:
    """w x y z of a rotation [3, 3]."""
    from scipy.spatial.transform import Rotation

    return torch.tensor(np.roll(Rotation.from_matrix(rotation).as_quat(), 1), device="cpu")


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Hamilton's product of one quaternion [4] with many [N, 4]."""
    aw, av, bw, bv = a[0], a[1:], b[:, :1], b[:, 1:]
    vector = aw * bv + bw * av + torch.linalg.cross(av.expand_as(bv), bv)
    return torch.cat([aw * bw - bv @ av[:, None], vector], 1)
