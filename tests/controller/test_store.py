"""Controllers on disk: ours and the authors', tensors only."""

import pickle

import pytest
import torch

from fujinsplat.controller import Controller, load, save
from fujinsplat.controller.store import import_weights
from fujinsplat.core.errors import UserError


@pytest.fixture
def controller() -> Controller:
    made = Controller()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.01)
    return made


def test_round_trip(controller, tmp_path):
    save(controller, tmp_path / "c.safetensors", input="rgb")
    loaded = load(tmp_path / "c.safetensors", 7, 16, "rgb")
    summary = torch.rand(2, 3, 64, 64)
    assert torch.equal(loaded(summary), controller(summary))


def test_a_controller_for_something_else_is_refused(controller, tmp_path):
    path = tmp_path / "c.safetensors"
    save(controller, path)
    with pytest.raises(UserError, match="K = 7, but K = 5"):
        load(path, 5, 16)
    with pytest.raises(UserError, match="M = 16, but M = 8"):
        load(path, 7, 8)
    with pytest.raises(UserError, match="input = raw, but input = rgb"):
        load(path, 7, 16, "rgb")


def test_authors_weights(controller, tmp_path):
    """A plain dict of thirty tensors, whatever container holds it."""
    torch.save(dict(controller.state_dict()), tmp_path / "w.pt")
    torch.save({"state_dict": dict(controller.state_dict())}, tmp_path / "nested.pt")
    for name in ("w.pt", "nested.pt"):
        imported = import_weights(tmp_path / name, 7, 16)
        assert torch.equal(imported.trunk[0].weight, controller.trunk[0].weight)


class Danger:
    def __reduce__(self):
        return (open, ("/tmp/should-not-exist-fujinsplat", "w"))


def test_nothing_in_a_file_is_executed(tmp_path):
    from pathlib import Path

    with (tmp_path / "bad.pt").open("wb") as stream:
        pickle.dump({"encoder.0.weight": Danger()}, stream)
    torch.save({"encoder.0.weight": Danger()}, tmp_path / "worse.pt")
    for name in ("bad.pt", "worse.pt"):
        with pytest.raises(UserError, match="tensors"):
            import_weights(tmp_path / name, 7, 16)
    assert not Path("/tmp/should-not-exist-fujinsplat").exists()


def test_bad_weights_are_named(controller, tmp_path):
    good = dict(controller.state_dict())
    cases = {
        "shape": ({**good, "trunk.0.bias": torch.zeros(3)}, r"trunk\.0\.bias has shape \[3\]"),
        "nan": ({**good, "trunk.0.bias": torch.full((512,), torch.nan)}, r"trunk\.0\.bias holds values"),
        "missing": ({k: v for k, v in good.items() if k != "trunk.0.bias"}, r"lacks the tensor trunk\.0\.bias"),
        "extra": ({**good, "other": torch.zeros(1)}, "a tensor other"),
        "list": ([1, 2], "not a dict of tensors"),
    }
    for name, (content, match) in cases.items():
        torch.save(content, tmp_path / f"{name}.pt")
        with pytest.raises(UserError, match=match):
            import_weights(tmp_path / f"{name}.pt", 7, 16)
    with pytest.raises(UserError, match="check K and M"):
        torch.save(good, tmp_path / "good.pt")
        import_weights(tmp_path / "good.pt", 7, 8)
    with pytest.raises(UserError, match="does not exist"):
        import_weights(tmp_path / "none.pt", 7, 16)
    (tmp_path / "junk.safetensors").write_bytes(b"junk")
    with pytest.raises(UserError, match="not a readable"):
        load(tmp_path / "junk.safetensors")


def test_the_import_command_writes_a_controller_that_looks_once(controller, tmp_path):
    from typer.testing import CliRunner

    from fujinsplat.controller.command import app

    given, out = tmp_path / "controller.pt", tmp_path / "controller.safetensors"
    torch.save(dict(controller.state_dict()), given)  # 30 plain tensors, as the authors store them
    assert len(controller.state_dict()) == 30
    done = CliRunner().invoke(app, ["import", str(given), "--out", str(out)])
    assert done.exit_code == 0 and load(out).notes["presentations"] == "1"
    out.unlink()
    assert CliRunner().invoke(app, ["import", str(given), "--knots", "8", "--out", str(out)]).exit_code != 0
    assert not out.exists()
