"""Actions on disk, averaged, packed."""

import pytest
import torch

from fujinsplat import flow
from fujinsplat.core.errors import UserError


def test_saved_actions_come_back_whole(tmp_path):
    action = torch.randn(3, flow.size(K=5, M=22))
    extra = {"psnr": torch.tensor([20.0, 21.0, 22.0])}
    flow.save(tmp_path / "a.safetensors", flow.Actions(action, 5, 22, ["a", "b", "c"], extra, {"scene": "X"}))
    back = flow.load(tmp_path / "a.safetensors")
    assert torch.equal(back.action, action) and (back.K, back.M) == (5, 22)
    assert (
        back.stems == ["a", "b", "c"] and torch.equal(back.extra["psnr"], extra["psnr"]) and back.note["scene"] == "X"
    )
    assert torch.equal(back.of("b"), action[1])
    with pytest.raises(UserError, match="no action of view 'd'"):
        back.of("d")


def test_equal_actions_are_equal_files(tmp_path):
    for name in "ab":
        flow.save(tmp_path / name, flow.Actions(flow.zeros(2), stems=["x", "y"]))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bad_files_are_named(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        flow.load(tmp_path / "none.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"not safetensors at all")
    with pytest.raises(UserError, match=r"broken\.safetensors is not a readable action file"):
        flow.load(tmp_path / "broken.safetensors")
    from safetensors.torch import save_file

    save_file({"other": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="holds no tensor `action`"):
        flow.load(tmp_path / "other.safetensors")
    save_file({"action": torch.zeros(1, 10)}, tmp_path / "short.safetensors", {"K": "7", "M": "16"})
    with pytest.raises(UserError, match=r"needs \[V, 573\]"):
        flow.load(tmp_path / "short.safetensors")
    wrong = torch.full((1, 573), torch.nan)
    save_file({"action": wrong}, tmp_path / "wrong.safetensors", {"K": "7", "M": "16"})
    with pytest.raises(UserError, match="holds actions that are not finite; build it again"):
        flow.load(tmp_path / "wrong.safetensors")


def test_split_and_pack_are_inverse_and_curves_come_first():
    action = torch.arange(573.0)
    curves, couplings = flow.split(action)
    assert curves.shape == (8, 3, 16) and couplings.shape == (7, 3, 9)
    assert curves[1, 0, 0] == 48 and couplings[0, 0, 0] == 384
    assert torch.equal(flow.pack(curves, couplings), action)


def test_the_average_weighs():
    actions = torch.stack([torch.zeros(573), torch.ones(573)])
    assert torch.equal(flow.average(actions), torch.full((573,), 0.5))
    assert torch.equal(flow.average(actions, torch.tensor([1, 3])), torch.full((573,), 0.75))


def test_the_probe_grid_is_the_cartesian_one():
    grid = flow.probe_grid(9)
    assert grid.shape == (729, 3) and grid[1].tolist() == [0, 0, 0.125] and grid[-1].tolist() == [1, 1, 1]
